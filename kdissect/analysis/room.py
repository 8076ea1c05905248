"""The memory that folds may take: one budget for all that are fed together.

    room = Room(limits)               of one fold; all of the budget, as long as it is alone
    share([room, other, …])           from now on these have one budget
    if room.takes(200): …             else what would be kept is counted as left out

Sizes are estimates: what is kept, and the row that is made of it. Half of the budget is divided evenly, so
that no fold is without room where another one has much to keep. The rest is for whoever needs it first; none
of several may take over half of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from kdissect.limits import Limits

_HALF = 2


class _Common:
    """Bytes that whoever needs them first takes."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


class Room:
    """What one fold may hold."""

    __slots__ = ("_common", "_held", "_most", "_own", "limits", "refused")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._held = 0
        self._own = 0
        """So many bytes nobody else may take."""
        self._most = limits.fact_bytes
        self._common = _Common(limits.fact_bytes)
        self.refused = False
        """Whether there was no room for something."""

    @property
    def held(self) -> int:
        """Bytes that were taken."""
        return self._held

    def takes(self, size: int) -> bool:
        """Take so many bytes; False, and nothing is taken, where they are not left."""
        if not self.has(size):
            self.refused = True
            return False
        held = self._held + size
        if held > self._own:
            self._common.left -= min(size, held - self._own)
        self._held = held
        return True

    def has(self, size: int) -> bool:
        """Whether so many bytes are left. Where they are not, they never will be."""
        held = self._held + size
        return held <= self._own or (held <= self._most and self._common.left >= min(size, held - self._own))

    def _move(self, own: int, most: int, common: _Common) -> None:
        self._own, self._most, self._common = own, most, common
        common.left -= max(0, self._held - own)


def share(rooms: Sequence[Room], percent: int = 100) -> None:
    """Let folds have one budget, the least that one of them had, or so many percent of it."""
    if not rooms:
        return
    whole = min(each.limits.fact_bytes for each in rooms) * percent // 100
    own = whole // 2 // len(rooms)
    common = whole - own * len(rooms)
    most = own + common // min(len(rooms), _HALF)
    shared = _Common(common)
    for each in rooms:
        each._move(own, most, shared)
