"""Whether a SYN with another number opens a new connection, on a connection that has not ended.

It does if the ports are reused and the end of the earlier connection was not captured. But such a SYN may
also be forged, or late, or the other end may answer an older one. Then the earlier connection goes on, and
the receiver of the SYN only answers that (RFC 5961, 4). So both connections are kept, each with a number,
until a segment decides. A segment that confirms the SYN ends the earlier connection.
"""

from __future__ import annotations

from kdissect.model import SYN, Segment
from kdissect.session.conversation import Conversation


class Reopened:
    """The connections whose endpoints a newer SYN uses, each with the connection of that SYN."""

    def __init__(self) -> None:
        self.older: dict[Conversation, Conversation] = {}
        """The connection that a SYN may have ended, by the SYN's connection."""
        self._newer: dict[Conversation, Conversation] = {}

    def add(self, newer: Conversation, older: Conversation) -> None:
        """Note that a SYN opened ``newer`` while ``older`` went on."""
        self.older[newer] = older
        self._newer[older] = newer

    def is_confirmed(self, newer: Conversation, segment: Segment) -> bool | None:
        """Whether a segment between the endpoints confirms ``newer``, so that the earlier connection is over.
        None if the segment belongs to the earlier one."""
        older = self.older[newer]
        if newer.is_confirmed_by(segment):
            return True
        if older.continues(segment):
            return None
        return not segment.flags & SYN and newer.continues(segment)

    def remove(self, conversation: Conversation) -> Conversation | None:
        """Forget a connection. Return the earlier connection, which gets its endpoints back."""
        newer = self._newer.pop(conversation, None)
        if newer is not None:
            del self.older[newer]
        older = self.older.pop(conversation, None)
        if older is not None:
            del self._newer[older]
        return older
