"""Who uses the screens for the first time is told where help is; once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cli.run import CAPTURES
from tests.tui.terminals import Terminal

HINT = b"finds commands"


def begun(tmp_path: Path, *arguments: object, shown: bytes = b"rules judged") -> bytes:
    """What was written on the terminal when the screens had come and were ended.

    :param shown: what must come before they are.
    """
    folders: dict[str, Any] = {
        f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("STATE", "CONFIG", "CACHE")
    }
    terminal = Terminal(*arguments, CAPTURES / "errors.pcapng", **folders)
    try:
        terminal.until(b"52 exchanges")
        terminal.until(shown)
        text = terminal.text
        terminal.send(b"q")
        assert terminal.end() == 0
        return text + terminal.text
    finally:
        terminal.close()


def test_the_hint_comes_once(tmp_path: Path) -> None:
    begun(tmp_path, shown=HINT)
    assert HINT not in begun(tmp_path)
    assert HINT not in begun(tmp_path, "tui", "--fresh")
