"""Panes that stand above one another: the mouse drags the bars between them, keys move them.

As long as no bar was moved, each pane has the height that its screen wants. From then on all of them share
the room as they did when the bar was let go.
"""

from __future__ import annotations

from collections.abc import Mapping

from textual import events
from textual.screen import Screen
from textual.widget import Widget

LEAST_LINES = 3
"""Lines that a pane keeps."""
PART = 10
"""A key moves a bar by this part of the height of its panes."""


class PanesScreen(Screen[None]):
    """A screen with such panes. Its panes are its children with an id that can have the focus or scroll."""

    DEFAULT_CSS = """
    PanesScreen .-held { border-top: hkey $accent !important; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.heights: dict[str, int] = {}
        """By the pane's id: the lines that it had when a bar was moved last; nothing before."""
        self._held: Widget | None = None
        """The pane whose bar the mouse holds."""

    def stacked(self) -> list[Widget]:
        """The panes that are shown, from above."""
        shown = [each for each in self.children if each.id and each.display]
        return [each for each in shown if each.can_focus or each.is_scrollable]

    def on_mount(self) -> None:
        self.take_heights(self.heights)

    def take_heights(self, heights: Mapping[str, int]) -> None:
        """Give the panes their share of the room."""
        self.heights = dict(heights)
        for pane in self.children:
            lines = heights.get(pane.id or "")
            if lines is not None:
                pane.styles.height = f"{lines}fr"
                pane.styles.max_height = "100%"
                pane.styles.min_height = LEAST_LINES

    def wish(self, pane: Widget, lines: int | str) -> None:
        """Give a pane the height that the screen wants, unless a bar was moved."""
        if pane.id not in self.heights:
            pane.styles.height = lines

    def at_most(self, pane: Widget, lines: int) -> None:
        """Let a pane have no more lines than this, unless a bar was moved: others have the rest."""
        if pane.id not in self.heights:
            pane.styles.max_height = lines

    def _move(self, below: Widget, lines: int) -> None:
        """Move the bar above a pane down, or up where there are fewer than no lines."""
        panes = self.stacked()
        heights = {each.id or "": each.outer_size.height for each in panes}
        above = panes[panes.index(below) - 1]
        names = above.id or "", below.id or ""
        lines = max(LEAST_LINES - heights[names[0]], min(lines, heights[names[1]] - LEAST_LINES))
        heights[names[0]] += lines
        heights[names[1]] -= lines
        self.take_heights(heights)

    def action_room(self, step: int) -> None:
        """More room for the pane with the focus (1), or less."""
        panes = self.stacked()
        if len(panes) < 2:
            return
        at = next((at for at, each in enumerate(panes) if each.has_focus), 0)
        lines = step * max(1, sum(each.outer_size.height for each in panes) // PART)
        if at + 1 < len(panes):
            self._move(panes[at + 1], lines)
        else:
            self._move(panes[at], -lines)

    # -- the mouse ------------------------------------------------------------------------------------

    def on_mouse_down(self, event: events.MouseDown) -> None:
        for pane in self.stacked()[1:]:
            if pane.region.y == event.screen_y and pane.styles.border_top[0]:
                event.stop()
                self._hold(pane)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._held is not None:
            event.stop()
            self._move(self._held, int(event.screen_y) - self._held.region.y)

    def on_mouse_up(self) -> None:
        self._hold(None)

    def _hold(self, pane: Widget | None) -> None:
        if self._held is not None:
            self._held.remove_class("-held")
            self._held.release_mouse()
        self._held = pane
        if pane is not None:
            pane.add_class("-held")
            pane.capture_mouse()
