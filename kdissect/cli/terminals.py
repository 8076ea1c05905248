"""Whether screens can be drawn on the terminal."""

from __future__ import annotations

import os
from contextlib import suppress

NO_SCREENS = ("dumb", "unknown")
"""Kinds of terminals (``TERM``) that screens cannot be drawn on."""


def can_draw_screens() -> bool:
    """Whether this kind of terminal can show screens."""
    return os.environ.get("TERM") not in NO_SCREENS


def heed_terminals_without_colours() -> None:
    """Set ``NO_COLOR`` where the kind of terminal (``TERM``) has no colours: what Textual marks by a colour
    could not be seen there. ``COLORTERM`` says that there are colours."""
    if "NO_COLOR" not in os.environ and not os.environ.get("COLORTERM") and not _has_colours():
        os.environ["NO_COLOR"] = "1"


def _has_colours() -> bool:
    """Whether this kind of terminal has colours, as terminfo says; also where it says nothing."""
    with suppress(ImportError):  # Windows
        import curses

        with suppress(curses.error):  # nothing is known of it
            curses.setupterm(os.environ.get("TERM"), fd=1)
            return curses.tigetnum("colors") > 0
    return True
