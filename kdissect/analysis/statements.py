"""What captured messages say of a cluster: statements, each about one thing, kept by who said them.

    statements.add(Statement("topic", ("orders",), (("partitions", 3),)), source)

Brokers repeat themselves with every Metadata. A broker may say the same of a thing again and again, with
messages of one API. This is kept once, with the first and the last time. So a broker that is behind the
others does not make what is known go to and fro. The time when each broker began to say it counts.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kdissect.analysis.packed import packed
from kdissect.analysis.room import Room
from kdissect.exchange import Exchange

Fields = tuple[tuple[str, Any], ...]
"""Name and value of what is said; what is not said is not there."""


class Statement(NamedTuple):
    """What a message says of one thing."""

    kind: str
    """``endpoint``, ``node``, ``listing``, ``topic``, ``partition``, ``config``, ``controller`` …"""
    subject: tuple[Hashable, ...]
    """Which one."""
    fields: Fields
    by: str | None = None
    """Who made it so, where the message is an order that was carried out."""


class Source(NamedTuple):
    """Where a statement comes from."""

    ns: int
    number: int
    """Of the exchange."""
    told_by: str
    """The API, or the class of the record."""
    teller: str
    """``address:port`` of the broker of the connection."""
    counts: bool = True
    """Whether the exchange is one of those that are counted."""


@packed
@dataclass(slots=True)
class Said:
    """What one teller said once, or several times in a row."""

    fields: Fields
    by: str | None
    ns: int
    number: int
    last_ns: int
    last_number: int
    counts: bool

    def says(self, fields: Fields, by: str | None) -> bool:
        """Whether that is what it says."""
        return (self.fields is fields or self.fields == fields) and self.by == by

    def take(self, ns: int, number: int, last_ns: int, last_number: int, counts: bool) -> None:
        """It was said at these times, too."""
        if ns < self.ns or (ns == self.ns and number < self.number):
            self.ns, self.number = ns, number
        if last_ns > self.last_ns or (last_ns == self.last_ns and last_number > self.last_number):
            self.last_ns, self.last_number = last_ns, last_number
        self.counts = self.counts or counts

    def copy(self) -> Said:
        """The same, to be changed by itself."""
        return Said(self.fields, self.by, self.ns, self.number, self.last_ns, self.last_number, self.counts)


class ThingStatements:
    """What was said of one thing."""

    __slots__ = ("count", "rows")

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], list[Said]] = {}
        """By teller and API."""
        self.count = 0
        """How often something else was said, by all of them."""


class Kept:
    """Where the statements of a message are kept, and when it was said again. All of them are then told that
    once, not with each repetition."""

    __slots__ = ("changes", "counts", "first", "last", "said")

    def __init__(self, said: list[tuple[list[Said], Said]], changes: int) -> None:
        self.said = said
        """What the teller said of a thing, and the last of that."""
        self.changes = changes
        """How often anything else was said when these were the last."""
        self.first: tuple[int, int] | None = None
        """Time and exchange of the first repetition that the statements were not told of."""
        self.last = (0, 0)
        self.counts = False
        """Whether one of the repetitions counts."""

    def settle(self) -> None:
        """Tell the statements of the repetitions."""
        if self.first is not None:
            (first_ns, first_number), (last_ns, last_number) = self.first, self.last
            for _, said in self.said:
                said.take(first_ns, first_number, last_ns, last_number, self.counts)
            self.first, self.counts = None, False


_NO_THINGS: dict[tuple[Hashable, ...], ThingStatements] = {}
"""Of a kind of which nothing is said yet; nobody adds to it."""
_THING_BYTES, _LINE_BYTES, _SAID_BYTES = 500, 900, 600
"""About what they take: a thing of which something is said, a teller's first word of it, each further one."""


