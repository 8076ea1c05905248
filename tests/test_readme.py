"""The README's examples print what the README shows.

``python -m tests.test_readme`` writes the outputs anew.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
EXAMPLE = re.compile(r"(<!-- run -->\n```console\n\$ (kdissect [^\n]*)\n)(.*?)(```\n)", re.S)


def output_of(command: str) -> str:
    words = [sys.executable, "-m", *shlex.split(command)]
    run = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    return run.stdout


@pytest.mark.parametrize("command", [match[2] for match in EXAMPLE.finditer(README.read_text())])
def test_an_example_prints_what_the_readme_shows(command: str) -> None:
    (shown,) = [match[3] for match in EXAMPLE.finditer(README.read_text()) if match[2] == command]
    assert output_of(command) == shown


def test_there_are_examples() -> None:
    assert len(EXAMPLE.findall(README.read_text())) >= 4


if __name__ == "__main__":
    text = EXAMPLE.sub(lambda m: m[1] + output_of(m[2]) + m[4], README.read_text())
    README.write_text(text)
