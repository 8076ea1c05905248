"""The scroll bar: it looks as Textual's does, and draws only lines that look different now.

``test_drawing.py`` compares it with Textual's on each screen.
"""

from __future__ import annotations

import asyncio
from unittest import mock

from textual.app import App, ComposeResult
from textual.geometry import Size
from textual.screen import Screen
from textual.strip import Strip

from kdissect.tui.widgets.adapted import Steady
from kdissect.tui.widgets.scroll_bar import LineScrollBar


class Numbers(Steady, can_focus=True):
    DEFAULT_CSS = "Numbers { height: 1fr; overflow-x: hidden; overflow-y: scroll; }"

    def render_line(self, y: int) -> Strip:
        return Strip.blank(self.columns)


class OneList(App[None]):
    def compose(self) -> ComposeResult:
        yield Numbers(id="first")
        yield Numbers(id="second")

    @property
    def numbers(self) -> Numbers:
        return self.query_one("#first", Numbers)


def test_a_small_step_draws_the_ends_of_the_bar_and_no_step_nothing() -> None:
    async def run() -> None:
        app = OneList()
        async with app.run_test(size=(20, 80)) as pilot:
            app.numbers.virtual_size = Size(18, 400)
            await pilot.pause(0.05)
            bar = app.numbers.vertical_scrollbar
            assert isinstance(bar, LineScrollBar)
            with mock.patch.object(bar, "render_line", side_effect=bar.render_line) as made:
                app.numbers.scroll_to(y=100, animate=False, immediate=True)
                await pilot.pause(0.05)
                assert 0 < made.call_count < 20
                made.reset_mock()
                bar.refresh()  # as Textual does, whatever has changed
                await pilot.pause(0.05)
                assert made.call_count == 0
                app.theme = "textual-light"
                await pilot.pause(0.05)
                assert made.call_count == bar.size.height

    asyncio.run(run())


def test_another_height_needs_one_layout_of_the_screen() -> None:
    async def run() -> None:
        app = OneList()
        async with app.run_test(size=(20, 80)) as pilot:
            app.numbers.virtual_size = Size(18, 400)
            await pilot.pause(0.05)
            with mock.patch.object(
                Screen, "_refresh_layout", autospec=True, side_effect=Screen._refresh_layout
            ) as laid_out:
                app.numbers.styles.height = 30
                await pilot.pause(0.1)
            assert laid_out.call_count == 1
            assert app.numbers.vertical_scrollbar.size.height == 30

    asyncio.run(run())


def test_a_bar_of_a_list_that_is_gone_has_no_lines() -> None:
    async def run() -> None:
        app = OneList()
        async with app.run_test(size=(20, 80)) as pilot:
            app.numbers.virtual_size = Size(18, 400)
            await pilot.pause(0.05)
            bar = app.numbers.vertical_scrollbar
            await app.numbers.remove()
            bar.position = 7  # a timer that goes off at the end

    asyncio.run(run())
