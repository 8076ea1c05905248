"""Panes that share the room of a screen: the mouse drags the bars between them, keys move them.

Until a bar is moved, each pane has the room that its screen or its style sheet wants. Afterwards all of them
keep the shares that they had when the bar was released.
"""

from __future__ import annotations

from collections.abc import Mapping

from textual import events
from textual.containers import Horizontal
from textual.geometry import clamp
from textual.screen import Screen
from textual.widget import Widget

from kdissect.settings.session import LEAST_PERCENT, MOST_PERCENT

LEAST_LINES = 3
"""The least lines of a pane."""
PART = 10
"""The part of the panes' height by which a key moves a bar."""


class PanesScreen(Screen[None]):
    """A screen with such panes. Its panes are its children with an id that can have the focus or scroll."""

    DEFAULT_CSS = """
    PanesScreen .-held { border-top: hkey $accent !important; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.heights: dict[str, int] = {}
        """For each pane's id, its lines when a bar was last moved; empty before."""
        self._held: Widget | None = None
        """The pane whose bar the mouse holds."""

    def stacked(self) -> list[Widget]:
        """The shown panes, from the top."""
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
        """Limit the lines of a pane, unless a bar was moved: other panes get the rest."""
        if pane.id not in self.heights:
            pane.styles.max_height = lines

    def _move(self, below: Widget, lines: int) -> None:
        """Move the bar above a pane down by some lines, or up if they are negative. If the pane that it moves
        into is as small as possible, that pane moves too, and the next one becomes smaller."""
        names = [each.id or "" for each in self.stacked()]
        heights = {each.id or "": each.outer_size.height for each in self.stacked()}
        at, wanted = names.index(below.id or ""), abs(lines)
        grows, *gives = names[at - 1 :] if lines > 0 else names[at::-1]
        for name in gives:
            given = max(0, min(wanted, heights[name] - LEAST_LINES))
            heights[name] -= given
            heights[grows] += given
            wanted -= given
        self.take_heights(heights)

    def action_room(self, step: int) -> None:
        """Give the pane with the focus more room (1), or less."""
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


STEP = 10
"""The hundredths of the width by which a key moves the bar."""


class Sides(Horizontal):
    """The panes. The second has a border at its left: the bar."""

    DEFAULT_CSS = """
    Sides > .-held { border-left: vkey $accent !important; }
    """

    def __init__(self, *panes: Widget) -> None:
        super().__init__(*panes)
        self.percent: int | None = None
        """The width of the second pane in hundredths; None before the bar was moved."""

    @property
    def has_bar(self) -> bool:
        """Whether both panes are shown."""
        return all(each.display for each in self.children)

    def share(self, percent: int | None) -> None:
        """Give the second pane its part of the width; with None, nothing changes."""
        if percent is None:
            return
        self.percent = clamp(percent, LEAST_PERCENT, MOST_PERCENT)
        left, right = self.children
        left.styles.width, right.styles.width = f"{100 - self.percent}fr", f"{self.percent}fr"

    def step(self, step: int) -> None:
        """Give the second pane more room (1), or less."""
        if self.percent is not None:
            self.share(self.percent + step * STEP)
        elif self.size.width:
            self.share(100 * self.children[1].outer_size.width // self.size.width + step * STEP)

    # -- the mouse ------------------------------------------------------------------------------------

    @property
    def _is_held(self) -> bool:
        return self.children[1].has_class("-held")

    def on_mouse_down(self, event: events.MouseDown) -> None:
        right = self.children[1]
        if self.has_bar and event.screen_x == right.region.x and right.styles.border_left[0]:
            event.stop()
            self._hold(True)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._is_held and self.size.width:
            event.stop()
            right = self.region.right - int(event.screen_x)
            self.share(round(100 * right / self.size.width))

    def on_mouse_up(self) -> None:
        if self._is_held:
            self._hold(False)

    def _hold(self, is_held: bool) -> None:
        self.children[1].set_class(is_held, "-held")
        self.capture_mouse(is_held)