class Statements:
    """Statements by what they are about. No more than ``limits.rows`` things of a kind are kept, and the
    limits of :class:`~kdissect.analysis.timelines.Timelines` hold. What came first is kept."""

    def __init__(self, room: Room) -> None:
        self._kinds: dict[str, dict[tuple[Hashable, ...], ThingStatements]] = {}
        self._room = room
        self._limits = room.limits
        self._count = 0
        self._changes = 0
        """How often a teller said something else of a thing than before."""
        self._repeated: list[Kept] = []
        """Messages that were said again, of which the statements do not know yet."""
        self.left_out = 0
        """How many were not kept."""
        self._whole: Statements | None = None
        """What they are to be added to, where nothing new finds room in it."""

    def __getstate__(self) -> dict[str, Any]:
        """What they are to be added to is there at the other end."""
        self._settle()
        return {**self.__dict__, "_whole": None}

    @property
    def is_full(self) -> bool:
        """Whether there is no room for a further thing or teller, and never will be."""
        return not self._room.has(_THING_BYTES)

    def keep_to(self, whole: Statements) -> None:
        """Keep nothing that would find no room in what it is to be added to."""
        self._whole = whole if whole.is_full else None

    def _finds_room(self, kind: str, subject: tuple[Hashable, ...], teller: tuple[str, str]) -> bool:
        """Whether what the teller says of it may find room in what it is to be added to."""
        if self._whole is None:
            return True
        line = self._whole._kinds.get(kind, {}).get(subject)
        return line is not None and teller in line.rows

    def add(self, statements: Sequence[Statement], source: Source) -> Kept | None:
        """Statements of one message, after those that were said before.

        :returns: where they are kept, for :meth:`again`; None if not all are.
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
            if last is not None and last.says(found, by):
                last.take(ns, number, ns, number, counts)
            else:
                last = Said(found, by, ns, number, ns, number, counts)
                row = self._say(kind, subject, teller, line, row, last)
                of_kind = None  # it may be the first thing of its kind
            if row is None:
                kept = None
            elif kept is not None:
                kept.append((row, last))
        return None if kept is None else Kept(kept, self._changes)

    def again(self, kept: Kept, source: Source) -> bool:
        """The same message once more. False, and nothing is added, if something else was said since."""
        if kept.changes != self._changes:
            for row, said in kept.said:
                if row[-1] is not said:
                    return False
            kept.changes = self._changes
        this = source.ns, source.number
        if kept.first is None:
            self._repeated.append(kept)
            kept.first = kept.last = this
        elif this < kept.first:
            kept.first = this
        elif this > kept.last:
            kept.last = this
        kept.counts = kept.counts or source.counts
        return True

    def _settle(self) -> None:
        for kept in self._repeated:
            kept.settle()
        self._repeated.clear()

    def _add(self, kind: str, subject: tuple[Hashable, ...], teller: tuple[str, str], said: Said) -> None:
        """What the teller said of it, after what it said before."""
        line = self._kinds.get(kind, _NO_THINGS).get(subject)
        row = None if line is None else line.rows.get(teller)
        last = None if row is None else row[-1]
        if last is not None and last.says(said.fields, said.by):
            last.take(said.ns, said.number, said.last_ns, said.last_number, said.counts)
        else:
            self._say(kind, subject, teller, line, row, said)

    def _say(
        self,
        kind: str,
        subject: tuple[Hashable, ...],
        teller: tuple[str, str],
        line: ThingStatements | None,
        row: list[Said] | None,
        said: Said,
    ) -> list[Said] | None:
        """What the teller said of it, with this, which is something else, as the last; None where it is not
        kept.

        :param line: what was said of it, if anything was.
        :param row: what this teller said of it, if it said anything.
        """
        if not self._finds_room(kind, subject, teller):
            self.left_out += 1
            self._room.refused = True
            return None
        if line is None:
            things = self._kinds.setdefault(kind, {})
            if len(things) >= self._limits.rows or not self._room.takes(_THING_BYTES):
                self.left_out += 1
                return None
            line = things[subject] = ThingStatements()
        if (
            line.count >= self._limits.timeline_key_events
            or self._count >= self._limits.timeline_events
            or not self._room.takes(_SAID_BYTES if row is not None else _LINE_BYTES)
        ):
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
        """Add those of another that came after."""
        self.left_out += later.left_out
        self._settle()
        later._settle()
        for kind, things in later._kinds.items():
            for subject, line in things.items():
                for teller, row in line.rows.items():
                    for said in row:
                        self._add(kind, subject, teller, said.copy())

    def about(self, kind: str) -> Iterator[tuple[tuple[Hashable, ...], str, str, Said]]:
        """All of a kind: subject, teller, API, and what was said."""
        self._settle()
        for subject, line in self._kinds.get(kind, {}).items():
            for (teller, told_by), row in line.rows.items():
                for said in row:
                    yield subject, teller, told_by, said


def fields(**values: Any) -> Fields:
    """Those that are known."""
    return tuple((name, value) for name, value in values.items() if value is not None)


def who(exchange: Exchange) -> str:
    """The client that asks: ``alice (billing@10.0.0.7)``; without a login the client id and the address."""
    host = exchange.client.rpartition(":")[0]
    name = f"{exchange.client_id}@{host}" if exchange.client_id else host
    return f"{exchange.principal} ({name})" if exchange.principal else name
