"""Statements of captured messages about a cluster, each about one thing, kept by their tellers.

    statements.add(Statement("topic", ("orders",), (("partitions", 3),)), source)

Brokers repeat themselves with every Metadata. Repetitions by one broker about one thing, in messages of one
API, are kept once, with the first and the last time. So a broker that is behind the others does not make the
known values go to and fro. The time when each broker began to say it counts.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kdissect.analysis.packed import packed
from kdissect.analysis.room import Room
from kdissect.exchange import Exchange

Fields = tuple[tuple[str, Any], ...]
"""Names and values in the statement. Unknown fields are absent."""


class Statement(NamedTuple):
    """The statement of a message about one thing."""

    kind: str
    """``endpoint``, ``node``, ``listing``, ``topic``, ``partition``, ``config``, ``controller`` …"""
    subject: tuple[Hashable, ...]
    """The key of the thing."""
    fields: Fields
    by: str | None = None
    """The client that made it so, if the message is an order that was carried out."""


class Source(NamedTuple):
    """The source of a statement."""

    ns: int
    number: int
    """The number of the exchange."""
    told_by: str
    """The API, or the class of the record."""
    teller: str
    """``address:port`` of the broker of the connection."""
    counts: bool = True
    """Whether the exchange counts."""


@packed
@dataclass(slots=True)
class Said:
    """A statement that one teller made once, or several times in a row."""

    fields: Fields
    by: str | None
    ns: int
    number: int
    last_ns: int
    last_number: int
    counts: bool

    def matches(self, fields: Fields, by: str | None) -> bool:
        """Whether it has these fields and this client."""
        return (self.fields is fields or self.fields == fields) and self.by == by

    def add_repeats(self, ns: int, number: int, last_ns: int, last_number: int, counts: bool) -> None:
        """Add the times and numbers of further exchanges that made it."""
        if ns < self.ns or (ns == self.ns and number < self.number):
            self.ns, self.number = ns, number
        if last_ns > self.last_ns or (last_ns == self.last_ns and last_number > self.last_number):
            self.last_ns, self.last_number = last_ns, last_number
        self.counts = self.counts or counts

    def copy(self) -> Said:
        """A copy that can be changed by itself."""
        return Said(self.fields, self.by, self.ns, self.number, self.last_ns, self.last_number, self.counts)


class ThingStatements:
    """The statements about one thing."""

    __slots__ = ("count", "rows")

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], list[Said]] = {}
        """The statements of each teller and API."""
        self.count = 0
        """The number of changes, by all tellers."""


class Kept:
    """Where the statements of a message are kept, and when the message was repeated. They take in all
    repetitions at once, not one by one."""

    __slots__ = ("changes", "counts", "first", "last", "said")

    def __init__(self, said: list[tuple[list[Said], Said]], changes: int) -> None:
        self.said = said
        """The teller's statements about each thing, and the last one."""
        self.changes = changes
        """The number of changes of each thing when these statements were the last."""
        self.first: tuple[int, int] | None = None
        """Time and exchange of the first repetition that the statements have not yet taken in."""
        self.last = (0, 0)
        self.counts = False
        """Whether one of the repetitions counts."""

    def flush(self) -> None:
        """Add the repetitions to the statements."""
        if self.first is not None:
            (first_ns, first_number), (last_ns, last_number) = self.first, self.last
            for _, said in self.said:
                said.add_repeats(first_ns, first_number, last_ns, last_number, self.counts)
            self.first, self.counts = None, False


_NO_THINGS: dict[tuple[Hashable, ...], ThingStatements] = {}
"""The things of a kind without statements; always empty."""
_THING_BYTES, _LINE_BYTES, _SAID_BYTES = 500, 900, 600
"""The approximate memory of a thing, of a teller's first statement about it, and of each further one."""


