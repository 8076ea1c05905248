"""A capture → batches for the index, from a process of its own.

Decoding keeps a processor busy; in the process of the screens it would make every key wait. The decoder
process sends a :class:`FeedBatch` about ten times a second, and :class:`Ended` when it is done. The screens
ask for them with :meth:`Decoder.poll`, which never waits for more. If the process dies, one Ended tells the
reason. What came before stays, and can be shown, because the frames are in the spool.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from multiprocessing import get_context
from typing import TYPE_CHECKING, BinaryIO, cast

from kdissect.exchange import Exchange
from kdissect.feed.batches import Ended, FeedBatch, read_exchange
from kdissect.feed.beside import Arrived, Companion, Shared, be_quiet, start_process
from kdissect.feed.collecting import decode_all
from kdissect.feed.source import ScreenSource
from kdissect.live.journal import Status
from kdissect.system import give_way, temporary_file
from kdissect.wording import defect

if TYPE_CHECKING:
    from kdissect.system import Pipe

_PIPE_BYTES = 1 << 20
"""More than a batch takes."""


def _run(source: ScreenSource, spool: Arrived, pipe: Pipe) -> None:
    """What the process does."""
    be_quiet(*(() if source.spool is None else (source.spool,)))
    if not source.is_live:  # which must keep up with what comes
        give_way()  # keys go first
    with suppress(BrokenPipeError), os.fdopen(spool.detach(), "wb") as file:
        try:
            ended = decode_all(source, file, pipe.send)
        except BrokenPipeError:  # the screens are closed
            raise
        except OSError as error:
            ended = Ended(f"{error.filename or 'the spool cannot be written'}: {error.strerror}")
        except Exception as error:  # whatever it is, the screens live on and say so
            ended = Ended(defect(error))
        pipe.send(ended)


def _make_room(pipe: Pipe) -> None:
    """Have a pipe hold a whole batch, so that decoding goes on until the screens ask for it."""
    if sys.platform != "linux":
        return
    import fcntl

    with suppress(OSError):  # a user who may not have that
        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


class Decoder(Companion[FeedBatch]):
    """The process, as the screens see it. Starts at once."""

    def __init__(self, source: ScreenSource) -> None:
        self.source = source
        self._spool = temporary_file(".spool")
        pipe, theirs = get_context("spawn").Pipe(duplex=False)
        _make_room(theirs)
        process = start_process(_run, source, Shared(self._spool.fileno()), theirs)
        theirs.close()
        super().__init__(process, pipe, "the decoder")

    @property
    def capture(self) -> Status | None:
        return None

    @property
    def silence(self) -> str | None:
        return None

    def death(self) -> str:
        return f"{super().death()}; what it had decoded is shown"

    @property
    def descriptor(self) -> int:
        return self._spool.fileno()

    def exchange(self, place: int, length: int) -> Exchange:
        return read_exchange(self.descriptor, place, length, self.source.limits)

    def close(self) -> None:
        super().close()
        self._spool.close()


class Decoded:
    """A capture that was decoded here and at once: for who does not mind the wait."""

    def __init__(self, source: ScreenSource) -> None:
        self.source = source
        self._spool = temporary_file(".spool")
        self._waiting: list[FeedBatch | Ended] = []
        self._waiting.append(decode_all(source, cast(BinaryIO, self._spool), self._waiting.append))

    @property
    def capture(self) -> Status | None:
        return None

    @property
    def silence(self) -> str | None:
        return None

    def poll(self) -> list[FeedBatch | Ended]:
        waiting, self._waiting = self._waiting, []
        return waiting

    @property
    def descriptor(self) -> int:
        return self._spool.fileno()

    def exchange(self, place: int, length: int) -> Exchange:
        return read_exchange(self.descriptor, place, length, self.source.limits)

    def close(self) -> None:
        self._spool.close()
