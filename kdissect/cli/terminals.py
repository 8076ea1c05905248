"""Whether the terminal can show the screens."""

from __future__ import annotations

import os
from contextlib import suppress

NO_SCREENS = ("dumb", "unknown")
"""Kinds of terminals (``TERM``) that cannot show the screens."""


def can_draw_screens() -> bool:
    """Whether this kind of terminal can show screens."""
    return os.environ.get("TERM") not in NO_SCREENS


def heed_terminals_without_colours() -> None:
    """Set ``NO_COLOR`` if the kind of terminal (``TERM``) has no colours, where Textual's coloured marks
    would be invisible. If ``COLORTERM`` is set, there are colours."""
    if "NO_COLOR" not in os.environ and not os.environ.get("COLORTERM") and not _has_colours():
        os.environ["NO_COLOR"] = "1"


def _has_colours() -> bool:
    """Whether this kind of terminal has colours, by terminfo; True if terminfo does not know."""
    with suppress(ImportError):  # Windows
        import curses

        with suppress(curses.error):  # it is unknown
            curses.setupterm(os.environ.get("TERM"), fd=1)
            return curses.tigetnum("colors") > 0
    return True
