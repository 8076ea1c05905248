"""Layouts that are kept: tests that change the definitions push them out."""

from __future__ import annotations

from kdissect.protocol.layout import layout

_KEPT = 4_096
"""So many are kept of each kind."""


def forget_layouts() -> None:
    """Let all layouts be worked out anew: the definitions are others. More are asked for than are kept."""
    for kind in ("request", "response"):
        for version in range(_KEPT + 1):
            layout(-1, version, kind)
