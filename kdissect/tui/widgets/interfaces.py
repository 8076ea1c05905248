"""The interfaces of this machine, with what goes on there: to choose one from."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from rich.text import Text
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from kdissect.live.rates import Interface
from kdissect.present.sanitise import sanitise

LOOK_SECONDS = 1.0


class Looks(Protocol):
    """What tells of interfaces (:class:`~kdissect.live.rates.Rates`)."""

    def look(self, now: float) -> Sequence[Interface]:
        """The interfaces, with what went on since the look before."""


class InterfaceList(OptionList):
    """The list. It never has the focus; what is chosen in it is somebody else's to decide."""

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
        """See what goes on now."""
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


def line_of(interface: Interface) -> Text:
    """An interface as a line."""
    rate = "" if interface.rate is None else f"{interface.rate:,.0f} packets/s"
    about = "down" if interface.state == "down" else sanitise(interface.description, 60)
    text = f"{sanitise(interface.name, 15):<15} {rate:>19}  {interface.address or '':<15} {about}"
    return Text(text.rstrip(), no_wrap=True, overflow="ellipsis")
