"""Panes that scroll. Their contents may grow without a layout.

Textual lays out the whole screen anew when the contents of such a pane have another size, and draws all of
it. Here the scroll bars learn of it, and the place of the pane stays as it is.
"""

from __future__ import annotations

from textual.geometry import Size
from textual.reactive import Reactive
from textual.scroll_view import ScrollView


class Steady(ScrollView):
    """The pane."""

    virtual_size: Reactive[Size] = Reactive(Size(0, 0), layout=False)
    """The size of its contents."""

    def watch_virtual_size(self, size: Size) -> None:
        if self.styles.is_auto_height:  # then the pane itself has another height
            self.refresh(layout=True)
            return
        before = self.scrollbars_enabled
        self._scroll_update(size)
        if self.scrollbars_enabled != before:  # a bar that comes takes room
            ScrollView.refresh(self, layout=True)
