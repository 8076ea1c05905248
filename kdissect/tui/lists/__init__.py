"""What the index and the statistics hold, as rows of tables."""

WIDE_WIDTH = 158
"""Cells from which the line above a list tells more."""
