"""Running the command line, inside the test's process and outside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kdissect.cli import main

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).resolve().parents[2]
CAPTURES = ROOT / "captures"


class Ran(NamedTuple):
    """What became of a run."""

    code: int
    out: bytes
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.decode("utf-8").split("\n")[:-1]


def run(capsysbinary: pytest.CaptureFixture[bytes], *arguments: object) -> Ran:
    """Run a command in this process."""
    capsysbinary.readouterr()
    code = main([str(argument) for argument in arguments])
    out, err = capsysbinary.readouterr()
    return Ran(code, out, err.decode("utf-8"))


def spawn(*arguments: object, stdin: bytes = b"", **environment: str) -> Ran:
    """Run a command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "kdissect", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, **environment},
        timeout=60,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr.decode("utf-8"))
