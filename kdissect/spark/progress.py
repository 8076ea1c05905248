"""The progress of tasks. Each task writes a note into a folder that it shares with the driver, which adds the
notes up.

A note is a file of one line, replaced as a whole. It has the bytes of captures that were read. It also has
the bytes of messages and the exchanges that became rows, and the faults of files.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from typing import Any, NamedTuple, Protocol

from kdissect.capture.reader import PACKET_OVERHEAD
from kdissect.present.form import size
from kdissect.wording import plural

NOTE_EVERY = 0.5
SHOW_EVERY = 0.5
_BAR = 20
"""The cells of the bar."""
_PACKETS_BETWEEN = 2_048
"""The number of packets between two looks at the clock."""
_SERIAL = itertools.count()
"""The numbers of notes. A worker does many tasks, one after another, and each has its own note."""


class Done(NamedTuple):
    """The work that tasks have done."""

    read: int = 0
    """Bytes of captures that were read."""
    decoded: int = 0
    """Bytes of messages that were decoded."""
    exchanges: int = 0
    damage: int = 0
    """Faults of files; each may have been met by several tasks."""


class Note:
    """The work of one task; without a folder it is only counted."""

    def __init__(self, folder: str | None, name: str) -> None:
        self._path = None if folder is None else os.path.join(folder, f"{name}.{os.getpid()}.{next(_SERIAL)}")
        self._next = 0.0
        self._packets = 0
        self.read = self.decoded = self.exchanges = self.damage = 0

    def took(self, size: int) -> None:
        """Count bytes of a file that the task read."""
        self.read += size
        if self._path is not None:
            self._write_now_and_then()

    def packet(self, size: int) -> None:
        """Count a packet of ``size`` bytes, of a file whose bytes are not counted."""
        self.read += size + PACKET_OVERHEAD
        self._packets += 1
        if self._path is not None and self._packets % _PACKETS_BETWEEN == 0:
            self._write_now_and_then()

    def _write_now_and_then(self) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + NOTE_EVERY
            self.write()

    def rows_of(self, size: int) -> None:
        """Count an exchange that became rows; its messages have ``size`` bytes."""
        self.decoded += size
        self.exchanges += 1

    def write(self) -> None:
        """Write the note into the folder. If that fails, the task goes on: the note is only shown to
        people."""
        if self._path is None:
            return
        try:
            with open(f"{self._path}~", "w", encoding="ascii") as file:
                file.write(f"{self.read} {self.decoded} {self.exchanges} {self.damage}\n")
            os.replace(f"{self._path}~", self._path)
        except OSError:
            self._path = None


def done(folder: str) -> Done:
    """The work of all tasks together, by their latest notes.

    :raises OSError: the folder, or a note in it, cannot be read.
    """
    total = Done()
    for entry in os.scandir(folder):
        if entry.name.endswith("~") or entry.is_dir():
            continue
        with open(entry.path, encoding="ascii") as file:
            words = [int(word) for word in file.read().split()]
        if len(words) == len(total):
            total = Done(*(have + more for have, more in zip(total, words, strict=True)))
    return total


class Meter:
    """A bar with a line of text while tasks run, kept by a thread: ``with Meter(…):``. It is on stderr, or in
    the output of a notebook's cell."""

    def __init__(self, folder: str, total: int, what: str) -> None:
        """:param total: the bytes that all tasks together will read."""
        self._folder = folder
        self._total = total
        self._what = what
        self._start = time.monotonic()
        self._before = done(folder)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._show: _MeterLine = _OfNotebook() if is_notebook() else _OfTerminal()

    def __enter__(self) -> Meter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._show.end(self.text(time.monotonic() - self._start))

    def _run(self) -> None:
        while not self._stop.wait(SHOW_EVERY):
            self._show.line(self.text(time.monotonic() - self._start))

    def text(self, seconds: float) -> str:
        """The line to show after this many seconds."""
        now = done(self._folder)
        read, exchanges = now.read - self._before.read, now.exchanges - self._before.exchanges
        rate = read / seconds if seconds else 0.0
        text = f"{self._what}: {size(read)} read, {size(int(rate))}/s, "
        text += plural(exchanges, "exchange")
        # A run with new data counts the bytes of packets, which are more than the bytes of a compressed file.
        if 0 < read <= self._total and rate:
            percent = 100 * read // self._total
            text += f", {percent} %"
            if percent:  # before, tasks have hardly begun, and the rate says nothing
                text += f", {(self._total - read) / rate:,.0f} s left"
            text = f"{_bar(read, self._total)} {text}"
        return text


def is_notebook() -> bool:
    """Whether this is the process of a notebook, whose cells show what is displayed."""
    interactive = sys.modules.get("IPython")
    shell = None if interactive is None else interactive.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


class _MeterLine(Protocol):
    """The place of the line."""

    def line(self, text: str) -> None:
        """Show a text in place of the previous one."""

    def end(self, text: str) -> None:
        """Show the last text."""


class _OfTerminal:
    """The line on stderr; at the end it is cleared."""

    def line(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[Kkdissect: {text}")
        sys.stderr.flush()

    def end(self, text: str) -> None:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


class _OfNotebook:
    """The line in the output of a cell, where it stays."""

    def __init__(self) -> None:
        self._handle: Any = None

    def line(self, text: str) -> None:
        from IPython.display import display

        shown = {"text/plain": text}
        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)

    def end(self, text: str) -> None:
        self.line(text)


def _bar(done: int, total: int) -> str:
    full = _BAR * done // total
    return f"[{'█' * full}{'░' * (_BAR - full)}]"
