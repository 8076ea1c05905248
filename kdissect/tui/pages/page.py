"""What the screens share: the status line at the top, a line for what was done, the keys between them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar, cast

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Static

from kdissect.present.form import plural
from kdissect.present.sanitise import sanitise

if TYPE_CHECKING:
    from kdissect.tui.app import Kdissect


class Page(Screen[None]):
    """One of the screens that the numbers lead to."""

    DEFAULT_CSS = """
    Page #status { height: 1; background: $panel; color: $foreground; }
    Page #where { height: 1; background: $panel; color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "app.page('exchanges')", "Exchanges", show=False),
        Binding("2", "app.page('connections')", "Connections"),
        Binding("6", "app.page('problems')", "Errors"),
        Binding("question_mark,f1", "app.help", "Help", key_display="?"),
        Binding("escape", "out", "Back", show=False),
        Binding("q", "out_or_end", "Back"),
    ]

    @property
    def kdissect(self) -> Kdissect:
        """The application."""
        return cast("Kdissect", self.app)

    def index_grew(self) -> None:
        """There is more in the index, or the decoder ended."""
        self.query_one("#status", Static).update(self.status())

    def on_screen_resume(self) -> None:
        self.index_grew()

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

    def action_out(self) -> None:
        self.kdissect.action_page("exchanges")

    def action_out_or_end(self) -> None:
        self.action_out()
