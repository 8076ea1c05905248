"""Measures the figures that kdissect promises. Run from the checkout: ``python -m benchmarks.screens``."""
