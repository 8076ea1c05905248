"""The capture process: sources ─► spool, until it is stopped or a limit is reached.

It does not decode the packets that it writes. It ends cleanly, with complete files, when the pipe to the
process that started it is closed for any reason. The journal's status says how it ended.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import parent_process
from typing import TYPE_CHECKING, NamedTuple

from kdissect.capture.blocks import Captured
from kdissect.live.disk_limit import SpoolRoom, SpoolSize
from kdissect.live.errors import LiveError
from kdissect.live.journal import MOST_NOTES, Gone, JournalWriter, Status
from kdissect.live.rotation import Bounds
from kdissect.live.sources import PacketSource, SourceCounts, SourceOpener
from kdissect.live.spool import SECOND, Spool, SystemClocks
from kdissect.live.waiting import WayToWait, waiting_for
from kdissect.system import HANGING_UP, INTERRUPTS, leave_no_core, take_signals
from kdissect.wording import defect, plural

if TYPE_CHECKING:
    from kdissect.system import Pipe

TICK_SECONDS = 0.2
"""The shortest time between two writes of the status."""
MOST_BLOCKS = 64
"""The most blocks of one source that are written before the other sources have their turn."""
CLOCK_STEP_NS = SECOND
"""How much the clock may differ from the time passed, in one tick, before that is reported."""


class CaptureJob(NamedTuple):
    """What to capture, and where to write it."""

    folder: str
    """The journal's folder."""
    path: str
    """The path of the capture, or of the first file's name."""
    rotation: Bounds = Bounds()
    stop: Bounds = Bounds()
    size: SpoolSize | None = None
    """The size of a spool; None if the captured packets stay."""


class Capturer:
    """The loop. The caller passes all that it needs."""

    def __init__(
        self,
        sources: Sequence[PacketSource],
        spool: Spool,
        journal: JournalWriter,
        seconds: float | None,
        clock: SystemClocks,
    ) -> None:
        """:param seconds: how long to capture, if there is a limit."""
        self._sources = dict(enumerate(sources))
        """The sources that are not over, by number."""
        self._all = sources
        self._counts = [SourceCounts()] * len(sources)
        self._numbers = [[spool.add(each) for each in source.interfaces] for source in sources]
        """The spool's numbers of the interfaces of each source."""
        self._spool = spool
        self._journal = journal
        self._seconds = seconds
        self._clock = clock
        self._start = self._last = clock.seconds()
        self._last_wall_ns = clock.wall_ns()
        self._notes: deque[str] = deque(maxlen=MOST_NOTES)
        self._said = 0
        self._is_losing = False
        self._dropped = 0
        self._fill = 0.0
        self._due = 0.0
        self._is_stopped = False

    def run(self, waiting: WayToWait) -> None:
        """Capture until the pipe is closed, a limit is reached or no source is left."""
        reason: str | None = None
        while reason is None:
            if waiting.wait(TICK_SECONDS):
                self.stop()
            reason = self.step(waiting.forget)
        self.finish(reason)

    @property
    def written(self) -> int:
        """The number of packets written."""
        return self._spool.packets

    def stop(self) -> None:
        """End with the next step."""
        self._is_stopped = True

    def step(self, forget: Callable[[PacketSource], object] = lambda _: None) -> str | None:
        """Write the packets that have arrived; return why the capture is over, if it is.

        :param forget: gets each source that is over.
        """
        for number, source in list(self._sources.items()):
            self._write(number, source)
            trouble = source.trouble()
            if trouble is not None:
                self._note(trouble)
            if source.is_over():
                if source.has_vanished():
                    self._report_gone(source)
                forget(source)
                del self._sources[number]
        self._spool.tick()
        if self._clock.seconds() >= self._due:
            self._tick()
        return self._reason()

    def _report_gone(self, source: PacketSource) -> None:
        name = source.interfaces[0].name or "an interface"
        with suppress(OSError):  # a note says it, too
            self._journal.append(Gone(name, self._spool.packets, self._clock.wall_ns()))

    def _reason(self) -> str | None:
        if self._is_stopped:
            return "stopped"
        if not self._sources:
            return "nothing is left to capture from"
        is_late = self._seconds is not None and self._clock.seconds() - self._start >= self._seconds
        if is_late or self._spool.is_complete:
            return "a limit of -a is reached"
        return None

    def _write(self, number: int, source: PacketSource) -> None:
        for _ in range(MOST_BLOCKS):
            block = source.read()
            if block is None:
                return
            self._spool_block(number, block)

    def _spool_block(self, number: int, block: tuple[int, list[Captured]]) -> None:
        interface, packets = block
        if not packets:
            return
        numbers = self._numbers[number]
        while len(numbers) <= interface:
            numbers.append(self._spool.add(self._all[number].interfaces[len(numbers)]))
        self._spool.write(numbers[interface], packets)

    def _tick(self) -> None:
        """Read the counts, check the clocks, and write the status."""
        self._due = self._clock.seconds() + TICK_SECONDS
        self._count()
        failure = self._spool.failure
        if self._is_losing != (failure is not None):
            self._is_losing = failure is not None
            if self._is_losing:
                self._note(f"{failure}: packets are lost until it can be written again")
            else:
                self._note(f"writing goes on; {plural(self._spool.lost, 'packet')} lost")
        self._watch_clock()
        self._report(None)

    def _count(self) -> None:
        for number, source in self._sources.items():
            self._counts[number] = source.counts()
            self._spool.counts[self._numbers[number][0]] = self._counts[number]
        self._fill = max((source.fill() for source in self._sources.values()), default=0.0)
        dropped = sum(each.dropped for each in self._counts)
        if dropped and not self._dropped:
            self._note(f"the system drops packets: {dropped:,} so far, the ring was full")
        self._dropped = dropped

    def _watch_clock(self) -> None:
        now, wall_ns = self._clock.seconds(), self._clock.wall_ns()
        step_ns = wall_ns - self._last_wall_ns - round((now - self._last) * SECOND)
        if abs(step_ns) > CLOCK_STEP_NS:
            way = "forward" if step_ns > 0 else "back"
            seconds = abs(step_ns) / SECOND
            self._note(
                f"the clock was set {way} by {seconds:,.1f} s; times before and after cannot be compared"
            )
        self._last, self._last_wall_ns = now, wall_ns

    def _note(self, text: str) -> None:
        self._said += 1
        self._notes.append(text)

    def _report(self, reason: str | None) -> None:
        counts, spool = self._counts, self._spool
        self._journal.status(
            Status(
                sum(each.received for each in counts),
                sum(each.dropped for each in counts),
                spool.lost,
                spool.packets,
                spool.bytes,
                spool.files,
                self._fill,
                self._said,
                tuple(self._notes),
                reason,
            )
        )

    def give_up(self, reason: str) -> None:
        """End as soon as possible; the files are complete."""
        self._note(reason)
        self._report(reason)

    def finish(self, reason: str) -> None:
        """Stop the sources, write the packets that have arrived, end the file, and write the last status."""
        for number, source in self._sources.items():
            source.stop()
            while (block := source.read()) is not None:
                self._spool_block(number, block)
        self._count()
        self._spool.close()
        self._report(reason)
        self._journal.close()
        for source in self._all:
            source.close()


