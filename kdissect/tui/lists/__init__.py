"""What the index and the statistics hold, as rows of tables."""

NORMAL_WIDTH, WIDE_WIDTH = 98, 158
"""Cells from which the columns of a table are more."""
