"""Every frame is drawn that a terminal would show; other tests draw only what they look at."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest import mock

import pytest
from textual._compositor import Compositor, CompositorUpdate, LayoutUpdate
from textual._styles_cache import StylesCache
from textual.app import App, ComposeResult
from textual.containers import Vertical
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from kdissect.settings.screens import Settings
from kdissect.tui.app import Kdissect
from kdissect.tui.drawing import ContentLines, SparingCompositor
from kdissect.tui.widgets.scroll_bar import LineScrollBar
from tests.amount import LONG, some
from tests.cli.run import CAPTURES
from tests.feed.feeds import decoded
from tests.tui.canvas import Canvas
from tests.tui.snapshots import app_of, press, running, screen_text, settle, shown_after

KEYS = ("down", "pagedown", "end", "up", "home", "tab", "down", "question_mark", "escape")


class OnCanvas(Kdissect):
    """The application on a terminal that only draws."""

    canvas: Canvas

    def _display(self, screen: Any, renderable: Any) -> None:
        super()._display(screen, renderable)
        if screen is self.screen and isinstance(renderable, CompositorUpdate):
            self.canvas.write(renderable.render_segments(self.console))


def drawn_by_textual(app: Kdissect) -> Canvas:
    """What Textual draws without anything of ours, if it draws the whole screen."""
    compositor, canvas = app.screen._compositor, Canvas(*app.size)
    before = {widget: widget._styles_cache for widget in compositor.visible_widgets}
    for widget in before:
        widget._styles_cache = StylesCache()
        if isinstance(widget, LineScrollBar):
            widget._dirty_regions.add(widget.size.region)
    with mock.patch.object(LineScrollBar, "render_line", Widget.render_line):
        chops = Compositor._render_chops(compositor, compositor.size.region, lambda _: True)
    for widget, cache in before.items():
        widget._styles_cache = cache
    drawn = LayoutUpdate([each.values() for each in chops], compositor.size.region)
    canvas.write("\x1b[1;1H" + drawn.render_segments(app.console))
    return canvas


def differences(one: Canvas, other: Canvas) -> list[tuple[int, int, object, object]]:
    """The cells that differ."""
    return [
        (y, x, *both)
        for y, lines in enumerate(zip(one.lines, other.lines, strict=True))
        for x, both in enumerate(zip(*lines, strict=True))
        if both[0] != both[1]
    ]


@pytest.mark.parametrize("name", some(["errors.pcapng", "incidents/member-killed.pcapng.gz"], 1))
@pytest.mark.parametrize(
    ("size", "theme"), [((120, 40), "textual-dark"), ((80, 24), "textual-light")][: 2 if LONG else 1]
)
def test_a_terminal_shows_after_each_key_what_textual_draws_at_once(
    name: str, size: tuple[int, int], theme: str
) -> None:
    async def run() -> None:
        app = OnCanvas(decoded(CAPTURES / name), settings=Settings(page="exchanges"))
        app.canvas = Canvas(*size)
        async with running(app, *size, drawn=True) as pilot:
            app.theme = theme
            for page in list(app.pages):
                app.action_page(page)
                for key in ("", *KEYS):
                    await press(pilot, *([key] if key else []))
                    assert differences(app.canvas, drawn_by_textual(app)) == [], (page, key)

    asyncio.run(run())


@pytest.mark.parametrize("name", some(["errors.pcapng", "incidents/member-killed.pcapng.gz"], 1))
def test_what_is_drawn_frame_by_frame_is_what_is_drawn_at_once(name: str) -> None:
    async def run() -> None:
        app = app_of(CAPTURES / name)
        async with running(app, drawn=True) as pilot:
            for page in list(app.pages):
                app.action_page(page)
                await settle(pilot)
                before = await shown_after(pilot, "down", "end", "up")
                app.screen.refresh(layout=True)
                await settle(pilot)
                assert screen_text(app) == before, page

    asyncio.run(run())


class Lined(Widget):
    """A widget that counts the lines that it makes."""

    DEFAULT_CSS = (
        "Lined { height: 4; } Lined.-bordered { border-top: hkey red; } Lined.-beside { padding: 0 1; }"
    )

    def __init__(self, classes: str = "") -> None:
        super().__init__(classes=classes)
        self._styles_cache = ContentLines()
        self.made: list[int] = []

    def render_line(self, y: int) -> Strip:
        self.made.append(y)
        return Strip.blank(self.size.width)


class Stacked(App[None]):
    """Three such widgets, one below the other, in a container."""

    def compose(self) -> ComposeResult:
        with Vertical():
            yield from (Lined(), Lined("-bordered"), Lined("-beside"))

    def on_mount(self) -> None:
        self.screen._compositor = SparingCompositor()
        self.screen.refresh(layout=True)


def test_only_lines_are_made_that_changed_and_no_line_that_is_covered() -> None:
    async def run() -> None:
        app = Stacked()
        async with app.run_test(size=(20, 12)) as pilot:
            await pilot.pause()
            first, second, third = lined = list(app.query(Lined))
            for each in lined:
                each.made.clear()
            with (
                mock.patch.object(Vertical, "render_lines") as behind,
                mock.patch.object(Screen, "render_lines") as below,
            ):
                first._styles_cache.clear()
                third._styles_cache.clear()
                second.refresh()
                first.refresh(first.size.region.crop_size((20, 1)))
                await pilot.pause(0.05)
            assert first.made == [0]
            assert second.made == [0, 1, 2]
            assert third.made == []
            assert not behind.called
            assert not below.called

    asyncio.run(run())


def test_a_line_with_nothing_beside_it_is_the_line_of_the_contents() -> None:
    async def run() -> None:
        app = Stacked()
        async with app.run_test(size=(20, 12)) as pilot:
            await pilot.pause()
            for each, is_same in zip(app.query(Lined), (True, True, False), strict=True):
                last = each._styles_cache.render_widget(each, each.size.region.translate((0, 0)))[-1]
                own = each.render_line(3).apply_filter(app._filters[0], each.background_colors[1])
                assert (last is own) == is_same

    asyncio.run(run())
