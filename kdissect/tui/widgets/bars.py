"""The lines at the edges of a screen: the names of pages or panes, and the keys at its foot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

from kdissect.present.paragraphs import fold_text
from kdissect.settings.actions import SHORT_TITLES
from kdissect.tui.colors import Legible
from kdissect.tui.widgets.legible import LegibleText


class Tabs(Legible):
    """The line.

    :param titles: name, key and title of each screen, in their order.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"tabs--here", "tabs--other"}
    DEFAULT_CSS = """
    Tabs { height: 1; background: $surface; }
    Tabs .tabs--here { background: $surface; color: $foreground; text-style: bold reverse; }
    Tabs .tabs--other { background: $surface; color: $text-muted; }
    """

    class Chosen(Message):
        """A title was clicked."""

        def __init__(self, name: str) -> None:
            self.name = name
            super().__init__()

    def __init__(self, titles: Sequence[tuple[str, str, str]], here: str) -> None:
        super().__init__()
        self._titles = titles
        self._here = here

    def turn(self, here: str) -> None:
        """Another one is shown."""
        self._here = here
        self.refresh()

    def _texts(self) -> list[tuple[str, str]]:
        """Name and text of each. Where there is not room for all titles, some are shorter; where that is not
        enough, only the title of the screen that is shown stands there."""
        for apart in ("  ", " "):
            texts = [(name, f" {key} {title}{apart[1:]}") for name, key, title in self._titles]
            if sum(len(text) for _, text in texts) <= self.size.width:
                return texts
        texts = [(name, f" {key} {SHORT_TITLES.get(title, title)}") for name, key, title in self._titles]
        if sum(len(text) for _, text in texts) <= self.size.width:
            return texts
        return [
            (name, f" {key} {title} " if name == self._here else f" {key} ")
            for name, key, title in self._titles
        ]

    def render_line(self, y: int) -> Strip:
        here = self.get_component_rich_style("tabs--here")
        other = self.get_component_rich_style("tabs--other")
        segments = [Segment(text, here if name == self._here else other) for name, text in self._texts()]
        return Strip(segments).adjust_cell_length(self.size.width, other)

    def on_click(self, event: events.Click) -> None:
        left = event.x
        for name, text in self._texts():
            if left < len(text):
                self.post_message(self.Chosen(name))
                return
            left -= len(text)


class OneLine(LegibleText):
    """A line of text. Its place stays as it is, whatever stands in it: Textual would lay out the whole screen
    anew for each text."""

    DEFAULT_CSS = """
    OneLine { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id, markup=False)
        self._text = Text()

    def show(self, text: Text) -> None:
        """Write a text, if it is another."""
        if text != self._text or text.style != self._text.style:
            self._text = text
            self.update(text, layout=False)


class SaidLine(OneLine):
    """What is said of what was done, or of what is under the cursor. Where one line has no room for all,
    there are more."""

    DEFAULT_CSS = """
    SaidLine { height: auto; max-height: 3; }
    """
    MOST_LINES = 3

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._said, self._lines = "", 1

    def say(self, text: str) -> None:
        """Write a text; sanitised."""
        self._said = text
        room = self.app.size.width - 1
        lines = [text] if cell_len(text) <= room else fold_text(text, room)
        if len(lines) > self.MOST_LINES:
            lines = [*lines[: self.MOST_LINES - 1], " ".join(lines[self.MOST_LINES - 1 :])]
        if len(lines) != self._lines:  # Textual lays out the whole screen anew
            self.styles.height = self._lines = len(lines)
        self.show(Text("\n".join(f" {line}" for line in lines)))

    def on_resize(self) -> None:
        self.say(self._said)


class PaneLine(Legible):
    """The line."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"pane-line--here", "pane-line--other"}
    DEFAULT_CSS = """
    PaneLine { height: 1; background: $panel; }
    PaneLine .pane-line--here { background: $panel; color: $foreground; text-style: bold reverse; }
    PaneLine .pane-line--other { background: $panel; color: $text-muted; }
    """

    class Chosen(Message):
        """A tab was clicked."""

        def __init__(self, name: str) -> None:
            self.name = name
            super().__init__()

    def __init__(self) -> None:
        super().__init__()
        self._tabs: Sequence[tuple[str, str]] = ()
        self._here = ""
        self._bytes = ""

    def show(self, tabs: Sequence[tuple[str, str]], here: str, data: str) -> None:
        """Show names and titles of tabs, one of which stands out, and what the bytes are; sanitised."""
        self._tabs, self._here, self._bytes = tabs, here, data
        self.refresh()

    def render_line(self, y: int) -> Strip:
        here = self.get_component_rich_style("pane-line--here")
        other = self.get_component_rich_style("pane-line--other")
        segments = [
            Segment(f" {title} ", here if name == self._here else other) for name, title in self._tabs
        ]
        left = self.size.width - sum(cell_len(segment.text) for segment in segments)
        if left > 1 and self._bytes:
            text = set_cell_size(self._bytes, min(cell_len(self._bytes), left - 1))
            segments.append(Segment(" " * (left - cell_len(text)) + text, other))
        return Strip(segments).adjust_cell_length(self.size.width, other)

    def on_click(self, event: events.Click) -> None:
        left = event.x
        for name, title in self._tabs:
            width = cell_len(title) + 2
            if left < width:
                self.post_message(self.Chosen(name))
                return
            left -= width


COMMON = "save", "app.story", "filter"
"""Actions of most screens, in the order in which the footer leaves them out."""


class KeysFooter(Footer):
    """The keys that mean something here, without that of the palette.

    Textual makes each key compact first and wide then, and computes its style anew both times. This footer
    makes each key in its final form at once. Where there is no room for all, it first leaves out keys that
    most screens have, then the last ones, but never the very last. That one opens the help, which has them
    all.
    """

    DEFAULT_CSS = """
    KeysFooter:light FooterKey .footer-key--key { color: $foreground; }
    """

    def __init__(self) -> None:
        super().__init__(show_command_palette=False)
        self._room = 0
        """The cells for which the keys were made."""

    def compose(self) -> ComposeResult:
        self._room = self.app.size.width
        made = list(super().compose())
        while len(made) > 2 and sum(map(_cells, made)) > self._room:
            known = (each for action in COMMON for each in made if _action(each) == action)
            made.remove(next(known, made[-2]))
        for each in made:
            if isinstance(each, FooterKey):
                each.set_reactive(FooterKey.compact, self.compact)
            yield each

    def on_resize(self) -> None:
        if self._room != self.app.size.width:
            self.refresh(recompose=True)


def _action(key: Widget) -> str | None:
    return key.action if isinstance(key, FooterKey) else None


def _cells(key: Widget) -> int:
    """Cells of a key with its word, and of the blanks around them."""
    if not isinstance(key, FooterKey):
        return 0
    return cell_len(key.key_display) + cell_len(key.description) + 3