def run(job: CaptureJob, openers: Sequence[SourceOpener], control: Pipe) -> None:
    """The main function of the process. Sends None when it has begun, or the error if it cannot."""
    for number in INTERRUPTS:  # the process that started it decides when it stops
        signal.signal(number, signal.SIG_IGN)
    take_signals()  # other signals end it at once, because nothing is written yet
    leave_no_core()
    begun = _begun(job, openers)
    if isinstance(begun, LiveError):
        _answer(control, begun)
        return
    capturer, sources = begun
    for number in (signal.SIGTERM, *HANGING_UP):
        signal.signal(number, lambda *_: capturer.stop())
    if not _answer(control, None):
        capturer.stop()
    try:
        capturer.run(waiting_for(control, sources))
    except Exception as error:  # reported in one line; a traceback would be written over the screens
        capturer.give_up(defect(error))
        sys.exit(1)
    _leave_to_nobody(job, capturer.written)


def _begun(
    job: CaptureJob, openers: Sequence[SourceOpener]
) -> tuple[Capturer, list[PacketSource]] | LiveError:
    """The capturer and its sources, or the error if it cannot begin; then the folder is removed."""
    try:
        sources = [opener() for opener in openers]
        os.mkdir(job.folder, 0o700)
    except LiveError as error:
        return error
    except OSError as error:
        where = os.path.dirname(job.folder) if error.filename == job.folder else error.filename
        return LiveError(f"{where or 'the spool'}: {error.strerror or error}")
    except Exception as error:
        return LiveError(defect(error))
    clock = SystemClocks()
    try:
        journal = JournalWriter(job.folder)
        room = None if job.size is None else SpoolRoom(job.folder, job.size, journal.decoded)
        spool = Spool(job.path, job.rotation, clock, journal.append, job.stop, room)
        return Capturer(sources, spool, journal, job.stop.seconds, clock), sources
    except OSError as error:
        shutil.rmtree(job.folder, ignore_errors=True)
        return LiveError(f"{error.filename or 'the spool'}: {error.strerror or error}")
    except Exception as error:
        shutil.rmtree(job.folder, ignore_errors=True)
        return LiveError(defect(error))


def _answer(control: Pipe, error: LiveError | None) -> bool:
    """Send whether the capture has begun; return whether the other process still listens."""
    try:
        control.send(error)
    except OSError:
        return False
    return True


def _leave_to_nobody(job: CaptureJob, packets: int) -> None:
    """Clean up if the process that started this one was killed. A folder without packets is removed; the path
    of a folder with packets is printed."""
    parent = parent_process()
    if parent is None or parent.is_alive():
        return
    if not packets or os.path.dirname(job.path) != job.folder:
        shutil.rmtree(job.folder, ignore_errors=True)
        return
    with suppress(OSError):  # the terminal is closed, too
        sys.stderr.write(f"kdissect was killed; what was captured is in {job.folder}\n")
