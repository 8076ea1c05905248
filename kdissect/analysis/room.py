# cython: nonecheck=True
# A state that somebody forged may have None in place of objects: then C must not read or write there.
"""The memory that folds may take: one budget for all that are fed together.

    room = Room(limits)               for one fold; all of the budget, as long as it is alone
    share([room, other, …])           from now on these have one budget
    if room.takes(200): …             else the fold counts the data as left out
    if room.refuses(rows >= most): …  the same for a limit that is no number of bytes

Sizes are estimates: of the kept data, and of the row that is made from it. Half of the budget is divided
evenly, so that no fold is without room because another one has much to keep. The other half is taken by the
folds that need it first; if there are several folds, none may take over half of it.

    open_all([room, other, …])        from now on they only note what is too much
    crowded([room, other, …])         those of them that must close now, and how much they may keep
    close_all([room, other, …])       they are strict again, and count what they hold

Open rooms are for counts to which limits apply only at times (:mod:`kdissect.analysis.whole`). Rooms that
close may keep a little more than strict ones would have taken.
"""

from __future__ import annotations

from collections.abc import Sequence

from kdissect.limits import LARGEST, MIB, Limits

_HALF = 2

_BEYOND = 4
"""All closing rooms together may hold a quarter of the budget beyond it: about as much as a chapter adds.
To leave it out again, their folds would have to be made anew."""
_LEAST_OPEN = 64 * MIB
"""The least number of bytes beyond the budget that open rooms may take. By default it is the budget again."""
_OPEN_THINGS = 1_000_000
"""How many things beyond other limits open rooms accept."""


class _Common:
    """What rooms share."""

    __slots__ = ("left", "open_bytes", "open_things", "whole")

    def __init__(self, left: int, whole: int) -> None:
        self.whole = whole
        """The budget."""
        self.left = left
        """The bytes of the common half that are left; below 0 if open rooms took more."""
        self.open_bytes = 0
        """The bytes that open rooms may still take …"""
        self.open_things = 0
        """… and the number of things that they still accept beyond other limits."""
        self.begin(0)

    def begin(self, held: int) -> None:
        """Begin a chapter, in which open rooms may take as much as in any other.

        :param held: the bytes that all rooms hold.
        """
        more = max(self.whole, _LEAST_OPEN)
        self.open_bytes = max(0, (self.whole + more if self.whole < LARGEST - more else LARGEST) - held)
        self.open_things = _OPEN_THINGS


class Room:
    """The memory of one fold."""

    __slots__ = ("_before", "_common", "_held", "_is_open", "_most", "_own", "exceeded", "limits", "refused")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._held = 0
        self._before = 0
        """The number of bytes that it held before the current chapter."""
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

    @property
    def is_open(self) -> bool:
        """Whether it accepts more than fits."""
        return self._is_open

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

    def replace(self, other: Room, most: int) -> None:
        """Take the place of another room of the same budget, with at most this many bytes until
        :meth:`settle`. It must be empty."""
        self._common, self._is_open, self._before = other._common, False, other._before
        other._leave()
        self._own = self._most = most

    def settle(self, other: Room) -> None:
        """From now on, take only what the replaced room could take."""
        self._own, self._most = other._own, other._most
        self._common.left -= max(0, self._held - self._own)
        self.refused = self.refused or other.refused

    def seal(self) -> None:
        """Take nothing more."""
        self._is_open, self._most = False, -1

    def _leave(self) -> None:
        """Give back what it took of the common half."""
        self._common.left += max(0, self._held - self._own)

    def _growth(self) -> int:
        """The bytes of the common half that it took in the current chapter."""
        return max(0, self._held - max(self._own, self._before))

    def _is_crowded(self) -> bool:
        is_used_up = self._common.left < 0
        return self._is_open and (
            self.exceeded or self._held > self._most or (is_used_up and self._growth() > 0)
        )

    def _lack(self) -> int:
        """How many bytes all rooms must give back."""
        return max(0, -self._common.left - self._common.whole // _BEYOND)

    def _keeps(self, less: int) -> int:
        """The most bytes that it may keep if it gives back some of them."""
        beyond = self._common.whole // _BEYOND
        return min(self._held - less, self._most + min(beyond, LARGEST - self._most))

    def _move(self, own: int, most: int, common: _Common) -> None:
        self._own, self._most, self._common = own, most, common
        common.left -= max(0, self._held - own)

    def _set_open(self, is_open: bool) -> None:
        self._is_open = is_open

    def _begin(self, held: int) -> None:
        """Begin a chapter.

        :param held: the bytes that all rooms hold.
        """
        self._before = self._held
        self._common.begin(held)


def share(rooms: Sequence[Room], percent: int = 100, beside: Room | None = None) -> None:
    """Let folds share one budget: the least budget that one of them had, or a percentage of it.

    :param beside: a room for what they keep together. It takes of the common half only.
    """
    if not rooms:
        return
    whole = min(each.limits.fact_bytes for each in rooms) * percent // 100
    own = whole // 2 // len(rooms)
    common = whole - own * len(rooms)
    most = own + common // min(len(rooms), _HALF)
    shared = _Common(common, whole)
    for each in rooms:
        each._move(own, most, shared)
    if beside is not None:
        beside._move(0, common // _HALF, shared)


def open_all(rooms: Sequence[Room]) -> None:
    """Let new rooms accept more than fits."""
    for each in rooms:
        each._set_open(True)


def crowded(rooms: Sequence[Room]) -> dict[int, int]:
    """The open rooms that must close at the end of a chapter. They have things beyond another limit, or more
    bytes than any fold may take. If the common half is used up, those that took of it in this chapter must
    close, too.

    :param rooms: all rooms of one budget.
    :returns: for each, by its place in ``rooms``, the most bytes that its fold may keep.
    """
    growth = {place: each._growth() for place, each in enumerate(rooms) if each._is_crowded()}
    whole = sum(growth.values())
    lack = rooms[0]._lack() if whole else 0
    return {
        place: rooms[place]._keeps(-(-lack * own // whole) if lack else 0) for place, own in growth.items()
    }


def begin_chapter(rooms: Sequence[Room]) -> None:
    """Begin a chapter with what all rooms of one budget hold now."""
    held = sum(each.held for each in rooms)
    for each in rooms:
        each._begin(held)


def close_all(rooms: Sequence[Room]) -> None:
    """Let open rooms be strict."""
    for each in rooms:
        each._set_open(False)
