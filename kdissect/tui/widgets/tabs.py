"""The names of the screens in one line, each to be clicked; the one that is shown stands out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget


class Tabs(Widget):
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

    def _texts(self) -> list[tuple[str, str]]:
        """Name and text of each; where there is no room only the title of the one that is shown."""
        texts = [(name, f" {key} {title} ") for name, key, title in self._titles]
        if sum(len(text) for _, text in texts) > self.size.width:
            texts = [
                (name, f" {key} {title} " if name == self._here else f" {key} ")
                for name, key, title in self._titles
            ]
        return texts

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
