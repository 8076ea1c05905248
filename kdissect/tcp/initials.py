"""With which initial sequence number does a stream begin, where its sender named several?

With SYN cookies, behind proxies and where a broker takes over, the second SYN-ACK of a connection may have
another number than the first. The other end's acknowledgements say which one it took. So until it has
acknowledged data, the newest number that it confirms counts. While it has confirmed none, the one counts that
the sender's own data continue, else the newest. A number that only an acknowledgement tells of, because its
SYN-ACK was not captured, counts when data continue it: then both ends agree.
"""

from __future__ import annotations

MOST = 8
"""So many numbers of one side are kept, the newest: more than a handshake tries (Suricata keeps 5)."""

_NUMBERS = 1 << 32
_HALF_WAY = 1 << 31


def signed_distance(number: int, other: int) -> int:
    """How far a sequence number lies behind another one, negative before it (RFC 1982)."""
    distance = (number - other) % _NUMBERS
    return distance - _NUMBERS if distance >= _HALF_WAY else distance


class Initials:
    """Those of one side, oldest first; each is the number of the first byte, the one behind the SYN."""

    __slots__ = ("_heard", "_known")

    def __init__(self, first: int | None) -> None:
        self._known: list[int] = [] if first is None else [first]
        self._heard: list[int] = []
        """Of these only an acknowledgement tells."""

    def add(self, initial: int) -> None:
        """The side opened with this one, at last."""
        self._known = [each for each in self._known if each != initial][1 - MOST :]
        self._known.append(initial)

    def hear(self, number: int) -> None:
        """The other end acknowledged a number that is far from all."""
        self._heard = [each for each in self._heard if each != number][1 - MOST :]
        self._heard.append(number)

    def was_heard(self, number: int) -> bool:
        """Whether an acknowledgement alone tells of it."""
        return number in self._heard

    def confirmed_by(self, acknowledgement: int, farthest: int) -> int | None:
        """The one that an acknowledgement confirms: the nearest before it, not farther than so many bytes.
        Those that are older than it count no more."""
        found, least = None, farthest
        for index, each in enumerate(self._known):
            distance = (acknowledgement - each) % _NUMBERS
            if distance <= least:
                found, least = index, distance
        if found is None:
            return None
        del self._known[:found]
        return self._known[0]

    def continued_by(self, number: int, current: int, wanted: int) -> int:
        """The one that data at ``number`` continue best; ``wanted`` is the number of the next byte where
        ``current`` counts."""
        best, least = current, abs(signed_distance(number, wanted))
        for each in (*self._known, *self._heard):
            distance = abs(signed_distance(number, each))
            if each != current and distance < least:
                best, least = each, distance
        return best
