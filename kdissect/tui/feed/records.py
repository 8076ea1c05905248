"""The records of chosen exchanges, listed by a process of its own.

    screens ── Ask: some exchanges, the filter ──► process ── Found: how many records now ──► screens
                                    lines of fixed size ──► a file that both have open

The screens hand over a few exchanges at a time, so that neither side waits for the other's pipe, and what is
asked anew, because the filter is another, does not stand behind the old. Every new question has a higher
generation; the process begins its file again with it.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing import get_context
from struct import Struct
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol, cast

from kdissect.filter.compiled import Filter
from kdissect.limits import Limits
from kdissect.present.options import Options
from kdissect.system import temporary_file
from kdissect.tui.feed.batches import Feed
from kdissect.tui.feed.decoder import Decoded
from kdissect.tui.feed.record_lines import RecordLine, RecordLines, read_lines
from kdissect.tui.feed.sharing import Arrived, Beside, Shared, be_quiet, start_process
from kdissect.tui.feed.spool import read_exchange
from kdissect.wording import defect

if TYPE_CHECKING:
    from kdissect.system import Pipe

SPAN = Struct("<IqI")
"""An exchange: its place in the index, its place in the spool and its length there."""

ASK_EXCHANGES = 2_048
"""How many are handed over at a time, at most: less than a pipe holds."""
_FOUND_SECONDS = 0.1
"""How long what was found waits, at most, before it is told."""


class Ask(NamedTuple):
    """Exchanges whose records are to be listed."""

    generation: int
    chosen: Filter | None
    """Which records are listed; None for all."""
    spans: bytes
    """Packed :data:`SPAN`."""


class Found(NamedTuple):
    """How far it is."""

    generation: int
    records: int
    """Lines of the file, all told."""
    exchanges: int
    """Done since the last was told."""
    texts: list[str]
    """What the list of texts grew by."""
    is_full: bool = False
    """More records are not listed."""


class Failed(NamedTuple):
    """Nothing more comes."""

    reason: str


class Records(Protocol):
    """What lists records, as the screens see it."""

    def ask(self, asked: Ask) -> None:
        """Hand over some exchanges."""

    def poll(self) -> list[Found | Failed]:
        """What came since the last call."""

    def lines(self, start: int, count: int) -> list[RecordLine]:
        """Lines that were told to be there.

        :raises OSError: they cannot be read.
        """

    def close(self) -> None:
        """Stop, and let go of everything."""


def records_of(feed: Feed, options: Options) -> Records:
    """What lists the records of a feed's exchanges: beside the screens as the feed is, or at once."""
    if isinstance(feed, Decoded):
        return ListedAtOnce(feed.descriptor, feed.source.limits, options)
    return RecordsProcess(feed.descriptor, feed.source.limits, options)


class Lister:
    """Does what it is asked. Gives what it found now and then, and stops when the caller does not go on."""

    def __init__(self, spool: int, file: BinaryIO, limits: Limits, options: Options) -> None:
        self._spool = spool
        self._file = file
        self._limits = limits
        self._options = options
        self._generation = 0
        self._lines = RecordLines(file, None, options)

    def run(self, asked: Ask) -> Iterator[Found | None]:
        """List the records of some exchanges; gives None wherever it may be stopped.

        :raises OSError: the spool cannot be read, or the file not be written.
        """
        if asked.generation != self._generation:
            self._generation = asked.generation
            self._lines = RecordLines(self._file, asked.chosen, self._options)
        done, due = 0, time.monotonic() + _FOUND_SECONDS
        for place, at, length in SPAN.iter_unpack(asked.spans):
            exchange = read_exchange(self._spool, at, length, self._limits)
            for _ in self._lines.add(place, exchange):
                yield None
                if time.monotonic() >= due:
                    yield self._found(done)
                    done, due = 0, time.monotonic() + _FOUND_SECONDS
            done += 1
        yield self._found(done)

    def _found(self, done: int) -> Found:
        lines = self._lines
        self._file.flush()
        return Found(self._generation, lines.count, done, lines.texts.take(), lines.is_full)


class ListedAtOnce:
    """Lists here, when asked: for who does not mind the wait."""

    def __init__(self, spool: int, limits: Limits, options: Options) -> None:
        self._file = temporary_file(".records")
        self._lister = Lister(spool, cast(BinaryIO, self._file), limits, options)
        self._waiting: list[Found | Failed] = []

    def ask(self, asked: Ask) -> None:
        self._waiting += [found for found in self._lister.run(asked) if found is not None]

    def poll(self) -> list[Found | Failed]:
        waiting, self._waiting = self._waiting, []
        return waiting

    def lines(self, start: int, count: int) -> list[RecordLine]:
        return read_lines(self._file.fileno(), start, count)

    def close(self) -> None:
        self._file.close()


class RecordsProcess(Beside[Found | Failed]):
    """The process, as the screens see it. It begins with the first question."""

    def __init__(self, spool: int, limits: Limits, options: Options) -> None:
        self._file = temporary_file(".records")
        pipe, theirs = get_context("spawn").Pipe()
        shared = Shared(spool), Shared(self._file.fileno())
        process = start_process(_run, *shared, theirs, limits, options)
        theirs.close()
        super().__init__(process, pipe, "the process that lists records", Failed)

    def ask(self, asked: Ask) -> None:
        with suppress(OSError):  # poll tells that it is gone
            self._pipe.send(asked)

    def lines(self, start: int, count: int) -> list[RecordLine]:
        return read_lines(self._file.fileno(), start, count)

    def close(self) -> None:
        super().close()
        self._file.close()


def _run(spool: Arrived, lines: Arrived, pipe: Pipe, limits: Limits, options: Options) -> None:
    """What the process does."""
    be_quiet()
    with suppress(BrokenPipeError, EOFError), os.fdopen(lines.detach(), "wb") as file:
        try:
            _answer(Lister(spool.detach(), file, limits, options), pipe)
        except (BrokenPipeError, EOFError):  # the screens are closed
            raise
        except OSError as error:
            pipe.send(Failed(f"records cannot be listed: {error.strerror or error}"))
        except Exception as error:  # whatever it is, the screens live on and say so
            pipe.send(Failed(defect(error)))


def _answer(lister: Lister, pipe: Pipe) -> None:
    waiting: deque[Ask] = deque()
    while True:
        asked = waiting.popleft() if waiting else pipe.recv()
        for found in lister.run(asked):
            if found is not None:
                pipe.send(found)
            elif pipe.poll():
                waiting.append(pipe.recv())
                if waiting[-1].generation != asked.generation:
                    waiting = deque([waiting[-1]])
                    break
