"""Statistics: folds over exchanges, one module a statistic.

Each is fed the events of a capture in their order, and gives rows of plain values. It can be merged with the
same statistic over the events that came after. So one implementation serves a command that reads a file, a
screen that grows, and workers that each read a part.
"""
