"""The colours that the screens can have."""

from __future__ import annotations

from collections.abc import Collection

from textual.theme import BUILTIN_THEMES


def themes() -> Collection[str]:
    """The names of the themes."""
    return BUILTIN_THEMES
