"""Messages on stderr during a capture: trouble, drops, silence; on a terminal also the progress."""

from __future__ import annotations

import sys
import time
from threading import Event, Thread

from kdissect.cli.errors import complain
from kdissect.cli.reading import Reading
from kdissect.live.journal import Status
from kdissect.live.session import CaptureSession
from kdissect.live.silence import SILENCE_SECONDS, Silence
from kdissect.present.form import plural, size

EVERY_SECONDS = 0.25
DROPS_EVERY_SECONDS = 10.0
"""The least time between two messages about drops."""


class Watch:
    """Watches a capture from another thread than the one that decodes, inside a ``with``.

    :param shows_line: whether a line on stderr shows the progress.
    :param silence: the messages when nothing came for a while; closed once something came.
    """

    def __init__(self, session: CaptureSession, reading: Reading, shows_line: bool, silence: Silence) -> None:
        self._session = session
        self._reading = reading
        self._shows_line = shows_line
        self._silence = silence
        self._over = Event()
        self._said = 0
        self._dropped = 0
        self._drops_due = 0.0
        self._silent_at = time.monotonic() + SILENCE_SECONDS
        self._thread = Thread(target=self._run, daemon=True, name="watch")

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._look(self._session.status())
        self._clear()

    def _run(self) -> None:
        while not self._over.wait(EVERY_SECONDS):
            status = self._session.status()
            self._look(status)
            if self._reading.exchanges:
                self._silent_at = float("inf")
                self._silence.close()
            elif time.monotonic() >= self._silent_at:
                self._silent_at = float("inf")
                in_tls = self._reading.in_tls()
                if in_tls:
                    self._print(f"no exchange so far; not decoded: {in_tls}")
                else:
                    self._print(self._silence.message(status))
            if self._shows_line:
                sys.stderr.write(f"\r\x1b[Kkdissect: {progress_line(status, self._reading.packets)}")
                sys.stderr.flush()

    def _look(self, status: Status) -> None:
        new = min(status.said - self._said, len(status.notes))
        if new > 0:
            for note in status.notes[-new:]:
                self._print(note)
            self._said = status.said
        gone = status.dropped + status.lost
        now = time.monotonic()
        if gone > self._dropped and now >= self._drops_due:
            if self._dropped:
                self._print(drops(status))
            self._dropped = gone
            self._drops_due = now + DROPS_EVERY_SECONDS

    def _print(self, text: str) -> None:
        self._clear()
        complain(text)

    def _clear(self) -> None:
        if self._shows_line:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def progress_line(status: Status, decoded: int) -> str:
    """A line with the progress: captured, lost and waiting packets."""
    return (
        f"{plural(status.written, 'packet')}, {drops(status)}, "
        f"backlog {max(0, status.written - decoded):,}, ring {status.fill:.0%}, {size(status.bytes)}"
    )


def drops(status: Status) -> str:
    """The number of packets that were not captured, in words."""
    return f"{status.dropped:,} dropped by the system" + (
        f", {status.lost:,} could not be written" if status.lost else ""
    )
