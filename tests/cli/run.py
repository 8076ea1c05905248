"""Running the command line, inside the test's process and outside."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple
from unittest import mock

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


def run_with(stdin: bytes, *arguments: object, **environment: str) -> Ran:
    """Run a command in this process, with a pipe as its standard input and these variables.

    It costs a tenth of :func:`spawn`, and is the same but for what a process does as it begins and ends.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with (
        _piped(stdin),
        open(0, encoding="utf-8", closefd=False) as piped,
        mock.patch.dict(os.environ, environment),
        mock.patch.object(sys, "stdin", piped),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = main([str(argument) for argument in arguments])
    said, told = (each.buffer.getvalue() for each in (out, err))
    return Ran(code, said, told.decode("utf-8"))


@contextmanager
def _piped(data: bytes) -> Iterator[None]:
    """These bytes come through a pipe on descriptor 0."""
    before, (reader, writer) = os.dup(0), os.pipe()
    os.dup2(reader, 0)
    os.close(reader)

    def write() -> None:
        with suppress(BrokenPipeError), open(writer, "wb") as pipe:
            pipe.write(data)

    thread = Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        os.dup2(before, 0)  # the last reader goes with it
        os.close(before)
        thread.join()


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


def ask_no_tshark(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what else ``doctor`` tells: asking tshark takes nine tenths of its time.
    ``test_wireshark.py`` has its row."""
    monkeypatch.setattr("kdissect.cli.commands.doctor.wireshark_row", lambda: ("wireshark", "absent", ""))
