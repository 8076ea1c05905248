"""The application: it asks the decoder ten times a second what is new, and shows one screen of several."""

from __future__ import annotations

import os
from typing import ClassVar

from rich.text import Text
from textual.app import App
from textual.binding import Binding, BindingType

from kdissect.present.options import Options
from kdissect.tui.feed.decoder import Batch, Ended, Feed
from kdissect.tui.feed.index import Index
from kdissect.tui.pages.connections import ConnectionsPage
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.pages.page import Page
from kdissect.tui.pages.problems import ProblemsPage
from kdissect.tui.widgets.dialogs import Help

TICK_SECONDS = 0.1


class Kdissect(App[None]):
    """The screens over one feed."""

    TITLE = "kdissect"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+q", "quit", "Quit", show=False)]

    def __init__(
        self,
        feed: Feed,
        options: Options = Options(embedded=True),  # noqa: B008 - it cannot be changed
        *,
        time_form: str = "r",
    ) -> None:
        super().__init__()
        self.feed = feed
        self.options = options
        self.time_form = time_form
        self.index = Index()
        self.ended: Ended | None = None
        self.errors: list[tuple[str, int, int, int]] = []
        """Errors by name, as the index counts them."""

    def on_mount(self) -> None:
        self._poll()
        self.pages: dict[str, Page] = {
            "exchanges": ExchangesPage(),
            "connections": ConnectionsPage(),
            "problems": ProblemsPage(),
        }
        for name, page in self.pages.items():
            self.install_screen(page, name)  # so that it stays when another is shown
        self.push_screen("exchanges")
        if self.ended is None:
            self._timer = self.set_interval(TICK_SECONDS, self._tick)

    def _poll(self) -> bool:
        """Take in what came; gives whether anything did."""
        before = len(self.index)
        messages = self.feed.poll()
        for message in messages:
            if isinstance(message, Batch):
                self.index.add(message)
            else:
                self.ended = message
        if len(self.index) != before:
            self.errors = self.index.errors()
        return bool(messages)

    def _tick(self) -> None:
        if self._poll():
            for screen in self.screen_stack:
                if isinstance(screen, Page):
                    screen.index_grew()
        if self.ended is not None:
            self._timer.stop()

    def _fatal_error(self) -> None:
        """A defect of ours ends the screens with one line. Textual would print a traceback with the values
        of variables, which may be secrets."""
        error = self._exception
        said = f"a defect in kdissect, please report it: {type(error).__name__}"
        self.panic(Text(f"kdissect: {said} (KDISSECT_DEBUG=1 shows where)"))
        if os.environ.get("KDISSECT_DEBUG"):
            super()._fatal_error()

    def share(self) -> str:
        """How far reading is. Of compressed files that cannot be told: more comes out than goes in."""
        total = self.feed.source.bytes_in_all
        read = self.index.bytes_read
        return f"{100 * read // total} %" if 0 < read <= total else "reading"

    def action_page(self, name: str) -> None:
        """Show one of the screens."""
        if self.screen is not self.pages[name]:
            self.switch_screen(name)

    def show_connection(self, connection: int) -> None:
        """Show the exchanges of a connection."""
        page = self.pages["exchanges"]
        assert isinstance(page, ExchangesPage)
        self.action_page("exchanges")
        page.only(connection)

    def show_exchange(self, place: int) -> None:
        """Show the exchange at a place of the index."""
        page = self.pages["exchanges"]
        assert isinstance(page, ExchangesPage)
        self.action_page("exchanges")
        page.go_to(place)

    def action_help(self) -> None:
        self.push_screen(Help())
