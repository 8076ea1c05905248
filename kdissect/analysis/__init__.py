"""Statistics: folds over exchanges, one module for each statistic.

A fold takes in the events of a capture in their order, and returns rows of plain values. It can be merged
with the same statistic over later events. So one implementation serves a command that reads a file, a screen
that grows, and workers that each read a part.
"""
