"""A SYN with another number on a connection that has not ended: does it open a new one?

It does where the ports are used again and the end of the connection before was not captured. But such a SYN
may also be forged, or late, or the other end may answer an older one. Then the connection before it goes on,
and the receiver of the SYN only says so (RFC 5961, 4). So both stay, with a number each, until a segment
tells: one that confirms the SYN ends the connection before it.
"""

from __future__ import annotations

from kdissect.model import SYN, Segment
from kdissect.session.conversation import Conversation


class Reopened:
    """The connections over whose endpoints a newer SYN went, each with the one of that SYN."""

    def __init__(self) -> None:
        self.older: dict[Conversation, Conversation] = {}
        """By the connection of the SYN: the one that it may have ended."""
        self._newer: dict[Conversation, Conversation] = {}

    def add(self, newer: Conversation, older: Conversation) -> None:
        """A SYN that opens ``newer`` was seen while ``older`` went on."""
        self.older[newer] = older
        self._newer[older] = newer

    def is_confirmed(self, newer: Conversation, segment: Segment) -> bool | None:
        """Whether a segment between the endpoints shows that ``newer`` is a connection: then the one before
        it is over. None where it is a segment of that one."""
        older = self.older[newer]
        if newer.is_confirmed_by(segment):
            return True
        if older.continues(segment):
            return None
        return not segment.flags & SYN and newer.continues(segment)

    def remove(self, conversation: Conversation) -> Conversation | None:
        """Forget one; gives the connection before it, to which its endpoints fall back."""
        newer = self._newer.pop(conversation, None)
        if newer is not None:
            del self.older[newer]
        older = self.older.pop(conversation, None)
        if older is not None:
            del self._newer[older]
        return older
