"""The error of a wrong filter: the reason and the position."""

from __future__ import annotations

from kdissect.present.sanitise import sanitise, width

ROOM = 76
"""The most columns of a filter that are shown above a caret."""


class FilterError(ValueError):
    """The only error that compiling a filter raises."""

    def __init__(self, reason: str, position: int, length: int = 1, text: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position
        """The first wrong character, from 0."""
        self.length = length
        """The number of wrong characters."""
        self.text = text
        """The whole filter."""

    def __str__(self) -> str:
        return f"position {self.position + 1}: {self.reason}"

    def excerpt(self) -> tuple[str, str]:
        """The filter around the wrong place, safe to show, and a second line with a caret below that
        place."""
        start = max(0, self.position - ROOM // 2) if len(self.text) > ROOM else 0
        end = start + ROOM
        before = ("…" if start else "") + sanitise(self.text[start : self.position], None)
        wrong = sanitise(self.text[self.position : min(self.position + self.length, end)], None)
        after = sanitise(self.text[self.position + self.length : end], None)
        marks = "^" + "~" * (width(wrong) - 1)
        return before + wrong + after + ("…" if end < len(self.text) else ""), " " * width(before) + marks
