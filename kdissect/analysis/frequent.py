"""How often each key of records occurs. Keys are not kept: only a digest, and where the first record is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from kdissect.analysis.packed import packed
from kdissect.later import Later

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = Later("hashlib")  # it brings a library for encryption

_DIGEST_BYTES = 16


class RecordSpot(NamedTuple):
    """Where a record is; the smaller of two came first."""

    ns: int
    exchange: int
    at: int
    """In the exchange."""
    partition: int
    """-1 where it is not told."""
    offset: int
    """The same."""


@packed
@dataclass(slots=True)
class KeyCount:
    """Records that have one key."""

    records: int = 0
    first: RecordSpot | None = None
    is_spread: bool = False
    """Whether they are in several partitions."""

    def add(self, where: RecordSpot) -> None:
        """One more has it."""
        self.records += 1
        self.is_spread |= self.first is not None and self.first.partition != where.partition
        self.first = where if self.first is None else min(self.first, where)

    def merge(self, later: KeyCount) -> None:
        """Add what others have."""
        self.records += later.records
        self.is_spread |= later.is_spread
        if later.first is not None:
            self.is_spread |= self.first is not None and self.first.partition != later.first.partition
            self.first = later.first if self.first is None else min(self.first, later.first)


def digest_of(key: bytes) -> bytes:
    """What stands for a key in memory; no table, finding or state shows it."""
    return hashlib.blake2b(key, digest_size=_DIGEST_BYTES).digest()


class Top(NamedTuple):
    """The most frequent key of several."""

    keys: int
    """How many different ones there are."""
    records: int
    """How many records have it."""
    first: RecordSpot | None
    is_spread: bool = False

    @property
    def partition(self) -> int:
        """The partition of all of them; -1 where they are in several, or it is not told."""
        return -1 if self.first is None or self.is_spread else self.first.partition

    @property
    def offset(self) -> int:
        """That of the first of them; -1 where it is not told."""
        return -1 if self.first is None or self.is_spread else self.first.offset


def tops(counts: dict[tuple[Any, ...], KeyCount]) -> dict[tuple[Any, ...], Top]:
    """The most frequent keys by what stands before the digest; of two, the one that came first."""
    found: dict[tuple[Any, ...], Top] = {}
    for (*what, _), count in counts.items():
        key, before = tuple(what), found.get(tuple(what), Top(0, 0, None))
        is_more = _rank(count.records, count.first) < _rank(before.records, before.first)
        best = count if is_more else before
        found[key] = Top(before.keys + 1, best.records, best.first, best.is_spread)
    return found


def _rank(records: int, first: RecordSpot | None) -> tuple[Any, ...]:
    return (-records, first is None, first or ())
