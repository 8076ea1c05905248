"""The source of the screens: the files or the live capture, the settings for decoding, and the packets.

The decoder reads the packets once as they come; saving reads them again.
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
    """The input to decode, with the settings."""

    input: Input
    """The files, and the settings for reading. With ``spool`` the paths are only names."""
    is_live: bool = False
    """Whether packets come as they are captured; then results do not wait for more packets."""
    secrets: TlsSecrets | None = None
    """The secrets that decrypt TLS, beside those of the capture."""
    key_logs: KeyLogs | None = None
    """Files that may get more secrets."""
    key_log_paths: tuple[str, ...] = ()
    """The key logs that were given, for commands of other programs."""
    spool: str | None = None
    """The folder of a capture process (:mod:`kdissect.live.journal`), whose files are decoded."""
    follows: bool = False
    """Whether the files grow, or are folders in which files appear."""
    scratch: str = ""
    """Our temporary folder that contains the paths. Messages leave it out."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The files, or the interfaces of a capture process."""
        return self.input.paths

    @property
    def limits(self) -> Limits:
        """The limits of decoding."""
        return self.input.limits

    def reason_of(self, error: CaptureError) -> str:
        """The reason of a read error, with the names that the user gave."""
        return str(error).replace(os.path.join(self.scratch, ""), "") if self.scratch else str(error)

    @property
    def bytes_in_all(self) -> int:
        """The size of all files together."""
        return sum(os.path.getsize(path) for path in self.paths if os.path.isfile(path))


def input_of(source: ScreenSource, *, waits: bool = True) -> Input:
    """The input of the decoder.

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
