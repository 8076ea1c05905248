"""A capture → batches for the index, from a separate process.

Decoding keeps a processor busy; in the process of the screens it would make every key wait. The decoder
process sends a :class:`FeedBatch` about ten times a second, and :class:`Ended` when it is done. The screens
get them with :meth:`Decoder.poll`, which never waits for more. If the process dies, one Ended has the reason.
Earlier results stay, and can be shown, because the frames are in the spool.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from multiprocessing import get_context
from typing import TYPE_CHECKING, BinaryIO, cast

from kdissect.exchange import Exchange
from kdissect.feed.batches import Ended, FeedBatch, read_exchange
from kdissect.feed.collecting import decode_all
from kdissect.feed.side_process import Arrived, Companion, Shared, be_quiet, start_process
from kdissect.feed.source import ScreenSource
from kdissect.live.journal import Status
from kdissect.system import give_way, temporary_file
from kdissect.wording import defect

if TYPE_CHECKING:
    from kdissect.system import Pipe

_PIPE_BYTES = 1 << 20
"""More than the size of a batch."""


def _run(source: ScreenSource, spool: Arrived, pipe: Pipe) -> None:
    """The main function of the process."""
    be_quiet(*(() if source.spool is None else (source.spool,)))
    if not source.is_live:  # a live decoder must keep up with the packets
        give_way()  # keys have priority
    with suppress(BrokenPipeError), os.fdopen(spool.detach(), "wb") as file:
        try:
            ended = decode_all(source, file, pipe.send)
        except BrokenPipeError:  # the screens are closed
            raise
        except OSError as error:
            ended = Ended(f"{error.filename or 'the spool cannot be written'}: {error.strerror}")
        except Exception as error:  # after any error, the screens go on and report it
            ended = Ended(defect(error))
        pipe.send(ended)


def _make_room(pipe: Pipe) -> None:
    """Make a pipe hold a whole batch, so that decoding goes on until the screens poll."""
    if sys.platform != "linux":
        return
    import fcntl

    with suppress(OSError):  # the user may not be allowed to
        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


class Decoder(Companion[FeedBatch]):
    """The screens' side of the decoder process, which starts at once."""

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
    """A capture that was decoded here and at once, for callers that can wait."""

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
