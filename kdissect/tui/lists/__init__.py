"""The data of the index and the statistics, as rows of tables."""

WIDE_WIDTH = 158
"""The width, in cells, from which on the line above a list has more facts."""
