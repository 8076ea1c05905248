"""Every text on every screen can be read, in both themes: measured on what is drawn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from rich.color import Color
from rich.color_triplet import ColorTriplet
from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.color import Color as ThemeColor
from textual.theme import BUILTIN_THEMES

from kdissect.tui.colors import LEAST, contrast, legible, themes, with_visible_bars
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, screen_text, settle

DRAWN = frozenset("─│┌┐└┘├┤▁▂▃▄▅▆▇█▔▏▎▍▌▋▊▉╸╺━┃╭╮╰╯┼╌▕▐▀🔎 ")
"""Borders, bars, scroll bars and a picture: no text."""
KEYS = {
    "story": ("1", "e", "i"),
    "ladder": ("1", "e", "L"),
    "exchanges": ("e", "x"),
    "findings": ("left",),
    "groups": ("j",),
    "records": ("enter",),
}


def _segments(app: App[None]) -> Iterator[Segment]:
    for strip in app.screen._compositor.render_strips():
        yield from strip


def illegible(app: App[None]) -> dict[tuple[str, str], str]:
    """By text colour and background that are too close: a text drawn so."""
    found = {}
    for segment in _segments(app):
        style = segment.style
        text = segment.text.strip()
        if style is None or not text or set(text) <= DRAWN or style.color is None or style.bgcolor is None:
            continue
        one, other = style.color.get_truecolor(), style.bgcolor.get_truecolor()
        if style.dim:
            one = ColorTriplet(*((a + b) // 2 for a, b in zip(one, other, strict=True)))
        if contrast(one, other) < LEAST:
            found[one.hex, other.hex] = f"{contrast(one, other):.2f} {text}"
    return found


BARS = frozenset(("scrollbar", "scrollbar-hover", "scrollbar-active", "surface", "scrollbar-background"))
THEMES = "textual-dark", "textual-light"


def test_every_text_can_be_read() -> None:
    async def run() -> None:
        app = app_of(CAPTURES / "errors.pcapng")
        async with running(app) as pilot:
            found: dict[tuple[str, str, str, str], str] = {}
            for name in app.pages:
                app.theme = THEMES[0]  # another comes while the page is shown
                app.action_page(name)
                await settle(pilot)
                await press(pilot, *KEYS.get(name, ()))
                for theme in THEMES:
                    app.theme = theme
                    await pilot.pause(0.1)
                    found |= {(name, theme, *colours): text for colours, text in illegible(app).items()}
            assert not found, "\n".join(f"{colours}: {text}" for colours, text in found.items())

    asyncio.run(run())


DIALOGS = (
    *(("y",), ("w",), ("O",), ("c",), ("semicolon",), ("ctrl+f",), ("question_mark",), ("ctrl+p",)),
    *(("question_mark", "d"), ("question_mark", "d", "enter"), ("slash",), ("slash", "e")),
)
"""Keys that open what lies over a screen, or a line to write into."""


def test_every_text_of_a_dialog_can_be_read() -> None:
    async def run() -> None:
        app = app_of(CAPTURES / "errors.pcapng")
        async with running(app) as pilot:
            found: dict[tuple[tuple[str, ...], str, str, str], str] = {}
            for keys in DIALOGS:
                below = screen_text(app)
                for key in keys:
                    await pilot.press(key)
                await pilot.pause(0.1)
                assert screen_text(app) != below, keys
                for theme in THEMES:
                    app.theme = theme
                    await pilot.pause(0.1)
                    found |= {(keys, theme, *colours): text for colours, text in illegible(app).items()}
                for _ in range(len(keys) + 1):
                    await pilot.press("escape")
                await pilot.pause(0.1)
            assert not found, "\n".join(f"{colours}: {text}" for colours, text in found.items())

    asyncio.run(run())


def _style(text: str, behind: str) -> Style:
    return Style(color=Color.parse(text), bgcolor=Color.parse(behind))


def test_a_colour_that_can_be_read_stays() -> None:
    style = _style("#000000", "#ffffff")
    assert legible(style) == style
    assert contrast(ColorTriplet(0, 0, 0), ColorTriplet(255, 255, 255)) == pytest.approx(21)
    assert contrast(ColorTriplet(7, 7, 7), ColorTriplet(7, 7, 7)) == 1


@pytest.mark.parametrize("behind", ["#ffffff", "#d8d8d8", "#808080", "#1e1e1e", "#000000", "#ff0000"])
@pytest.mark.parametrize("text", ["#ffa62b", "#808080", "#ff0000", "#0178d4"])
def test_a_colour_that_cannot_be_read_is_changed_until_it_can(text: str, behind: str) -> None:
    made = legible(_style(text, behind))
    assert made.color is not None
    assert contrast(made.color.get_truecolor(), Color.parse(behind).get_truecolor()) >= LEAST


def test_the_terminals_own_colours_stay() -> None:
    style = Style(color="red", bgcolor="default")
    assert legible(style) == style


@pytest.mark.parametrize("name", themes())
def test_scroll_bars_can_be_seen_in_every_theme(name: str) -> None:
    theme = BUILTIN_THEMES[name]
    given = {**theme.to_color_system().generate(), **theme.variables}
    found = {key: ThemeColor.parse(value) for key, value in with_visible_bars(given).items() if key in BARS}
    if any(each.ansi is not None for each in found.values()):
        assert with_visible_bars(given) == given
        return
    for bar in ("scrollbar", "scrollbar-hover", "scrollbar-active"):
        for behind in ("surface", "scrollbar-background"):
            pair = ColorTriplet(*found[bar].rgb), ColorTriplet(*found[behind].rgb)
            assert contrast(*pair) >= 3, (bar, behind)
