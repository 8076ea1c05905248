"""What is wrong with a filter, and where."""

from __future__ import annotations

from kdissect.present.sanitise import sanitise, width

ROOM = 76
"""Columns of a filter that are shown with a caret under them."""


class FilterError(ValueError):
    """The one way in which a filter fails to compile."""

    def __init__(self, reason: str, position: int, length: int = 1, text: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position
        """Of the first character that is wrong, from 0."""
        self.length = length
        """Characters that are wrong."""
        self.text = text
        """The whole filter."""

    def __str__(self) -> str:
        return f"position {self.position + 1}: {self.reason}"

    def excerpt(self) -> tuple[str, str]:
        """The filter around the place, safe to show, and the line with the caret to go under it."""
        start = max(0, self.position - ROOM // 2) if len(self.text) > ROOM else 0
        end = start + ROOM
        before = ("…" if start else "") + sanitise(self.text[start : self.position], None)
        wrong = sanitise(self.text[self.position : min(self.position + self.length, end)], None)
        after = sanitise(self.text[self.position + self.length : end], None)
        marks = "^" + "~" * (width(wrong) - 1)
        return before + wrong + after + ("…" if end < len(self.text) else ""), " " * width(before) + marks
