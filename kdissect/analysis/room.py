"""The memory that folds may take: one budget for all that are fed together.

    room = Room(limits)               for one fold; all of the budget, as long as it is alone
    share([room, other, …])           from now on these have one budget
    if room.takes(200): …             else the fold counts the data as left out

Sizes are estimates: of the kept data, and of the row that is made from it. Half of the budget is divided
evenly, so that no fold is without room because another one has much to keep. The other half is taken by the
folds that need it first; if there are several folds, none may take over half of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from kdissect.limits import Limits

_HALF = 2


class _Common:
    """The bytes of the common half that are left."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


class Room:
    """The memory of one fold."""

    __slots__ = ("_common", "_held", "_most", "_own", "limits", "refused")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._held = 0
        self._own = 0
        """The number of bytes that are reserved for this fold."""
        self._most = limits.fact_bytes
        self._common = _Common(limits.fact_bytes)
        self.refused = False
        """Whether there was no room for something."""

    @property
    def held(self) -> int:
        """The number of bytes taken."""
        return self._held

    def takes(self, size: int) -> bool:
        """Take this many bytes. If they are not left, take none and return False."""
        if not self.has(size):
            self.refused = True
            return False
        held = self._held + size
        if held > self._own:
            self._common.left -= min(size, held - self._own)
        self._held = held
        return True

    def has(self, size: int) -> bool:
        """Whether this many bytes are left. If they are not, they never will be."""
        held = self._held + size
        return held <= self._own or (held <= self._most and self._common.left >= min(size, held - self._own))

    def _move(self, own: int, most: int, common: _Common) -> None:
        self._own, self._most, self._common = own, most, common
        common.left -= max(0, self._held - own)


def share(rooms: Sequence[Room], percent: int = 100) -> None:
    """Let folds share one budget: the least budget that one of them had, or a percentage of it."""
    if not rooms:
        return
    whole = min(each.limits.fact_bytes for each in rooms) * percent // 100
    own = whole // 2 // len(rooms)
    common = whole - own * len(rooms)
    most = own + common // min(len(rooms), _HALF)
    shared = _Common(common)
    for each in rooms:
        each._move(own, most, shared)