class Statements:
    """Statements by the thing that they are about. At most ``limits.rows`` things of a kind are kept, and the
    limits of :class:`~kdissect.analysis.timelines.Timelines` hold. The first are kept."""

    def __init__(self, room: Room) -> None:
        self._kinds: dict[str, dict[tuple[Hashable, ...], ThingStatements]] = {}
        self._room = room
        self._limits = room.limits
        self._count = 0
        self._changes = 0
        """How often a teller made another statement about a thing than before."""
        self._repeated: list[Kept] = []
        """Repeated messages that the statements have not yet taken in."""
        self.left_out = 0
        """The number of statements that were not kept."""

    def __getstate__(self) -> dict[str, Any]:
        self._flush()
        return self.__dict__

    def add(self, statements: Sequence[Statement], source: Source) -> Kept | None:
        """Add the statements of one message, after earlier ones.

        :returns: where they are kept, for :meth:`again`; None if not all are kept.
        """
        teller = source.teller, source.told_by
        kept: list[tuple[list[Said], Said]] | None = []
        ns, number, counts = source.ns, source.number, source.counts
        of_kind, things = None, _NO_THINGS
        for kind, subject, found, by in statements:
            if kind != of_kind:
                of_kind, things = kind, self._kinds.get(kind, _NO_THINGS)
            line = things.get(subject)
            row = None if line is None else line.rows.get(teller)
            last = None if row is None else row[-1]
            if last is not None and last.matches(found, by):
                last.add_repeats(ns, number, ns, number, counts)
            else:
                last = Said(found, by, ns, number, ns, number, counts)
                row = self._add_new(kind, subject, teller, line, row, last)
                of_kind = None  # it may be the first thing of its kind
            if row is None:
                kept = None
            elif kept is not None:
                kept.append((row, last))
        return None if kept is None else Kept(kept, self._changes)

    def again(self, kept: Kept, ns: int, number: int, counts: bool) -> bool:
        """Add a repetition of the message, with its time and its exchange. False, and nothing is added, if
        there was another statement since."""
        if kept.changes != self._changes:
            for row, said in kept.said:
                if row[-1] is not said:
                    return False
            kept.changes = self._changes
        this = ns, number
        if kept.first is None:
            self._repeated.append(kept)
            kept.first = kept.last = this
        elif this < kept.first:
            kept.first = this
        elif this > kept.last:
            kept.last = this
        kept.counts = kept.counts or counts
        return True

    def _flush(self) -> None:
        for kept in self._repeated:
            kept.flush()
        self._repeated.clear()

    def _add(self, kind: str, subject: tuple[Hashable, ...], teller: tuple[str, str], said: Said) -> None:
        """Add a statement of a teller after its earlier ones."""
        line = self._kinds.get(kind, _NO_THINGS).get(subject)
        row = None if line is None else line.rows.get(teller)
        last = None if row is None else row[-1]
        if last is not None and last.matches(said.fields, said.by):
            last.add_repeats(said.ns, said.number, said.last_ns, said.last_number, said.counts)
        else:
            self._add_new(kind, subject, teller, line, row, said)

    def _add_new(
        self,
        kind: str,
        subject: tuple[Hashable, ...],
        teller: tuple[str, str],
        line: ThingStatements | None,
        row: list[Said] | None,
        said: Said,
    ) -> list[Said] | None:
        """Add a statement that differs from the teller's last one. Return all its statements about the thing;
        None if there is no room for this one.

        :param line: the statements about the thing, if there are any.
        :param row: this teller's statements about it, if there are any.
        """
        if line is None:
            things = self._kinds.setdefault(kind, {})
            if self._room.refuses(len(things) >= self._limits.rows) or not self._room.takes(_THING_BYTES):
                self.left_out += 1
                return None
            line = things[subject] = ThingStatements()
        is_beyond = (
            line.count >= self._limits.timeline_key_events or self._count >= self._limits.timeline_events
        )
        size = _SAID_BYTES if row is not None else _LINE_BYTES
        if self._room.refuses(is_beyond) or not self._room.takes(size):
            self.left_out += 1
            return None
        self._count += 1
        line.count += 1
        if row is None:
            row = line.rows[teller] = [said]
        else:
            row.append(said)
            self._changes += 1
        return row

    def merge(self, later: Statements) -> None:
        """Add the statements of a later part."""
        self.left_out += later.left_out
        self._flush()
        later._flush()
        for kind, things in later._kinds.items():
            for subject, line in things.items():
                for teller, row in line.rows.items():
                    for said in row:
                        self._add(kind, subject, teller, said.copy())

    def of_kind(self, kind: str) -> Iterator[tuple[tuple[Hashable, ...], str, str, Said]]:
        """All statements of a kind: subject, teller, API, and the statement."""
        self._flush()
        for subject, line in self._kinds.get(kind, {}).items():
            for (teller, told_by), row in line.rows.items():
                for said in row:
                    yield subject, teller, told_by, said


def fields(**values: Any) -> Fields:
    """The fields with known values."""
    return tuple((name, value) for name, value in values.items() if value is not None)


def client_of(exchange: Exchange) -> str:
    """The client of the request: ``alice (billing@10.0.0.7)``; without a login the client id and the
    address."""
    host = exchange.client.rpartition(":")[0]
    name = f"{exchange.client_id}@{host}" if exchange.client_id else host
    return f"{exchange.principal} ({name})" if exchange.principal else name
