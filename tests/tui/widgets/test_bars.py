"""The lines at the edges of a screen."""

from __future__ import annotations

import asyncio

from rich.text import Text
from textual.app import App, ComposeResult

from kdissect.settings.places import PAGES
from kdissect.tui.app import Kdissect
from kdissect.tui.widgets.bars import KeysFooter, OneLine
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, running, screen_text, settle


class Lines(App[None]):
    """A line, and how often the screen was laid out."""

    laid_out = 0

    def compose(self) -> ComposeResult:
        yield OneLine(id="line")

    def on_mount(self) -> None:
        self.screen.screen_layout_refresh_signal.subscribe(self, self._count)

    def _count(self, _: object) -> None:
        self.laid_out += 1


def test_another_text_lays_nothing_out_anew() -> None:
    async def run() -> None:
        app = Lines()
        async with app.run_test(size=(40, 5)) as pilot:
            await pilot.pause()
            before = app.laid_out
            line = app.query_one(OneLine)
            for text in ("one", "two", "a longer one"):
                line.show(Text(text))
                await pilot.pause()
                assert text in str(line.render_line(0).text)
            assert app.laid_out == before
            line.show(Text("a longer one", "bold"))
            await pilot.pause()
            assert any(segment.style is not None and segment.style.bold for segment in line.render_line(0))

    asyncio.run(run())


def test_a_text_without_room_ends_with_a_sign_of_that() -> None:
    async def run() -> None:
        app = Lines()
        async with app.run_test(size=(20, 5)) as pilot:
            app.query_one(OneLine).show(Text(" all connections of a client", no_wrap=True))
            await pilot.pause()
            assert app.query_one(OneLine).render_line(0).text == " all connections of…"

    asyncio.run(run())


def test_the_footer_says_where_it_leaves_keys_out() -> None:
    async def run() -> None:
        left_out = set()
        app = app_of(CAPTURES / "errors.pcapng", home=None)
        async with running(app, 60, 24) as pilot:
            assert isinstance(app, Kdissect)
            for width in (60, 80, 200):
                await pilot.resize_terminal(width, 24)
                for name in PAGES:
                    app.action_page(name)
                    await settle(pilot)
                    footer, line = app.screen.query_one(KeysFooter), screen_text(app).splitlines()[-1]
                    is_whole = len(footer.keys) == len(footer._keys)
                    left_out.add((width, is_whole))
                    assert line.endswith("? Help" if is_whole else "? All keys"), (width, name)
                    assert len(line) < width
        assert {(60, False), (80, False), (200, True)} <= left_out
        assert (200, False) not in left_out

    asyncio.run(run())
