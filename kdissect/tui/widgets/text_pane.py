"""Lines of text that wrap at the width of the pane, and that can be scrolled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from kdissect.present.paragraphs import fold_text
from kdissect.present.whole_record import TextLine
from kdissect.settings.places import PLACES
from kdissect.tui.colors import Legible
from kdissect.tui.keys import bindings_of
from kdissect.tui.widgets.adapted import Steady


class TextPane(Steady, Legible, can_focus=True, inherit_bindings=False):
    """The pane."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"text--heading", "text--fact", "text--plain"}
    DEFAULT_CSS = """
    TextPane { background: $surface; overflow-x: hidden; overflow-y: scroll;
        scrollbar-background: $surface; scrollbar-background-hover: $surface;
        scrollbar-background-active: $surface; }
    TextPane .text--heading { background: $surface; color: $foreground; text-style: bold; }
    TextPane:focus .text--heading { background: $surface; color: $text-accent; text-style: bold; }
    TextPane .text--fact { background: $surface; color: $text-muted; }
    TextPane .text--plain { background: $surface; color: $foreground; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("text")
    BINDING_GROUP_TITLE = PLACES["text"]

    class Chosen(Message):
        """Enter was pressed."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: Sequence[TextLine] = ()
        self._make: Callable[[int], Sequence[TextLine]] | None = None
        """Makes the lines for a width in cells, if they depend on it."""
        self._broken: list[tuple[str, str]] = []
        """The style and the text of the lines as they are in the pane."""

    def show(self, lines: Sequence[TextLine], stay: bool = False) -> None:
        """Show other lines, from the first on; with ``stay``, at the present position."""
        self._lines, self._make = lines, None
        self._break()
        if not stay:
            self.scroll_to(y=0, animate=False, immediate=True)

    def show_folded(self, make: Callable[[int], Sequence[TextLine]], stay: bool = False) -> None:
        """Show lines that depend on the width of the pane."""
        self._make = make
        self._break()
        if not stay:
            self.scroll_to(y=0, animate=False, immediate=True)

    def seek(self, is_in: Callable[[str], bool]) -> None:
        """Go to the first line that matches, unless it is already visible."""
        found = next((at for at, (_, text) in enumerate(self._broken) if is_in(text)), 0)
        height = self.scrollable_content_region.height
        if not self.scroll_offset.y <= found < self.scroll_offset.y + height:
            self.scroll_to(y=max(0, found - height // 3), animate=False, immediate=True)

    @property
    def lines(self) -> int:
        """The number of lines of the whole text."""
        return len(self._broken)

    def _break(self) -> None:
        width = max(10, self.columns)
        if self._make is not None:
            self._lines = self._make(width)
        self._broken = [
            (f"text--{line.kind}", part)
            for line in self._lines
            for whole in _folded(line, width)
            for part in broken(whole, width)
        ]
        self.virtual_size = Size(self.columns, len(self._broken))
        self.refresh()

    def on_resize(self) -> None:
        self._break()

    def render_line(self, y: int) -> Strip:
        at = self.scroll_offset.y + y
        if at >= len(self._broken):
            return Strip.blank(self.columns, self.rich_style)
        kind, text = self._broken[at]
        style = self.get_component_rich_style(kind)
        return Strip([Segment(text, style)]).adjust_cell_length(self.columns, style)

    def action_choose(self) -> None:
        self.post_message(self.Chosen())


def _folded(line: TextLine, width: int) -> Sequence[str]:
    """The lines of a text: explanations wrap between words, quoted text is not changed."""
    is_text = line.kind == "plain" or cell_len(line.text) <= width
    return (line.text,) if is_text else fold_text(line.text, width)


def broken(text: str, width: int) -> Iterator[str]:
    """A line in pieces that are no wider than ``width`` cells."""
    if text.isascii():
        for at in range(0, max(1, len(text)), width):
            yield text[at : at + width]
    elif cell_len(text) <= width:
        yield text
    else:
        yield from chop_cells(text, width)
