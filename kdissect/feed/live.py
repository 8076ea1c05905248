"""A live capture as a feed: the capture process writes its spool, and the decoder follows it. This feed ends
both. If the decoder dies, no later packet is lost, because the spool has it."""

from __future__ import annotations

import time
from threading import Thread

from kdissect.feed.batches import Ended, FeedBatch
from kdissect.feed.decoder import Decoder
from kdissect.feed.source import ScreenSource
from kdissect.live.journal import Status
from kdissect.live.session import CaptureSession
from kdissect.live.silence import SILENCE_SECONDS, Silence

_LOOK_SECONDS = 0.5
"""How often the capture is checked for problems while no packets come, in seconds."""


class Live(Decoder):
    """Decodes the capture of a session.

    :param source: with the folder of the session as ``spool``.
    :param silence: explains why nothing comes.
    """

    def __init__(self, source: ScreenSource, session: CaptureSession, silence: Silence) -> None:
        self._session = session
        self._silence = silence
        self._silent_at = time.monotonic() + SILENCE_SECONDS
        self._why_silent: str | None = None
        """The explanation shown beside the capture's own notes."""
        self._reported = 0
        """How many of both were shown."""
        self._latest = FeedBatch()
        """The latest counts."""
        self._look_at = 0.0
        self.left: str | None = None
        """The folder of the spool that is kept when this is closed, because not all of it was decoded."""
        super().__init__(source)

    @property
    def capture(self) -> Status | None:
        status = self._session.status()
        return status if self.silence is None else status._replace(notes=(*status.notes, self.silence))

    @property
    def silence(self) -> str | None:
        return self._why_silent

    def poll(self) -> list[FeedBatch | Ended]:
        out = super().poll()
        for each in out:
            if isinstance(each, FeedBatch):
                self._latest = each
        now = time.monotonic()
        if not out and now >= self._look_at:
            self._look_at = now + _LOOK_SECONDS
            if self._has_new_notes():  # the screens are redrawn only for a batch
                out.append(_counts_only(self._latest))
        if any(isinstance(each, FeedBatch) and (each.rows or each.going_on) for each in out):
            if self._silent_at != float("inf"):  # otherwise it may be giving a reason just now
                self._silence.close()
            self._silent_at = float("inf")
        elif now >= self._silent_at:
            self._silent_at = float("inf")
            Thread(target=self._publish_notes, daemon=True, name="silence").start()
        if out and isinstance(out[-1], Ended):
            out[-1] = self._end(out[-1])
        return out

    def _end(self, ended: Ended) -> Ended:
        if ended.reason is not None:
            self._session.keep()
            self.left = self._session.folder
            return Ended(f"{ended.reason}; the capture goes on and writes to {self.left}")
        self._session.join()
        death = self._session.death()
        return ended if death is None else Ended(death)

    def _publish_notes(self) -> None:
        self._why_silent = self._silence.message(self._session.status())

    def _has_new_notes(self) -> bool:
        """Whether there are notes of the capture that were not there at the last call."""
        said = (self._why_silent is not None) + self._session.status().said
        before, self._reported = self._reported, said
        return said != before

    def close(self) -> None:
        super().close()
        self._session.close()
        self._silence.close()


def _counts_only(batch: FeedBatch) -> FeedBatch:
    """A batch with only the counts of another batch."""
    return batch._replace(rows=b"", texts=(), connections=(), going_on=(), faults={}, names=(), comments=())
