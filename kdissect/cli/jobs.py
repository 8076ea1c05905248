"""``--jobs``: events → work that several processes share (:mod:`kdissect.jobs`).

Without the option, more processes start when there is enough work; with it, at once. A single process does
the work if rows are needed one by one, as they come.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol

import click

from kdissect.cli.errors import Unreadable, Wrong
from kdissect.cli.inputs import reads_once
from kdissect.cli.interrupts import EndOfInput
from kdissect.cli.reading import Reading
from kdissect.cli.tally import Tally
from kdissect.dissect import Dissector, Event
from kdissect.exchange import Exchange
from kdissect.jobs.batches import IS_POSSIBLE, EventBatch, PartCounts
from kdissect.protocol.library import Problem, library
from kdissect.session.briefs import Brief, without_briefs

if TYPE_CHECKING:
    from kdissect.capture.cuts import Cutter
    from kdissect.jobs.serving import Before, Write
    from kdissect.jobs.workers import Workers

CUT_BYTES = 4 << 20
"""The least size of a file that is cut."""
WORTH_BYTES = 4 << 20
"""The bytes of messages that one process handles before more processes are worthwhile."""


class Jobs(NamedTuple):
    """The number of processes."""

    processes: int = 1
    at_once: bool = False
    """Whether they start with the first event."""


ALONE = Jobs()

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Number of processes. By default one per processor; one for a small capture.",
)


def jobs_of(given: Mapping[str, Any], paths: Iterable[str]) -> Jobs:
    """The number of processes that the option gives, or else the best number.

    :raises Wrong: the system does not support the option.
    """
    asked: int | None = given["jobs"]
    if asked is not None and asked > 1 and not IS_POSSIBLE:
        raise Wrong("--jobs: processes cannot share work on this system: leave it out")
    if given.get("registry") is not None:
        return ALONE  # a single process asks the registry, once for each schema
    if asked is not None:
        return Jobs(asked, at_once=True)
    # On macOS a fork of a process that has used Apple's frameworks may hang, and the user did not ask for
    # processes.
    if not IS_POSSIBLE or sys.platform == "darwin" or any(map(_comes_slowly, paths)):
        return ALONE
    return Jobs(_processors())


def _comes_slowly(path: str) -> bool:
    """Whether an input may still be growing, so that each row is needed as soon as it is there."""
    if path == "-":
        try:
            return not stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)
        except (OSError, ValueError):  # it is closed, or no file
            return True
    return reads_once(path)


def _processors() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class BatchResult(Protocol):
    """The result of a batch, beside its output."""

    problems: list[Problem]


class SharedWork(Protocol):
    """Work that one process does event by event, or that several share. It is also a
    :class:`kdissect.jobs.serving.Work`."""

    def expected(self, state: Any, before: Before) -> Any:
        """The state in which the work before a part is likely to end."""

    def do(self, events: Iterable[Sequence[Event]], state: Any, write: Write) -> tuple[Any, Any]:
        """Do a batch, in another process."""

    @property
    def is_light(self) -> bool:
        """Whether the work takes less time than dissecting its events."""

    @property
    def state(self) -> Any:
        """The state after the work done so far."""

    def go_on(self, state: Any) -> None:
        """Continue with the state after the work of other processes."""

    def many(self, events: Sequence[Event]) -> None:
        """Do the work of the next events."""

    def done(self, part: Any) -> None:
        """Add the result of the next batch."""


def share(
    reading: Reading,
    found: Iterable[Sequence[Event]],
    work: SharedWork,
    jobs: Jobs,
    write: Write,
    batch: EventBatch | None = None,
) -> None:
    """Do the work of a capture, in as many processes as are allowed and worthwhile.

    :param found: the events of ``reading``, in lists.
    :raises Unreadable: a process died; the work before it was done.
    """
    reading.is_counted_elsewhere = jobs.at_once and reading.tally.looks_inside
    with closing(_Sharing(reading, work, jobs, write, batch or EventBatch())) as sharing:
        reading.parts = sharing.in_parts
        events = iter(found)
        while True:
            try:
                several = next(events, None)
            except KeyboardInterrupt:
                if reading.is_interrupted:  # the end of the input; otherwise it was pressed twice
                    sharing.finish()
                raise
            except Exception:
                sharing.finish()
                raise
            if several is None:
                break
            sharing.add(several)
        sharing.finish()


class _Sharing:
    """Hands out events, or parts of the capture."""

    def __init__(
        self, reading: Reading, work: SharedWork, jobs: Jobs, write: Write, batch: EventBatch
    ) -> None:
        self._reading = reading
        self._work = work
        self._jobs = jobs
        self._write = write
        self._batch = batch
        self._workers: Workers | None = None
        self._bytes = 0
        """The bytes of the messages that one process has handled."""
        self._is_alone = False
        """Whether this process does the work of the events itself. It does so for the first part, and for
        parts that it must dissect alone if handing the work out would cost more than doing it."""
        self.counts = PartCounts()
        """How many parts had a sufficient edge, and how many needed the true state."""

    def in_parts(self, end: EndOfInput) -> Iterator[Sequence[Event]]:
        """Have other processes read the capture in parts, if it can be cut and cutting is worthwhile."""
        reading = self._reading
        dissector = reading.seams(CUT_BYTES)
        if dissector is None:
            return
        from kdissect.capture.cuts import ReadCuts
        from kdissect.jobs.cutting import first_ns

        file = reading.cuts()
        if file is not None:
            with closing(file):
                reading.first_ns = first_ns(file.rest(), reading.source.limits)
                yield from self._parts(file, dissector, end)
                reading.resume_with(file.rest())
            if self.counts.is_poor:
                self._go_on()
                return
            if file.left < CUT_BYTES:
                # In nearly all cases only the last events are left, those of open connections. Each fork
                # would copy the memory of this process.
                self._be_alone()
                return
        rest = ReadCuts(reading.items(end), reading.file_bytes if file is None else file.left)
        yield from self._parts(rest, dissector, end)
        reading.put_back(rest.rest())
        self._go_on()

    def _go_on(self) -> None:
        """Let one process dissect the rest. It also does the work of the rest, if that is light: forking
        processes with its events would take longer."""
        if self._work.is_light:
            self._be_alone()

    def _be_alone(self) -> None:
        """Let this process do the rest of the work."""
        if self._workers is None:
            return
        with _job_errors():
            self._flush()
            self._workers.finish()
        self._work.go_on(self._workers.state)
        self._is_alone, self._reading.is_counted_elsewhere = True, False

    def _parts(self, cuts: Cutter, dissector: Dissector, end: EndOfInput) -> Iterator[Sequence[Event]]:
        """Have the parts that ``cuts`` gives done."""
        from kdissect.jobs.cutting import beginning, in_parts

        reading, source = self._reading, self._reading.source
        if self._workers is None:
            self._is_alone, reading.is_counted_elsewhere = True, False
            yield from beginning(cuts, dissector, source.limits)
            self._is_alone = False
            self._workers = self._begun()
        whose = (cuts, dissector, source, self._workers, self._jobs.processes)
        with _job_errors():
            for events in in_parts(*whose, self._flush, self._count, lambda: end.is_reached):
                if isinstance(events, PartCounts):
                    before = self.counts
                    seams, given_up = before.seams + events.seams, before.given_up + events.given_up
                    self.counts = PartCounts(seams, given_up, events.is_poor)
                else:
                    yield events

    def _count(self, events: Sequence[Event]) -> tuple[int, Tally | None]:
        """The counts of events that this process does not see: the number of exchanges, and the amounts to
        add to the tally."""
        others = without_briefs(events)
        exchanges = len(events) - len(others)
        told = [event for event in others if not isinstance(event, Exchange)]
        exchanges += len(others) - len(told)
        if not told or self._reading.tally.looks_inside:  # otherwise the work counts them
            return exchanges, None
        tally = self._reading.tally.part()
        for event in told:
            tally.add(event)
        return exchanges, tally

    def _counted(self, counted: tuple[int, Tally | None]) -> None:
        exchanges, tally = counted
        self._reading.exchanges += exchanges
        if tally is not None:
            self._reading.tally.merge(tally)

    def add(self, events: Sequence[Event]) -> None:
        """Handle the next events."""
        if self._is_alone:
            self._work.many(events)
            return
        if self._workers is None and not self._jobs.at_once and self._bytes < WORTH_BYTES:
            self._work.many(events)
            for event in events:
                if isinstance(event, Exchange | Brief):
                    self._bytes += event.size()
            if self._bytes >= WORTH_BYTES:
                self._reading.is_counted_elsewhere = self._reading.tally.looks_inside
            return
        if self._workers is None:
            self._workers = self._begun()
        self._batch.add(events)
        with _job_errors():
            if self._batch.is_full:
                self._workers.submit(self._batch.take())
            else:
                self._workers.attend()

    def _flush(self) -> None:
        """Hand out the gathered events."""
        if self._workers is not None and self._batch:
            self._workers.submit(self._batch.take())

    def finish(self) -> None:
        """Finish all remaining work."""
        if self._workers is not None:
            with _job_errors():
                self._flush()
                self._workers.finish()

    def close(self) -> None:
        """End the processes."""
        if self._workers is not None:
            self._workers.close()

    def _begun(self) -> Workers:
        from kdissect.jobs.workers import Workers

        self._reading.is_counted_elsewhere = self._reading.tally.looks_inside
        whose = (self._work, self._jobs.processes, self._write, self._done, self._work.state)
        return Workers(*whose, shared=(self._reading.names,), counted=self._counted)

    def _done(self, part: BatchResult) -> None:
        known = library().problems
        known += [each for each in part.problems if each not in known]
        self._work.done(part)


@contextmanager
def _job_errors() -> Iterator[None]:
    from kdissect.jobs.workers import JobError

    try:
        yield
    except JobError as error:
        raise Unreadable(
            f"a decoding process {error}; the rows before that are written (--jobs 1 uses no such process)"
        ) from None


class Outlet:
    """The file of printers: the output, or the function of a batch."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.to: Write | None = None
        """The function that receives the output while a batch is done."""

    def write(self, data: bytes) -> None:
        """Write whole lines."""
        if self.to is None:
            self.file.write(data)
        else:
            self.to(data)

    def flush(self) -> None:
        """Do nothing: the rows of a batch are needed only together."""
        if self.to is None:
            self.file.flush()


def problems_so_far() -> list[Problem]:
    """The damaged definition files that this process met since the last call."""
    problems = list(library().problems)
    library().problems.clear()
    return problems
