"""Textual's own widgets, adapted to the screens.

Every text is legible: the drawn lines are measured one by one. Panes that scroll may grow without a layout.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Literal, TypeVar

from rich.style import Style
from textual.command import CommandList, CommandPalette
from textual.geometry import Region, Size
from textual.reactive import Reactive
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.strip import Strip
from textual.widgets import Input, OptionList, Static

from kdissect.tui.colors import legible_strip
from kdissect.tui.drawing import ContentLines
from kdissect.tui.widgets.scroll_bar import LineScrollBar

Look = TypeVar("Look")
_TITLES = "{ border-title-color: $foreground; border-subtitle-color: $foreground; }"


class LegibleInput(Input):
    """A line to write into."""

    DEFAULT_CSS = f"LegibleInput {_TITLES}"

    def render_line(self, y: int) -> Strip:
        return legible_strip(super().render_line(y), self.app)


LEAST_CELLS = 4
"""The least cells of a text to choose. With fewer, Textual breaks it into empty pieces, which ends in a
traceback. A terminal that is dragged smaller has so few for a moment."""


class LegibleOptions(OptionList):
    """A list to choose from."""

    DEFAULT_CSS = f"LegibleOptions {_TITLES}"

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return super().get_content_height(container, viewport, max(width, LEAST_CELLS))

    def _update_lines(self) -> None:
        if self.scrollable_content_region.width >= LEAST_CELLS:
            super()._update_lines()

    def _move_page(self, direction: Literal[-1, 1]) -> None:
        if _has_lines(self):
            super()._move_page(direction)

    def render_line(self, y: int) -> Strip:
        return legible_strip(super().render_line(y), self.app)


class Palette(CommandPalette):
    """The command palette. It also works on a terminal without a line for its commands."""

    def _action_command_list(self, action: str) -> None:
        if _has_lines(self.query_one(CommandList)):
            super()._action_command_list(action)


def _has_lines(options: OptionList) -> bool:
    """Whether options were laid out. If not even one line has room, a key to the next page ends in a
    traceback of Textual, which looks for a line."""
    return (options.highlighted or 0) in options._index_to_line


class LegibleText(Static):
    """A text."""

    def render_line(self, y: int) -> Strip:
        return legible_strip(super().render_line(y), self.app)


class Steady(ScrollView):
    """A pane whose contents may grow.

    Textual lays out and draws the whole screen again when the contents of such a pane change their size. Here
    only the scroll bars are updated, and the place of the pane stays as it is.
    """

    virtual_size: Reactive[Size] = Reactive(Size(0, 0), layout=False)
    """The size of its contents."""

    _looks: dict[Hashable, Any] | None = None
    """What all lines ask for, while they are drawn: the room, and the styles."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._styles_cache = ContentLines()

    @property
    def columns(self) -> int:
        """The cells of a line, without the scroll bar."""
        return self._look("columns", lambda: self.scrollable_content_region.width)

    @property
    def rich_style(self) -> Style:
        return self._look("style", lambda: super(Steady, self).rich_style)

    def render_lines(self, crop: Region) -> list[Strip]:
        self._looks = {}
        try:
            return super().render_lines(crop)
        finally:
            self._looks = None

    def _look(self, key: Hashable, make: Callable[[], Look]) -> Look:
        """What a line asks for, made once for all lines that are drawn together."""
        if self._looks is None:
            return make()
        if key not in self._looks:
            self._looks[key] = make()
        found: Look = self._looks[key]
        return found

    @property
    def vertical_scrollbar(self) -> ScrollBar:
        """The scroll bar, made when it is needed first, as Textual makes its own."""
        if self._vertical_scrollbar is None:
            self._vertical_scrollbar = LineScrollBar(thickness=self.scrollbar_size_vertical)
            self._vertical_scrollbar.display = False
            self.app._start_widget(self, self._vertical_scrollbar)
        return self._vertical_scrollbar

    def watch_virtual_size(self, size: Size) -> None:
        if self.styles.is_auto_height:  # then the pane itself has another height
            self.refresh(layout=True)
            return
        before = self.scrollbars_enabled
        self._scroll_update(size)
        if self.scrollbars_enabled != before:  # a new bar takes room
            ScrollView.refresh(self, layout=True)
