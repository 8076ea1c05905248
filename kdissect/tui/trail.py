"""Where one jumped from: the way back, and forward again, as browsers have it. Nothing here draws."""

from __future__ import annotations

MOST = 200
"""Places that are kept; of more, the oldest are forgotten."""


class Trail:
    """Places of exchanges, in the order in which they were left."""

    def __init__(self) -> None:
        self._behind: list[int] = []
        self._ahead: list[int] = []

    def leave(self, place: int) -> None:
        """A jump leads away from here. What was ahead is forgotten."""
        self._ahead.clear()
        if not self._behind or self._behind[-1] != place:
            self._behind = [*self._behind, place][-MOST:]

    def back(self, here: int) -> int | None:
        """The place that the last jump left; None without a jump."""
        return _step(self._behind, self._ahead, here)

    def forward(self, here: int) -> int | None:
        """The place that the last :meth:`back` left; None without one."""
        return _step(self._ahead, self._behind, here)


def _step(to: list[int], other: list[int], here: int) -> int | None:
    while to:
        place = to.pop()
        if place != here:
            other.append(here)
            return place
    return None
