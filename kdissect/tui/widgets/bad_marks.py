"""Marks on a scroll bar: where in a long list the errors are, on the screen or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.color import Color
from rich.segment import Segment, Segments
from rich.style import Style
from textual.scrollbar import ScrollBarRender

from kdissect.tui.colors import legible

PARTS = 512
"""Equal parts of the list that are told apart: more than a screen has lines."""
SIGN = "▪"


class BadMarks:
    """Draws a scroll bar, in the place of Textual's own renderer.

    :param color: gives the colour of a mark, in the theme of now.
    """

    def __init__(self, color: Callable[[], Color | None]) -> None:
        self._color = color
        self._parts: Sequence[int] = ()

    def show(self, parts: Sequence[int]) -> bool:
        """Mark these of the :data:`PARTS` of the list; gives whether they are others than before."""
        before, self._parts = self._parts, parts
        return before != parts

    def __call__(self, **given: Any) -> ScrollBarRender:
        return _MarkedBar(self._parts, self._color(), given)


class _MarkedBar(ScrollBarRender):
    """The bar, as Textual draws it, with signs on it."""

    def __init__(self, parts: Sequence[int], mark: Color | None, given: Mapping[str, Any]) -> None:
        super().__init__(**given)
        self._parts, self._mark = parts, mark

    def render_bar(self, **given: Any) -> Segments:  # type: ignore[override]
        bar = super().render_bar(**given)
        size, thickness = given["size"], given["thickness"]
        segments = list(bar.segments)
        if not given["window_size"] or len(segments) < size:
            return bar  # all of the list is on the screen
        for line in {part * size // PARTS for part in self._parts}:
            under = segments[line].style or Style()
            behind = given["bar_color"] if under.reverse else given["back_color"]
            style = legible(Style(color=self._mark, bgcolor=behind)) + Style(meta=under.meta)
            segments[line] = Segment(f"{SIGN:<{thickness}}", style)
        return Segments(segments, new_lines=True)
