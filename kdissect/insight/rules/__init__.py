"""Rules, a module a category; see :mod:`kdissect.insight.rule`."""
