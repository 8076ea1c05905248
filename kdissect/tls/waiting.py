"""What waits of one connection: records, and losses among them, in the order in which they came."""

from __future__ import annotations

from kdissect.tls.keying import Side
from kdissect.tls.records import Item, Record

WAIT_COST = 256
"""What a record that waits costs beside its bytes."""


class Waiting:
    """Both directions in one order; of each it is known which is its first."""

    __slots__ = ("_firsts", "bytes", "items")

    def __init__(self) -> None:
        self.items: list[tuple[Side, Item]] = []
        """In order."""
        self._firsts: list[Item | None] = [None, None]
        self.bytes = 0
        """What all of it costs."""

    def add(self, side: Side, item: Item) -> None:
        """One more, behind all others."""
        self.items.append((side, item))
        if self._firsts[side] is None:
            self._firsts[side] = item
        self.bytes += WAIT_COST + (len(item.fragment) if isinstance(item, Record) else 0)

    def holds(self, side: Side) -> bool:
        """Whether something of this side waits."""
        return self._firsts[side] is not None

    def firsts(self) -> list[tuple[Side, Item]]:
        """The first of each side of which something waits, in order. Those behind them wait for them."""
        if not self.items:
            return []
        earlier = self.items[0]
        side = 1 - earlier[0]
        later = self._firsts[side]
        return [earlier] if later is None else [earlier, (side, later)]

    def take(self) -> list[tuple[Side, Item]]:
        """All of it; nothing waits afterwards."""
        items = self.items
        self.items, self._firsts, self.bytes = [], [None, None], 0
        return items
