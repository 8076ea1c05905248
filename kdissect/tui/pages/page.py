"""What the screens share: the status line at the top, the names of the screens, a line for what was done, the
keys at the bottom."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar, cast

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widgets import Footer, Static

from kdissect.present.form import plural
from kdissect.present.sanitise import sanitise
from kdissect.tui.keys import bindings_of
from kdissect.tui.widgets.filter_line import FilterLine
from kdissect.tui.widgets.tabs import Tabs

if TYPE_CHECKING:
    from kdissect.tui.app import Kdissect

LOW = 30
"""With fewer lines than these the names of the screens are left out."""


class Page(Screen[None]):
    """One of the screens that the numbers lead to. A page gives its :meth:`body`, and hears what changed from
    :meth:`index_grew` and :meth:`filter_changed`."""

    DEFAULT_CSS = """
    Page #status { height: 1; background: $panel; color: $foreground; }
    Page #where { height: 1; background: $panel; color: $text-muted; }
    Page.-low Tabs { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("page")
    BINDING_GROUP_TITLE = "On this screen"

    def compose(self) -> ComposeResult:
        yield Static(id="status", markup=False)
        yield Tabs(self.kdissect.titles(), self.kdissect.name_of(self))
        yield FilterLine(self.kdissect.shown, self.kdissect.remembered)
        yield from self.body()
        yield Static(id="where", markup=False)
        yield Footer(show_command_palette=False)

    def body(self) -> ComposeResult:
        """What the page has between the lines that all have."""
        yield from ()

    @property
    def kdissect(self) -> Kdissect:
        """The application."""
        return cast("Kdissect", self.app)

    def index_grew(self) -> None:
        """There is more in the index, or the decoder ended."""
        self.query_one("#status", Static).update(self.status())
        self.query_one(FilterLine).show()

    def filter_changed(self) -> None:
        """Other exchanges are shown (:attr:`Kdissect.shown`)."""
        self.index_grew()

    def filter_went_on(self, found: bool) -> None:
        """The second stage of the filter went on; ``found``: there are more exchanges to show."""
        if found:
            self.filter_changed()
        else:
            self.query_one(FilterLine).show()

    def marks_changed(self) -> None:
        """Something was marked or commented (:attr:`Kdissect.marks`)."""

    def chosen_place(self) -> int | None:
        """The place in the index of the exchange under the cursor; None if there is none."""
        return None

    def on_screen_resume(self) -> None:
        self.index_grew()

    def on_resize(self) -> None:
        self.set_class(self.app.size.height < LOW, "-low")

    @on(Tabs.Chosen)
    def _tab_chosen(self, event: Tabs.Chosen) -> None:
        self.kdissect.action_page(event.name)

    def shown(self) -> int:
        """How many exchanges the list shows."""
        return len(self.kdissect.index)

    def status(self) -> Text:
        """What is there so far."""
        app, index = self.kdissect, self.kdissect.index
        names = [os.path.basename(path) for path in app.feed.source.paths]
        name = sanitise(names[0], 30) + (f" +{len(names) - 1}" if len(names) > 1 else "")
        out = Text(f" {name} ", "bold", no_wrap=True, overflow="ellipsis")
        if app.ended is None:
            out.append(f" {app.share()} ", "reverse")
        elif app.ended.reason is not None:
            out.append(f" stopped: {sanitise(app.ended.reason, None)} ", "bold red reverse")
        out.append(f" {plural(index.packets, 'packet')}  {plural(len(index), 'exchange')}")
        if self.shown() != len(index):
            out.append(f"  {self.shown():,} shown", "bold")
        errors = sum(count for _, count, _, _ in app.errors)
        out.append(f"  ✗ {plural(errors, 'error')}", "red" if errors else "")
        faults = index.fault_count()
        out.append(f"  ! {plural(faults, 'fault')}", "red" if faults else "")
        return out

    def say(self, text: str) -> None:
        """Write into the line above the keys."""
        self.query_one("#where", Static).update(Text(f" {sanitise(text, None)}", no_wrap=True))

    def action_filter(self) -> None:
        self.query_one(FilterLine).open()

    def action_filter_off(self) -> None:
        self.kdissect.shown.toggle()

    def action_out(self) -> None:
        self.kdissect.action_page("exchanges")

    def action_out_or_end(self) -> None:
        self.action_out()
