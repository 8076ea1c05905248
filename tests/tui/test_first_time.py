"""Who uses the screens for the first time is told where help is; once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from kdissect.settings.screens import Settings
from kdissect.settings.words import HINT as WORDS
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, screen_text
from tests.tui.terminals import Terminal

HINT = b"finds commands"
CTRL_Q = b"\x11"


def begun(tmp_path: Path, *arguments: object, shown: bytes = b"rules judged", keys: bytes = b"") -> bytes:
    """What was written on the terminal when the screens had come and were ended.

    :param shown: what must come before they are.
    :param keys: pressed first.
    """
    folders: dict[str, Any] = {
        f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("STATE", "CONFIG", "CACHE")
    }
    terminal = Terminal(*arguments, CAPTURES / "errors.pcapng", **folders)
    try:
        terminal.until(b"52 exchanges")
        terminal.until(shown)
        text = terminal.text
        terminal.send(keys + CTRL_Q)
        assert terminal.end() == 0
        return text + terminal.text
    finally:
        terminal.close()


def test_the_hint_comes_once(tmp_path: Path) -> None:
    begun(tmp_path, shown=HINT)
    assert HINT not in begun(tmp_path, "tui", "--fresh")


def test_the_hint_covers_nothing() -> None:
    async def lines(is_first: bool) -> list[str]:
        app = app_of(CAPTURES / "errors.pcapng", settings=Settings(is_first=is_first))
        async with running(app, 80, 24) as pilot:
            await press(pilot, "e", "enter")
            return screen_text(app).splitlines()

    first, usual = asyncio.run(lines(True)), asyncio.run(lines(False))
    assert f" {WORDS}" in first
    for lines_shown in (first, usual):
        assert any("errorCode: 17 (INVALID_TOPIC_EXCEPTION)" in line for line in lines_shown)
    assert first[-1] == usual[-1]


def test_fresh_screens_leave_what_was_saved_as_it_is(tmp_path: Path) -> None:
    """``kdissect diff`` opens either side so."""
    begun(tmp_path, "tui", "--fresh", shown=HINT)
    assert HINT not in begun(tmp_path, keys=b"3")
    (left,) = (tmp_path / "state").rglob("screens.json")
    before = left.read_bytes()
    assert b'"topics"' in before
    begun(tmp_path, "tui", "--fresh", keys=b"4")
    assert left.read_bytes() == before
