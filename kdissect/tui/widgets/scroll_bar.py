"""A vertical scroll bar that draws only those of its lines that look different now.

Textual's own draws all of them for each move, through rich's renderer for any contents. That took up to half
of the time of drawing a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from rich.color import Color
from rich.segment import Segment
from textual.geometry import Region, Size
from textual.reactive import Reactive
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip
from textual.widget import Widget

from kdissect.tui.drawing import ContentLines


class LineScrollBar(ScrollBar):
    """The bar."""

    virtual_size: Reactive[Size] = Reactive(Size(0, 0), layout=False)
    """Another height of the bar needs no second layout of the screen."""
    window_virtual_size: Reactive[int] = Reactive(100, repaint=False)
    window_size: Reactive[int] = Reactive(0, repaint=False)
    position: Reactive[float] = Reactive(0, repaint=False)

    def __init__(self, *, thickness: int) -> None:
        super().__init__(vertical=True, name="vertical", thickness=thickness)
        self._styles_cache = ContentLines()
        self._lines: Sequence[Segment] = ()
        """The lines at the last look."""
        self._looks: object = None
        """What they were made from."""

    def watch_window_virtual_size(self) -> None:
        self._look()

    def watch_window_size(self) -> None:
        self._look()

    def watch_position(self) -> None:
        self._look()

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> Self:
        """Draw it again. Textual asks for all lines whenever the list has another length."""
        if regions or layout or recompose or not repaint:
            super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)
        else:
            self._look()
        return self

    def _look(self) -> None:
        """Draw the lines that have changed: with the list, the colours, or marks on it. Textual asks several
        times for each move."""
        looks = self._looks_now()
        if self.is_mounted and self._lines and looks == self._looks:
            return
        self._looks = looks
        before, self._lines = self._lines, self._made()
        if not self.is_mounted:  # it may be drawn already, and Textual notes no line for later
            self._set_dirty()
        if not self.is_mounted or len(before) != len(self._lines):
            super().refresh()
            return
        changed = [y for y, line in enumerate(self._lines) if line != before[y]]
        if changed:
            super().refresh(Region(0, changed[0], self.size.width, changed[-1] + 1 - changed[0]))

    def _looks_now(self) -> object:
        """All that the lines depend on. Another renderer may draw more, such as marks."""
        if self.renderer is not ScrollBar.renderer:
            return object()
        around = [each.styles._cache_key for each in self.ancestors_with_self if isinstance(each, Widget)]
        bar = self.window_virtual_size, self.window_size, self.position, self.mouse_over, self.grabbed
        return bar, self.size, self.app.theme, around

    def _made(self) -> Sequence[Segment]:
        """The lines now; none if it is not on the screen."""
        drawn = self.render() if self.parent is not None else None
        if not isinstance(drawn, ScrollBarRender) or not self.size.height:
            return ()
        style = self.app.console.get_style(drawn.style)
        bar = drawn.render_bar(
            size=self.size.height,
            virtual_size=drawn.virtual_size,
            window_size=drawn.window_size,
            position=drawn.position,
            thickness=self.size.width,
            vertical=True,
            back_color=style.bgcolor or Color.default(),
            bar_color=style.color or Color.default(),
        )
        behind = self.visual_style.rich_style
        return [Segment(each.text, behind + (each.style or behind)) for each in bar.segments]

    def render_line(self, y: int) -> Strip:
        if len(self._lines) != self.size.height:
            self._lines = self._made()
        width = self.size.width
        if y >= len(self._lines):
            return Strip.blank(width, self.visual_style.rich_style)
        return Strip([self._lines[y]], width)
