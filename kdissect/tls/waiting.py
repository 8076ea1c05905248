"""The records of one connection that wait, and losses among them, in order of arrival; and why they wait.

A record waits for its key. Later records of its direction wait with it. Data of the other direction waits
too, because it may be the answer.
"""

from __future__ import annotations

from kdissect.tls.flow import Flow
from kdissect.tls.keying import Keying, Side
from kdissect.tls.negotiation import TRAFFIC
from kdissect.tls.records import Item, TlsRecord

WAIT_COST = 256
"""The memory that a waiting record takes besides its bytes."""


class WaitingRecords:
    """Both directions in one order, with the first item of each direction."""

    __slots__ = ("_firsts", "_flows", "_keying", "bytes", "items")

    def __init__(self, flows: tuple[Flow, Flow], keying: Keying) -> None:
        self._flows = flows
        self._keying = keying
        self.items: list[tuple[Side, Item]] = []
        """The waiting items, in order."""
        self._firsts: list[Item | None] = [None, None]
        self.bytes = 0
        """The memory that all items take."""

    def add(self, side: Side, item: Item) -> None:
        """Add an item behind all others."""
        self.items.append((side, item))
        if self._firsts[side] is None:
            self._firsts[side] = item
        self.bytes += WAIT_COST + (len(item.fragment) if isinstance(item, TlsRecord) else 0)

    def must_wait(self, side: Side, item: Item) -> bool:
        """Whether a new item of a side cannot be read yet."""
        return self._firsts[side] is not None or self._lacks_key(side, item) or self._may_answer(side)

    def _lacks_key(self, side: Side, item: Item) -> bool:
        return isinstance(item, TlsRecord) and self._keying.must_wait(side, item.type)

    def _may_answer(self, side: Side) -> bool:
        """Whether an item of this side may answer a waiting item of the other side. Only items under the
        final keys may. No waiting item needs them."""
        return self._firsts[1 - side] is not None and self._flows[side].stage == TRAFFIC

    def is_any_free(self) -> bool:
        """Whether any item need not wait any more. It is enough to check the first item of each side.
        Checking all items after every change would take quadratic time."""
        if not self.items:
            return False
        side, item = self.items[0]
        if not self._lacks_key(side, item):
            return True
        other = self._firsts[1 - side]
        return other is not None and not self._lacks_key(1 - side, other) and not self._may_answer(1 - side)

    def take(self) -> list[tuple[Side, Item]]:
        """Remove all items and return them."""
        items = self.items
        self.items, self._firsts, self.bytes = [], [None, None], 0
        return items
