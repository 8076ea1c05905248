"""Rules, one module for each category; see :mod:`kdissect.insight.rule`."""
