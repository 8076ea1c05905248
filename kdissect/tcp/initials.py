"""The initial sequence number of a stream whose sender sent several.

With SYN cookies, behind proxies and after a broker's takeover, the second SYN-ACK of a connection may have
another number than the first. The other end's acknowledgements show which number it accepted. So until it has
acknowledged data, the newest number that it confirms counts. Before it has confirmed a number, the one that
the sender's own data continue counts, else the newest. If a SYN-ACK was not captured, only an acknowledgement
shows its number. That number counts when data continue it, because then both ends agree.
"""

from __future__ import annotations

MOST = 8
"""The largest number of initial numbers kept for one side; older ones are dropped. A handshake tries fewer
(Suricata keeps 5)."""

_NUMBERS = 1 << 32
_HALF_WAY = 1 << 31


def signed_distance(number: int, other: int) -> int:
    """The distance from another sequence number to a number; negative if the number is before it (RFC
    1982)."""
    distance = (number - other) % _NUMBERS
    return distance - _NUMBERS if distance >= _HALF_WAY else distance


class Initials:
    """The initial numbers of one side, oldest first. Each is the number of the first byte, which follows the
    SYN."""

    __slots__ = ("_acknowledged", "_known")

    def __init__(self, first: int | None) -> None:
        self._known: list[int] = [] if first is None else [first]
        self._acknowledged: list[int] = []
        """The numbers that only an acknowledgement shows."""

    def add(self, initial: int) -> None:
        """Add the side's newest initial number."""
        self._known = [each for each in self._known if each != initial][1 - MOST :]
        self._known.append(initial)

    def add_acknowledged(self, number: int) -> None:
        """Add a number that the other end acknowledged, if it is far from all known ones."""
        self._acknowledged = [each for each in self._acknowledged if each != number][1 - MOST :]
        self._acknowledged.append(number)

    def is_only_acknowledged(self, number: int) -> bool:
        """Whether only an acknowledgement shows it."""
        return number in self._acknowledged

    def confirmed_by(self, acknowledgement: int, farthest: int) -> int | None:
        """The number that an acknowledgement confirms: the nearest before it, at most ``farthest`` bytes
        away. Older numbers are dropped."""
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
        """The number that data at ``number`` continue best. ``wanted`` is the next byte's number if
        ``current`` counts."""
        best, least = current, abs(signed_distance(number, wanted))
        for each in (*self._known, *self._acknowledged):
            distance = abs(signed_distance(number, each))
            if each != current and distance < least:
                best, least = each, distance
        return best
