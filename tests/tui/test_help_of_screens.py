"""What help says of a screen in some lines names keys that work there."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator

from textual.screen import Screen

from kdissect.settings.places import PAGES
from kdissect.settings.words import ABOUT
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, settle, shown_after

_KEY = re.compile(r"(?<![\w'>-])(Enter|Esc|Tab|Ctrl-F|[b-zA-Z=!+\[\]/←→])(?![\w'-])")
"""A key in a sentence; ``a`` is a word."""
_NAMES = {
    "Enter": "enter",
    "Esc": "escape",
    "Tab": "tab",
    "Ctrl-F": "ctrl+f",
    "!": "exclamation_mark",
    "+": "plus",
    "=": "equals_sign",
    "[": "left_square_bracket",
    "]": "right_square_bracket",
    "/": "slash",
    "←": "left",
    "→": "right",
}
_TO_SCREENS = {
    "exchanges": ("1",),
    "story": ("1", "i"),
    "ladder": ("1", "L"),
}


def keys_named(lines: tuple[str, ...]) -> Iterator[str]:
    """The keys that sentences name, as Textual has them."""
    for line in lines:
        for key in _KEY.findall(line):
            yield _NAMES.get(key, key)


def bound(screen: Screen[None]) -> set[str]:
    """The keys that do something on a screen, in one of its panes."""
    return {key for pane in (screen, *screen.focus_chain) for key in pane._bindings.key_to_bindings} | {
        key for key, active in screen.active_bindings.items() if active.enabled
    }


def test_every_key_that_is_named_works_there() -> None:
    async def run() -> None:
        app = app_of(CAPTURES / "incidents" / "member-killed.pcapng.gz", home=None)
        async with running(app, 80, 24) as pilot:
            for name in (*PAGES, "story", "ladder"):
                if name in _TO_SCREENS:
                    await press(pilot, *_TO_SCREENS[name])
                else:
                    app.action_page(name)
                    await settle(pilot)
                assert app.screen is app.pages[name]
                named = set(keys_named(ABOUT[name]))
                assert named <= bound(app.screen), (name, named - bound(app.screen))
                shown = (await shown_after(pilot, "question_mark")).splitlines()
                assert all(any(f" {line} " in each for each in shown) for line in ABOUT[name]), name
                await press(pilot, "escape")

    asyncio.run(run())
