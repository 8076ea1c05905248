"""Bytes as hex and text, with a range in another colour and a cursor.

Bytes of secrets are shown as ``**``: only their number is visible.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Size, clamp
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from kdissect.settings.places import PLACES
from kdissect.tui.colors import Legible
from kdissect.tui.keys import bindings_of
from kdissect.tui.widgets.adapted import Steady

_OFFSET = 10
"""The cells before the first byte."""


class BytesPane(Steady, Legible, can_focus=True):
    """The pane."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"bytes--offset", "bytes--byte", "bytes--range", "bytes--cursor"}
    DEFAULT_CSS = """
    BytesPane { background: $surface; overflow-x: hidden; overflow-y: scroll; }
    BytesPane .bytes--offset { color: $text-muted; background: $surface; }
    BytesPane .bytes--byte { color: $foreground; background: $surface; }
    BytesPane .bytes--range { background: $primary; color: $background; text-style: bold; }
    BytesPane .bytes--cursor { background: $accent; color: $text; text-style: bold underline; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("bytes")
    BINDING_GROUP_TITLE = PLACES["bytes"]
    cursor: reactive[int] = reactive(0, repaint=False)

    class Moved(Message):
        """The cursor is on another byte."""

        def __init__(self, offset: int) -> None:
            self.offset = offset
            super().__init__()

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.data = b""
        self.range = (0, 0)
        self._starts: list[int] = []
        self._ends: list[int] = []

    def show(self, data: bytes, hidden: Sequence[tuple[int, int]], start: int, end: int) -> None:
        """Show bytes, with a range of them in colour. ``hidden`` ranges must not be readable."""
        if data is not self.data:
            self.data = data
            self._starts, self._ends = [a for a, _ in hidden], [b for _, b in hidden]
            self.set_reactive(BytesPane.cursor, start)
            self._measure()
        self.range = (start, end)
        self._bring_into_view(start, max(1, self.size.height) // 3)
        self.refresh()

    @property
    def bytes_a_line(self) -> int:
        """The number of bytes in a line, by the room: 16, 8 or 4."""
        return next((n for n in (16, 8) if self.columns >= _OFFSET + 4 * n + 1), 4)

    def on_resize(self) -> None:
        self._measure()

    def _measure(self) -> None:
        lines = -(-len(self.data) // self.bytes_a_line)
        self.virtual_size = Size(self.columns, max(1, lines))

    def _is_hidden(self, offset: int) -> bool:
        at = bisect_right(self._starts, offset) - 1
        return at >= 0 and offset < self._ends[at]

    def render_line(self, y: int) -> Strip:
        count, width = self.bytes_a_line, self.columns
        start = (self.scroll_offset.y + y) * count
        plain = self.get_component_rich_style("bytes--byte")
        if start >= len(self.data):
            return Strip.blank(width, plain)
        piece = self.data[start : start + count]
        segments = [Segment(f"{start:08x}  ", self.get_component_rich_style("bytes--offset"))]
        text = []
        for offset, byte in enumerate(piece, start):
            style = self._style(offset, plain)
            hidden = self._is_hidden(offset)
            is_joined = self.range[0] <= offset < self.range[1] - 1 and offset + 1 < start + len(piece)
            segments.append(Segment("**" if hidden else f"{byte:02x}", style))
            segments.append(Segment(" ", self._range_style if is_joined else plain))
            text.append(Segment("*" if hidden else chr(byte) if 0x20 <= byte < 0x7F else "·", style))
        segments.append(Segment("   " * (count - len(piece)) + " ", plain))
        return Strip(segments + text).adjust_cell_length(width, plain)

    @property
    def _range_style(self) -> Style:
        return self.get_component_rich_style("bytes--range")

    def _style(self, offset: int, plain: Style) -> Style:
        if self.has_focus and offset == self.cursor:
            return self.get_component_rich_style("bytes--cursor")
        return self._range_style if self.range[0] <= offset < self.range[1] else plain

    def validate_cursor(self, offset: int) -> int:
        return clamp(offset, 0, max(0, len(self.data) - 1))

    def watch_cursor(self, offset: int) -> None:
        self._bring_into_view(offset)
        self.refresh()
        self.post_message(self.Moved(offset))

    def _bring_into_view(self, offset: int, above: int | None = None) -> None:
        """Scroll until a byte is visible.

        :param above: the number of lines above it then; without it, the byte is at the edge from which it
            came.
        """
        line, top, height = offset // self.bytes_a_line, self.scroll_offset.y, max(1, self.size.height)
        if not top <= line < top + height:
            edge = line if line < top else line - height + 1
            y = edge if above is None else max(0, line - above)
            self.scroll_to(y=y, animate=False, immediate=True)

    def action_move(self, count: int) -> None:
        self.cursor += count

    def action_move_lines(self, lines: int) -> None:
        offset = self.cursor + lines * self.bytes_a_line
        if 0 <= offset < len(self.data):
            self.cursor = offset

    def action_move_pages(self, pages: int) -> None:
        self.cursor += pages * self.bytes_a_line * max(1, self.size.height - 1)

    def action_to(self, offset: int) -> None:
        self.cursor = offset if offset >= 0 else len(self.data) - 1

    def on_click(self, event: events.Click) -> None:
        where = event.get_content_offset(self)
        if where is None:
            return
        count = self.bytes_a_line
        at, line = where.x - _OFFSET, where.y + self.scroll_offset.y
        byte = at // 3 if at < count * 3 else at - count * 3 - 1
        if 0 <= byte < count and line * count + byte < len(self.data):
            self.cursor = line * count + byte
