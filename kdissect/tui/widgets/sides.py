"""Two panes beside one another: the mouse drags the bar between them, keys move it.

As long as the bar was not moved, the panes are as wide as their style sheet says. From then on they share the
room as they did when it was let go.
"""

from __future__ import annotations

from textual import events
from textual.containers import Horizontal
from textual.geometry import clamp
from textual.widget import Widget

from kdissect.settings.session import LEAST_PERCENT, MOST_PERCENT

STEP = 10
"""A key moves the bar by so many hundredths of the width."""


class Sides(Horizontal):
    """The panes. The second has a border at its left: the bar."""

    DEFAULT_CSS = """
    Sides > .-held { border-left: vkey $accent !important; }
    """

    def __init__(self, *panes: Widget) -> None:
        super().__init__(*panes)
        self.percent: int | None = None
        """Hundredths of the width that the second pane has; None before the bar was moved."""

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
        """More room for the second pane (1), or less."""
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
