"""The memory that folds may take: one budget for all that are fed together.

    room = Room(limits)               for one fold; all of the budget, as long as it is alone
    share([room, other, …])           from now on these have one budget
    if room.takes(200): …             else the fold counts the data as left out
    if room.refuses(rows >= most): …  the same for a limit that is no number of bytes

Sizes are estimates: of the kept data, and of the row that is made from it. Half of the budget is divided
evenly, so that no fold is without room because another one has much to keep. The other half is taken by the
folds that need it first; if there are several folds, none may take over half of it.

    open_all([room, other, …])        from now on they only note what is too much
    are_exceeded([room, other, …])    whether there is more than strict rooms would have taken
    close_all([room, other, …])       they are strict again, and count what they hold

Open rooms are for counts that are added to others before any limit applies (:mod:`kdissect.analysis.whole`).
"""

from __future__ import annotations

from collections.abc import Sequence

from kdissect.limits import LARGEST, MIB, Limits

_HALF = 2


_LEAST_OPEN = 64 * MIB
"""The least number of bytes beyond the budget that open rooms may take. By default it is the budget again."""
_OPEN_THINGS = 1_000_000
"""How many things beyond other limits open rooms accept."""


class _Common:
    """What rooms share."""

    __slots__ = ("left", "open_bytes", "open_things")

    def __init__(self, left: int, whole: int) -> None:
        self.left = left
        """The bytes of the common half that are left; below 0 if open rooms took more."""
        self.open_bytes = min(whole + max(whole, _LEAST_OPEN), LARGEST)
        """The bytes that open rooms may still take …"""
        self.open_things = _OPEN_THINGS
        """… and the number of things that they still accept beyond other limits."""


class Room:
    """The memory of one fold."""

    __slots__ = ("_common", "_held", "_is_open", "_most", "_own", "exceeded", "limits", "refused")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._held = 0
        self._own = 0
        """The number of bytes that are reserved for this fold."""
        self._most = limits.fact_bytes
        self._common = _Common(limits.fact_bytes, limits.fact_bytes)
        self._is_open = False
        """Whether it accepts more than fits."""
        self.exceeded = False
        """Whether it accepted something beyond a limit that is no number of bytes."""
        self.refused = False
        """Whether there was no room for something."""

    @property
    def held(self) -> int:
        """The number of bytes taken."""
        return self._held

    def takes(self, size: int) -> bool:
        """Take this many bytes. If they are not left, take none and return False."""
        common, held = self._common, self._held + size
        if self._is_open:
            if common.open_bytes < size:
                self.refused = True
                return False
            common.open_bytes -= size
        elif held > self._most or (held > self._own and common.left < min(size, held - self._own)):
            self.refused = True
            return False
        if held > self._own:
            common.left -= min(size, held - self._own)
        self._held = held
        return True

    def refuses(self, is_beyond: bool) -> bool:
        """Whether something must be left out.

        :param is_beyond: whether it is beyond a limit of its fold.
        """
        if not is_beyond or not self._is_open:
            return is_beyond
        self.exceeded = True
        self._common.open_things -= 1
        return self._common.open_things < 0

    def _exceeds(self) -> bool:
        return self.exceeded or self._held > self._most or self._common.left < 0

    def _move(self, own: int, most: int, common: _Common) -> None:
        self._own, self._most, self._common = own, most, common
        common.left -= max(0, self._held - own)

    def _set_open(self, is_open: bool) -> None:
        self._is_open = is_open


def share(rooms: Sequence[Room], percent: int = 100) -> None:
    """Let folds share one budget: the least budget that one of them had, or a percentage of it."""
    if not rooms:
        return
    whole = min(each.limits.fact_bytes for each in rooms) * percent // 100
    own = whole // 2 // len(rooms)
    common = whole - own * len(rooms)
    most = own + common // min(len(rooms), _HALF)
    shared = _Common(common, whole)
    for each in rooms:
        each._move(own, most, shared)


def open_all(rooms: Sequence[Room]) -> None:
    """Let new rooms accept more than fits."""
    for each in rooms:
        each._set_open(True)


def are_exceeded(rooms: Sequence[Room]) -> bool:
    """Whether open rooms hold something that strict ones would not have taken."""
    return any(each._exceeds() for each in rooms)


def close_all(rooms: Sequence[Room]) -> None:
    """Let open rooms that are not exceeded be strict."""
    for each in rooms:
        each._set_open(False)
