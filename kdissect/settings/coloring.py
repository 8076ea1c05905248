"""Coloring rules, in Wireshark's sense: they colour rows of the list of exchanges.

Nothing here imports Textual: the command line uses this too.
"""

from __future__ import annotations

from typing import NamedTuple

COLORS = ("green", "cyan", "blue", "magenta", "grey")
"""The colours of rules. Red and yellow are not among them, because they mean errors and warnings."""


class ColoringRule(NamedTuple):
    """A rule. The first one that matches an exchange gives the colour."""

    name: str
    filter: str
    """A display filter."""
    color: str
    """One of :data:`COLORS`."""
