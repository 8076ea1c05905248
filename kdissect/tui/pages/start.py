"""The screen without a capture: recent captures, the interfaces, and a line for a path or ``-i …``."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Sequence
from typing import ClassVar, Protocol, cast

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from kdissect.capture.paths import captures_in, completed
from kdissect.live.rates import InterfaceRate
from kdissect.present.form import plural, size
from kdissect.present.sanitise import sanitise
from kdissect.settings.places import PLACES
from kdissect.tui.host import CAPTURE, Host, is_of_interfaces
from kdissect.tui.keys import bindings_of
from kdissect.tui.widgets.adapted import LegibleInput, LegibleOptions
from kdissect.tui.widgets.bars import Foot, SaidLine

LOOK_SECONDS = 1.0


class Looks(Protocol):
    """Gives the interfaces (:class:`~kdissect.live.rates.Rates`)."""

    def look(self, now: float) -> Sequence[InterfaceRate]:
        """The interfaces, with their traffic since the last call."""


class InterfaceList(LegibleOptions):
    """The list. It cannot have the focus: the page decides which line is chosen."""

    DEFAULT_CSS = "InterfaceList { height: auto; max-height: 50%; }"

    def __init__(self, rates: Looks) -> None:
        super().__init__(markup=False)
        self.can_focus = False
        self.border_title = "Capture from"
        self.names: list[str] = []
        self._rates = rates
        self._shown: list[Text] = []

    def on_mount(self) -> None:
        self.look()
        self.set_interval(LOOK_SECONDS, self.look)

    def look(self) -> None:
        """Update the traffic."""
        found = self._rates.look(time.monotonic())
        names, lines = [each.name for each in found], [line_of(each) for each in found]
        if names != self.names:
            chosen = self.chosen
            self.names = names
            self.clear_options()
            self.add_options(Option(each) for each in lines)
            self.highlighted = names.index(chosen) if chosen in names else None
        else:
            for at, line in enumerate(lines):
                if line != self._shown[at]:
                    self.replace_option_prompt_at_index(at, line)
        self._shown = lines

    @property
    def chosen(self) -> str | None:
        """The name of the interface that is highlighted."""
        return None if self.highlighted is None else self.names[self.highlighted]


def line_of(interface: InterfaceRate) -> Text:
    """An interface as a line."""
    rate = "" if interface.rate is None else f"{interface.rate:,.0f} packets/s"
    about = "down" if interface.state == "down" else sanitise(interface.description, 60)
    text = f"{sanitise(interface.name, 15):<15} {rate:>19}  {interface.address or '':<15} {about}"
    return Text(text.rstrip(), no_wrap=True, overflow="ellipsis")


HOW = """\
Elsewhere      tcpdump -i any -s 0 -w kafka.pcapng 'tcp port 9092'
Over ssh       kdissect tui -i ssh://root@broker-1/any
Is everything installed?   kdissect doctor"""
MOST_LISTED = 1_000
"""The most paths that are offered."""


class PathInput(LegibleInput, inherit_bindings=False):
    """The field. It has one line: it leaves the keys that scroll to the screen, whose footer and help name
    them."""

    BINDINGS: ClassVar[list[BindingType]] = Input.BINDINGS


class Start(Screen[None]):
    """The screen."""

    DEFAULT_CSS = """
    Start #title { height: 1; background: $panel; text-style: bold; }
    Start OptionList { border: round $primary; background: $surface; }
    Start #known { height: 1fr; }
    Start Input { border: round $primary; }
    Start #how { height: auto; color: $text-muted; padding: 0 2; }
    Start #where { background: $panel; color: $text-error; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("start")
    BINDING_GROUP_TITLE = PLACES["start"]

    def __init__(self, recent: Sequence[str], rates: Looks | None = None) -> None:
        super().__init__()
        self._recent = self._paths = recent
        self._rates = rates

    def compose(self) -> ComposeResult:
        yield Static(" kdissect: the network protocol analyzer for Apache Kafka", id="title", markup=False)
        path = PathInput(
            placeholder="the path of a capture or a folder, or -i eth0; Tab completes, Enter opens"
        )
        path.border_title = "Open"
        path.cursor_blink = False  # nothing is drawn while nothing changes
        yield path
        with Vertical():
            known = LegibleOptions(markup=False, id="known")
            known.can_focus = False
            known.border_title = "Opened last" if self._recent else "You have not opened anything yet"
            yield known
            if self._rates is not None:
                yield InterfaceList(self._rates)
        yield Static(HOW, id="how", markup=False)
        yield Foot()

    def on_mount(self) -> None:
        self.field.focus()
        self._list(self._paths, self.known.border_title)

    @property
    def field(self) -> Input:
        """The field for the path. It always has the focus, so that typed text goes there."""
        return self.query_one(Input)

    @property
    def known(self) -> OptionList:
        """The paths to choose from."""
        return self.query_one("#known", OptionList)

    @property
    def interfaces(self) -> InterfaceList | None:
        """The interfaces to choose from, if capturing is possible."""
        return next(iter(self.query(InterfaceList)), None)

    def show_message(self, text: str) -> None:
        """Write into the line above the keys."""
        self.query_one("#where", SaidLine).say(sanitise(text, None))

    def _list(self, paths: Sequence[str], title: object) -> None:
        """Offer other paths; an empty field means the first."""
        self._paths = paths
        known = self.known
        known.border_title = title if isinstance(title, Text) else Text(str(title))
        known.clear_options()
        known.add_options(Option(_line(each)) for each in paths)
        known.highlighted = 0 if paths and not self.field.value else None

    # -- keys -----------------------------------------------------------------------------------------

    def action_choose_path(self, step: int) -> None:
        """Put the path or interface below (1) or above (-1) into the field."""
        interfaces = self.interfaces
        names = [] if interfaces is None else interfaces.names
        choices = [*self._paths, *map(capture_of, names)]
        if not choices:
            return
        at, here = self.known.highlighted, None if interfaces is None else interfaces.highlighted
        if here is not None:
            at = len(self._paths) + here
        at = (0 if step > 0 else len(choices) - 1) if at is None else (at + step) % len(choices)
        self._write(choices[at])
        is_path = at < len(self._paths)
        self.known.highlighted = at if is_path else None
        if interfaces is not None:
            interfaces.highlighted = None if is_path else at - len(self._paths)

    def action_complete(self) -> None:
        """Complete the unique part of the path, and list all possible paths."""
        text, paths = completed(self.field.value)
        self._write(text)
        if len(paths) > 1:
            self._list(paths[:MOST_LISTED], "Possible paths")
        elif not paths:
            self.show_message("no path begins like this")

    def _write(self, text: str) -> None:
        """Put a path into the field."""
        field = self.field
        with field.prevent(Input.Changed):
            field.value = text
        field.cursor_position = len(text)
        self.show_message("")

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self.known.highlighted = None if event.value else 0 if self._paths else None
        if self.interfaces is not None:
            self.interfaces.highlighted = None
        self.show_message("")

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        at, interfaces = event.option_index, self.interfaces  # a click
        if interfaces is not None and event.option_list is interfaces:
            self._open(capture_of(interfaces.names[at]))
        else:
            self._open(self._paths[at])
        self.field.focus()

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        typed = event.value.strip()
        if is_of_interfaces(typed):
            self._open(typed)
        elif typed.strip("'\""):  # as file managers paste it
            self._open(os.path.expanduser(typed.strip("'\"")))
        elif self._paths:
            self._open(self._paths[self.known.highlighted or 0])
        else:
            self.show_message("write a path, or choose an interface with ↓")

    def _open(self, path: str) -> None:
        if os.path.isdir(path):
            self._list_folder(path)
            return
        wrong = cast(Host, self.app).open(path)
        if wrong is not None:
            self.show_message(wrong)

    def _list_folder(self, folder: str) -> None:
        try:
            paths = captures_in(folder)
        except OSError as error:
            self.show_message(f"{folder}: cannot be read: {error.strerror or error}")
            return
        self._write(os.path.join(folder, ""))
        count = sum(not path.endswith(os.sep) for path in paths)
        title = (
            f"{plural(count, 'capture')} in {sanitise(folder, 60)}" if count else "No capture in this folder"
        )
        self._list(paths[:MOST_LISTED], title)


def capture_of(interface: str) -> str:
    """The typed text for capturing from an interface."""
    return f"{CAPTURE} {shlex.quote(interface)}"


def _line(path: str) -> Text:
    """A capture with its size and age."""
    try:
        if path.endswith(os.sep) and os.path.isdir(path):
            return Text(f"{'folder':>9}  {'':16}  {sanitise(path, None)}", no_wrap=True, overflow="ellipsis")
        found = os.stat(os.path.expanduser(path))
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(found.st_mtime))
        about = f"{size(found.st_size):>9}  {day}"
    except OSError:
        about = f"{'is gone':>9}  {'':16}"
    return Text(f"{about}  {sanitise(path, None)}", no_wrap=True, overflow="ellipsis")
