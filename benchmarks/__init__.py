"""What kdissect promises in figures, measured. Run from the checkout: ``python -m benchmarks.screens``."""
