"""The screen without a capture: what was opened last, a line for a path, what to do to capture."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from kdissect.present.form import size
from kdissect.present.sanitise import sanitise
from kdissect.tui.actions import PLACES
from kdissect.tui.keys import bindings_of

if TYPE_CHECKING:
    from kdissect.tui.app import Kdissect

HOW = """\
Capture with   tcpdump -i any -s 0 -w kafka.pcapng 'tcp port 9092'
Look at once   tcpdump -i any -U -s 0 -w - 'tcp port 9092' | kdissect tui -
Whether all is installed that is needed:   kdissect doctor"""


class Start(Screen[None]):
    """The screen."""

    DEFAULT_CSS = """
    Start #title { height: 1; background: $panel; text-style: bold; }
    Start OptionList { height: 1fr; border: round $primary; background: $surface; }
    Start Input { border: round $primary; }
    Start #how { height: auto; color: $text-muted; padding: 0 2; }
    Start #where { height: 1; background: $panel; color: $text-error; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("start")
    BINDING_GROUP_TITLE = PLACES["start"]

    def __init__(self, recent: Sequence[str]) -> None:
        super().__init__()
        self._recent = recent

    def compose(self) -> ComposeResult:
        yield Static(" kdissect: the network protocol analyzer for Apache Kafka", id="title", markup=False)
        path = Input(placeholder="the path of a capture: pcap or pcapng, may be compressed", id="path")
        path.border_title = "Open"
        path.cursor_blink = False  # nothing is drawn while nothing changes
        yield path
        with Vertical():
            known = OptionList(*(Option(_line(each)) for each in self._recent), markup=False)
            known.border_title = "Opened last" if self._recent else "Nothing was opened yet"
            yield known
        yield Static(HOW, id="how", markup=False)
        yield Static(id="where", markup=False)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self.query_one(OptionList if self._recent else Input).focus()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self._open(self._recent[event.option_index])

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        path = event.value.strip().strip("'\"")  # as file managers paste it
        if path:
            self._open(os.path.expanduser(path))

    def _open(self, path: str) -> None:
        wrong = cast("Kdissect", self.app).open(path)
        if wrong is not None:
            self.query_one("#where", Static).update(Text(f" {sanitise(wrong, None)}", no_wrap=True))


def _line(path: str) -> Text:
    """A capture with its size and age."""
    try:
        found = os.stat(path)
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(found.st_mtime))
        about = f"{size(found.st_size):>9}  {day}"
    except OSError:
        about = f"{'is gone':>9}  {'':16}"
    return Text(f"{about}  {sanitise(path, None)}", no_wrap=True, overflow="ellipsis")
