"""The number of records with each key. Keys are not kept: only a digest, and the position of the first
record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from kdissect.analysis.packed import packed
from kdissect.lazy import Later

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = Later("hashlib")  # it loads a library for encryption

_DIGEST_BYTES = 16


class RecordSpot(NamedTuple):
    """The position of a record. The smaller of two came first."""

    ns: int
    exchange: int
    at: int
    """Its position within the exchange."""
    partition: int
    """-1 if unknown."""
    offset: int
    """-1 if unknown."""


@packed
@dataclass(slots=True)
class KeyCount:
    """The records with one key."""

    records: int = 0
    first: RecordSpot | None = None
    is_spread: bool = False
    """Whether they are in several partitions."""

    def add(self, where: RecordSpot) -> None:
        """Count a record with the key."""
        self.records += 1
        self.is_spread |= self.first is not None and self.first.partition != where.partition
        self.first = where if self.first is None else min(self.first, where)

    def merge(self, later: KeyCount) -> None:
        """Add later counts."""
        self.records += later.records
        self.is_spread |= later.is_spread
        if later.first is not None:
            self.is_spread |= self.first is not None and self.first.partition != later.first.partition
            self.first = later.first if self.first is None else min(self.first, later.first)


def digest_of(key: bytes) -> bytes:
    """The digest that is kept instead of a key. No table, finding or state shows it."""
    return hashlib.blake2b(key, digest_size=_DIGEST_BYTES).digest()


class Top(NamedTuple):
    """The most frequent key of several."""

    keys: int
    """The number of different keys."""
    records: int
    """The number of records with the most frequent key."""
    first: RecordSpot | None
    is_spread: bool = False

    @property
    def partition(self) -> int:
        """The partition of all these records; -1 if they are in several, or it is unknown."""
        return -1 if self.first is None or self.is_spread else self.first.partition

    @property
    def offset(self) -> int:
        """The offset of the first of these records; -1 if it is unknown."""
        return -1 if self.first is None or self.is_spread else self.first.offset


def tops(counts: dict[tuple[Any, ...], KeyCount]) -> dict[tuple[Any, ...], Top]:
    """The most frequent keys, by the part of the table's keys before the digest. If two are equal, the one
    that came first."""
    found: dict[tuple[Any, ...], Top] = {}
    for (*what, _), count in counts.items():
        key, before = tuple(what), found.get(tuple(what), Top(0, 0, None))
        is_more = _rank(count.records, count.first) < _rank(before.records, before.first)
        best = count if is_more else before
        found[key] = Top(before.keys + 1, best.records, best.first, best.is_spread)
    return found


def _rank(records: int, first: RecordSpot | None) -> tuple[Any, ...]:
    return (-records, first is None, first or ())
