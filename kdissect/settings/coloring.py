"""Coloring rules, as Wireshark calls them: which rows of the list of exchanges have which colour.

Nothing here imports Textual: the command line reads this too.
"""

from __future__ import annotations

from typing import NamedTuple

COLORS = ("green", "cyan", "blue", "magenta", "grey")
"""The colours that a rule can give. Red and yellow are not among them: they mean errors and warnings."""


class ColoringRule(NamedTuple):
    """A rule. The first one that matches an exchange gives the colour."""

    name: str
    filter: str
    """A display filter."""
    color: str
    """One of :data:`COLORS`."""
