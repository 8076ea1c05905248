"""What the screens show: which files or which capture, decoded how, and the packets of it.

The decoder reads them once as they come; who saves packets reads them again.
"""

from __future__ import annotations

import os
from functools import partial
from typing import NamedTuple

from kdissect.capture.files import read_packets
from kdissect.capture.following import FollowedFiles, Following
from kdissect.capture.keylogs import KeyLogs
from kdissect.capture.reader import Packets, Points
from kdissect.limits import Limits
from kdissect.live.spooled import Spooled
from kdissect.model import CaptureError
from kdissect.source import Input
from kdissect.tls.keylog import TlsSecrets


class ScreenSource(NamedTuple):
    """What to decode, and how."""

    input: Input
    """The files, and how they are read. With ``spool`` the paths are only names."""
    is_live: bool = False
    """Whether packets come as they are captured: what they bring to light does not wait for more of them."""
    secrets: TlsSecrets | None = None
    """With which TLS is decrypted, beside those that the capture has."""
    key_logs: KeyLogs | None = None
    """Files from which more secrets may come."""
    spool: str | None = None
    """The folder of a capture process (:mod:`kdissect.live.journal`), whose files are decoded."""
    follows: bool = False
    """Whether the files grow, or are folders in which files appear."""
    scratch: str = ""
    """A temporary folder of ours in which the paths stand. Messages leave it out."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The files, or the interfaces of a capture process."""
        return self.input.paths

    @property
    def limits(self) -> Limits:
        """The limits of decoding."""
        return self.input.limits

    def said(self, error: CaptureError) -> str:
        """Why it cannot be read, with the names that the user gave."""
        return str(error).replace(os.path.join(self.scratch, ""), "") if self.scratch else str(error)

    @property
    def bytes_in_all(self) -> int:
        """The size of all files together."""
        return sum(os.path.getsize(path) for path in self.paths if os.path.isfile(path))


def input_of(source: ScreenSource, *, waits: bool = True) -> Input:
    """What the decoder reads.

    :param waits: whether to wait for packets that are still to come.
    """
    found = source.input._replace(embedded=True)
    if source.spool is not None or source.follows:
        return found._replace(open_packets=partial(packets_of, source, waits=waits))
    return found.with_points()


def packets_of(source: ScreenSource, *, waits: bool, points: Points | None = None) -> Packets:
    """The packets of a source.

    :param waits: whether to wait for those that are still to come.
    :raises CaptureError: the source has no packets to read.
    """
    following: Following
    if source.spool is not None:
        try:
            following = Spooled(source.spool, source.limits, tells=waits)
        except OSError as error:
            raise CaptureError(f"the capture file is gone: {error.strerror}") from None
    elif source.follows:
        following = FollowedFiles(source.paths, source.limits)
    else:
        return read_packets(source.paths, source.limits, points=points)
    if not waits:
        following.stop()
    return following
