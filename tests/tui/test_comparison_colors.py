"""Texts on the screen of ``kdissect diff`` can be read in both themes. No verdict is a colour alone."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from kdissect.settings.places import DIFF_VIEWS
from tests.tui.test_colors import THEMES, illegible
from tests.tui.test_comparison import press, with_screen

SIGNS = ("▲ worse", "▽ better", "◆ changed", "+ only-after", "− only-before", "not significant")


@pytest.mark.parametrize("theme", THEMES)
def test_every_text_can_be_read(theme: str) -> None:
    async def step(pilot: Pilot[None]) -> None:
        app = pilot.app
        app.theme = theme
        found: dict[tuple[str, ...], str] = {}
        for key in map(str, range(1, len(DIFF_VIEWS) + 1)):
            for keys in ((key,), ("down",), ("x",), ("escape",)):
                await press(pilot, *keys)
                await pilot.pause(0.05)
                found |= {(key, *colours): text for colours, text in illegible(app).items()}
        assert not found, "\n".join(f"{colours}: {text}" for colours, text in found.items())

    with_screen(step)


def test_each_row_has_its_verdict_as_a_word() -> None:
    async def step(pilot: Pilot[None]) -> None:
        for key in "123":
            lines = (await press(pilot, key)).splitlines()[3:6]
            rows = [each for each in lines if each.strip()]
            assert rows
            assert all(each.strip().startswith(SIGNS) for each in rows)

    with_screen(step)
