"""Kinds of terminals."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os
from kdissect.cli.terminals import heed_terminals_without_colours
heed_terminals_without_colours()
print(os.environ.get("NO_COLOR"))
"""


@pytest.mark.parametrize(
    ("term", "colorterm", "is_without"),
    [
        ("xterm-mono", None, True),
        ("vt100", None, True),
        ("vt100", "truecolor", False),
        ("xterm-256color", None, False),
        ("no-such-terminal", None, False),
    ],
)
def test_a_terminal_without_colours_is_drawn_on_without_them(
    term: str, colorterm: str | None, is_without: bool
) -> None:
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLORTERM")}
    env |= {"TERM": term} | ({} if colorterm is None else {"COLORTERM": colorterm})
    # A process of its own: terminfo is read once in each.
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ("1" if is_without else "None")
