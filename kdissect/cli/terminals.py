"""Whether screens can be drawn on the terminal."""

from __future__ import annotations

import os

NO_SCREENS = ("dumb", "unknown")
"""Kinds of terminals (``TERM``) that screens cannot be drawn on."""


def can_draw_screens() -> bool:
    """Whether this kind of terminal can show screens."""
    return os.environ.get("TERM") not in NO_SCREENS
