"""Transactions: the begin and the end of each, its content, its cost, and when readers could see it.

:mod:`kdissect.analysis.transaction_course` finds the ends.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

from kdissect.analysis.clusters import NameAt, OfClusters
from kdissect.analysis.declared import CLIENT_COLUMN, CLIENT_ID_COLUMN, EXCHANGE, column, time_column
from kdissect.analysis.fold import SECOND, Row, View
from kdissect.analysis.labels import Topic
from kdissect.analysis.transaction import ABORTED, COMMITTED, OPEN, TIMED_OUT, UNKNOWN, Transaction, doubt
from kdissect.analysis.transaction_course import REFUSALS, Machine, is_unanswered
from kdissect.analysis.transaction_marks import Active, Mark, Marker, Orphan, Place, ReadableTo
from kdissect.analysis.transactional import PlaceAt, StableTo, Transactional

K = TypeVar("K", bound=Hashable)
T = TypeVar("T", Mark, Marker, ReadableTo)

MOST_EXCHANGES = 8
_NOBODY: tuple[int | None, Active | None] = (None, None)
HELD_NS = SECOND
"""How long readers must be held back at least before a transaction without a captured producer is a row."""


class Transactions(View[Transactional]):
    """The statistic ``transactions``."""

    name = "transactions"
    about = "each transaction: what ended it, what it wrote, its retries, and when readers could see it"
    columns = (
        column(
            "transactional_id",
            "text",
            "the transactional id; null if only Fetches or DescribeProducers show the transaction",
            kept=True,
        ),
        column(
            "cluster_id",
            "text",
            "id of its cluster, or of the only cluster that the capture shows; null if it is unknown",
            apart=True,
        ),
        column("producer_id", "int64", "the producer id"),
        column("producer_epoch", "int16", "its epoch while the transaction was open"),
        column(
            "version",
            "text",
            "TV1: the client adds partitions; TV2: each transaction has its epoch (KIP-890)",
        ),
        CLIENT_ID_COLUMN,
        CLIENT_COLUMN,
        column("coordinator", "text", "address:port of the broker that coordinates it"),
        time_column(
            "begin_ns",
            "time of its first request that was not refused; null if that may not be in the capture",
        ),
        time_column(
            "end_ns",
            "time of the response that ended it; null without such a response, or while it is open",
        ),
        column("duration_ns", "int64", "end_ns - begin_ns"),
        column(
            "outcome",
            "text",
            "committed, aborted, fenced (another producer took the id), timed-out (by the coordinator), "
            "open, or unknown (the capture does not show what ended it)",
            kept=True,
        ),
        column(
            "asked",
            "text",
            "what the last EndTxn asks for: commit or abort. The outcome differs if the broker refused it",
        ),
        column("ended_by", "text", "EndTxn, InitProducerId of which client, or the coordinator"),
        column("taken_by_client_id", "text", "client id of another client that took the transactional id"),
        column("taken_by_client", "text", "address:port of that client"),
        column("partitions", "int32", "partitions that it wrote to or added; null if some may be missing"),
        column("records", "int64", "records that it wrote; null if some may be missing"),
        column("bytes", "int64", "bytes of the batches that it wrote"),
        column("groups", "texts", "groups whose offsets it commits"),
        column("offsets", "int32", "partitions whose offsets it commits"),
        column("retries", "int32", "requests that were refused and could be tried again", rare=True),
        column(
            "retry_ns", "int64", "sum of the times from the first refusal of a request until it succeeded"
        ),
        column(
            "markers_ns",
            "int64",
            "from its end to the last response to WriteTxnMarkers of the coordinator, if captured",
        ),
        column(
            "visible_ns",
            "int64",
            "from its end until Fetch responses show that readers can read past it in all of its partitions",
        ),
        column(
            "held_ns",
            "int64",
            "how long readers of committed records were held back at its first record, according to Fetch "
            "responses",
            kept=True,
        ),
        column(
            "held_offsets", "int64", "most offsets after its first record that these readers could not read"
        ),
        column("held_topic", "text", "topic in which readers were held back"),
        column("held_partition", "int32", "partition in which readers were held back"),
        column("timeout_ms", "int32", "transaction.timeout.ms of its producer"),
        column("state", "text", "its state in the coordinator's last response about it"),
        column("errors", "texts", "error codes in the responses to its requests"),
        column(
            "exchanges", "int64s", "exchanges: the first, the most important ones, the last", unit=EXCHANGE
        ),
        time_column("last_ns", "time of its last request"),
    )

    basis_type = Transactional

    @property
    def left_out(self) -> int:
        basis = self.basis
        if basis.lines.marks + basis.stable.marks + basis.active.marks <= self.limits.rows:
            return basis.left_out  # no mark makes more than one row
        return basis.left_out + max(0, len(self._rows()) - self.limits.rows)

    def result(self) -> list[Row]:
        return self._rows()[: self.limits.rows]

    def _rows(self) -> list[Row]:
        self.basis.labels.resolve_names()
        return _TransactionsLook(self.basis).rows()


class _Readers:
    """The offsets up to which readers could read a partition, by time. If a partition is read for long, it
    has thousands of these, and each transaction asks for them."""

    def __init__(self, line: list[ReadableTo]) -> None:
        self.line = _by_time(line)
        self._times = [each.ns for each in self.line]
        self._highest = list(itertools.accumulate((each.stable for each in reversed(self.line)), max))
        """The highest readable offset, from the last answer backwards."""
        first: dict[int, int] = {}
        self.standing: dict[int, tuple[int, int]] = {}
        """For each offset, how long readers were seen standing at it with more records after it, and how
        many."""
        for ns, _, stable, high in self.line:
            if high > stable:
                since = first.setdefault(stable, ns)
                more = self.standing[stable][1] if stable in self.standing else 0
                self.standing[stable] = ns - since, max(more, high - stable)

    def passed_ns(self, offset: int, since_ns: int) -> int | None:
        """When readers could first read past an offset, not before a time; None if they could not."""
        at = bisect_left(self._times, since_ns)
        if at == len(self.line) or self._highest[len(self.line) - 1 - at] <= offset:
            return None
        while self.line[at].stable <= offset:
            at += 1
        return self._times[at]


class _TransactionsLook:
    """One evaluation of all events so far."""

    def __init__(self, taken: Transactional) -> None:
        self._taken = taken
        self._all_markers: dict[int, OfClusters[Marker]] = {}
        producers = self._in_clusters(taken.markers, lambda each: NameAt(str(each[0]), each[1]))
        for key, cluster in producers.items():
            of_producer = self._all_markers.setdefault(key[0], OfClusters())
            of_producer.add(cluster, (_named_marker(self._named, each) for each in taken.markers.line(key)))
        self._all_stable: dict[Place, OfClusters[ReadableTo]] = {}
        for at, cluster in self._in_clusters(taken.stable, self._topic_at).items():
            of_place = self._all_stable.setdefault(self._named(at[0]), OfClusters())
            of_place.add(cluster, (ReadableTo(*each) for each in taken.stable.line(at)))
        self._all_free: dict[Place, OfClusters[StableTo]] = {}
        for at, cluster in self._in_clusters(taken.free.rows, self._topic_at).items():
            self._all_free.setdefault(self._named(at[0]), OfClusters()).add(cluster, [taken.free[at]])
        self._explained: dict[tuple[Place, int], set[str]] = {}
        """First offsets of transactions, with their clusters."""
        self._cluster = ""
        """The cluster that is being evaluated. Its known facts follow."""
        self._markers: dict[int, list[Marker]] = {}
        self._ordered: dict[tuple[int, int | None], list[int]] = {}
        self._stable: dict[Place, _Readers] = {}
        self._free: dict[Place, list[StableTo]] = {}

    def _enter(self, cluster: str) -> None:
        self._cluster = cluster
        self._markers = {each: _by_time(found.of(cluster)) for each, found in self._all_markers.items()}
        self._ordered = _times_of_orders(self._markers)
        self._stable = {each: _Readers(found.of(cluster)) for each, found in self._all_stable.items()}
        self._free = {each: found.of(cluster) for each, found in self._all_free.items()}

    def _in_clusters(self, keys: Iterable[K], name_at: Callable[[K], NameAt]) -> dict[K, str]:
        """The cluster of each key; empty if it is unknown."""
        names = {key: name_at(key) for key in keys}
        places = self._taken.latest.clusters.apart(names.values())
        return {key: places[name].at for key, name in names.items()}

    def _topic_at(self, at: PlaceAt) -> NameAt:
        return NameAt(self._named(at[0])[0].name, at[1])

    def _named(self, place: Place) -> Place:
        topic, number = place
        return Topic(self._taken.labels.name(topic) or "", ""), number

    def rows(self) -> list[Row]:
        lines: dict[str, dict[str, list[Mark]]] = {}
        for key, cluster in self._in_clusters(self._taken.lines, lambda each: each).items():
            line = lines.setdefault(cluster, {}).setdefault(key.name, [])
            line += (self._named_mark(each) for each in self._taken.lines.line(key))
        rows: list[Row] = []
        for cluster, names in lines.items():
            self._enter(cluster)
            rows += self._rows_here(names)
        return sorted([*rows, *self._held_by_nobody()], key=_order)

    def _rows_here(self, lines: dict[str, list[Mark]]) -> list[Row]:
        found: list[tuple[str | None, Transaction]] = []
        for key, line in lines.items():
            machine, marks = Machine(self._markers), _by_time(line)
            done = machine.run(marks)
            connections = sorted({each.connection for each in marks if each.client is not None})
            doubt(
                done,
                marks,
                sorted(Orphan(*one) for each in connections for one in self._taken.orphans.line(each)),
            )
            for each in done:
                self._resolve(machine, each)
                found.append((key, each))
        rows = [self._row(key, each) for key, each in found]
        return [row for row, (_, each) in zip(rows, found, strict=True) if each.counts]

    def _named_mark(self, values: tuple[Any, ...]) -> Mark:
        mark = Mark(*values)
        written = tuple(each._replace(place=self._named(each.place)) for each in mark.written)
        return mark._replace(
            parts=tuple(map(self._named, mark.parts)),
            offsets=tuple(map(self._named, mark.offsets)),
            written=written,
        )

    def _resolve(self, machine: Machine, each: Transaction) -> None:
        """Set the end that markers and readers show, if the producer's requests do not."""
        if each.outcome not in (OPEN, UNKNOWN):
            return
        marker = machine.marker_of(each)
        if marker is not None:
            if marker.committed:
                each.outcome = COMMITTED
            elif each.outcome == OPEN and each.asked is None:
                late = each.is_late(marker.ns)
                known = TIMED_OUT if late else ABORTED if late is False else UNKNOWN
                each.end(known, None, "the coordinator" if late else None)
            elif REFUSALS.isdisjoint(each.errors) and each.ended_by in (None, "EndTxn"):
                each.outcome = ABORTED
            return
        if each.outcome == OPEN and (
            is_unanswered(each) or (each.asked is not None and each.asked.missing != "capture ended")
        ):
            each.outcome = UNKNOWN
        if each.outcome == OPEN and each.asked is None:
            passed_ns = self._passed_ns(each)
            if passed_ns is not None:
                late = each.is_late(passed_ns)
                each.end(TIMED_OUT if late else UNKNOWN, None, "the coordinator" if late else None)
            elif self._was_passed(each):
                each.end(UNKNOWN, None, None)

    def _was_passed(self, each: Transaction) -> bool:
        """Whether nothing was open in one of its partitions later. Then it was over there, though nobody
        shows when: the capture has a hole, or readers came back after a while."""
        return any(
            one.passed(offset, each.last_ns)
            for place, offset in _first_offsets(each).items()
            for one in self._free.get(place, ())
        )

    def _passed_ns(self, each: Transaction) -> int | None:
        """When readers first got all of its partitions stable beyond it; None if they did not."""
        latest = None
        for place, offset in _first_offsets(each).items():
            readers = self._stable.get(place)
            ns = None if readers is None else readers.passed_ns(offset, each.last_ns)
            if ns is None:
                return None
            latest = ns if latest is None else max(latest, ns)
        return latest

    def _held(self, each: Transaction) -> tuple[int, int, Place] | None:
        """How long readers stood at its first record in a partition, the number of offsets after it, and the
        partition."""
        best: tuple[int, int, Place] | None = None
        for place, offset in _first_offsets(each).items():
            self._explained.setdefault((place, offset), set()).add(self._cluster)
            readers = self._stable.get(place)
            found = None if readers is None else readers.standing.get(offset)
            if found is not None and (best is None or found[0] > best[0]):
                best = (*found, place)
        return best

    def _held_by_nobody(self) -> list[Row]:
        """Readers that are held back by a transaction without a captured producer."""
        rows = []
        told_by = [
            (key, Active(*mark)) for key in self._taken.active for mark in self._taken.active.line(key)
        ]
        clusters = self._in_clusters({(each.place, broker) for (_, broker), each in told_by}, self._topic_at)
        active: dict[tuple[str, Place, int], tuple[int | None, Active | None]] = {
            (clusters[each.place, broker], self._named(each.place), each.start_offset): (producer, each)
            for (producer, broker), each in told_by
        }
        for place, found_lines in self._all_stable.items():
            for cluster, unsorted in found_lines:
                readers = _Readers(unsorted)
                for offset, found in readers.standing.items():
                    if self._is_explained(cluster, place, offset) or found[0] < HELD_NS:
                        continue
                    producer, told = active.pop((cluster, place, offset), _NOBODY)
                    at = [one for one in readers.line if one.stable == offset]
                    free = self._all_free[place].of(cluster) if place in self._all_free else []
                    is_over = any(one.stable > offset for one in free) or any(
                        one.stable > offset for one in readers.line
                    )
                    outcome = UNKNOWN if is_over else OPEN
                    rows.append(self._bare(cluster, place, producer, told, outcome, at, found))
        for (cluster, place, offset), (producer, told) in active.items():
            if not self._is_explained(cluster, place, offset) and told is not None and told.counts:
                rows.append(self._bare(cluster, place, producer, told, OPEN, [], None))
        return rows

    def _is_explained(self, cluster: str, place: Place, offset: int) -> bool:
        """Whether a transaction of a captured producer begins there."""
        found = self._explained.get((place, offset), set())
        return cluster in found or "" in found or (not cluster and bool(found))

    def _bare(
        self,
        cluster: str,
        place: Place,
        producer: int | None,
        told: Active | None,
        outcome: str,
        seen: list[ReadableTo],
        held: tuple[int, int] | None,
    ) -> Row:
        row: Row = {each.name: None for each in Transactions.columns}
        numbers = [told.number] if told is not None else []
        numbers += [one.number for one in seen]
        row |= {
            "cluster_id": cluster or None,
            "producer_id": producer,
            "producer_epoch": told.epoch if told is not None else None,
            "outcome": outcome,
            "groups": [],
            "errors": [],
            "held_ns": held[0] if held is not None else None,
            "held_offsets": held[1] if held is not None else None,
            "held_topic": place[0].name or None,
            "held_partition": place[1],
            "exchanges": _few(numbers, []),
            "last_ns": max([*(one.ns for one in seen), *([told.ns] if told is not None else [])]),
        }
        return row

    def _ordered_ns(self, each: Transaction) -> int | None:
        """When a broker first got the order to write its marker, after its last request."""
        producer = -1 if each.producer_id is None else each.producer_id
        found = None
        for epoch in (each.epoch, (each.epoch or 0) + 1):
            times = self._ordered.get((producer, epoch), ())
            at = bisect_left(times, each.last_ns)
            if at < len(times):
                found = times[at] if found is None else min(found, times[at])
        return found

    def _row(self, key: str | None, each: Transaction) -> Row:
        held = self._held(each)
        is_whole = (each.is_whole and not each.is_incomplete) or each.is_told
        counted = is_whole and not each.is_told and not _has_gap(each)
        passed_ns = self._passed_ns(each) if each.end_ns is not None else None
        ordered_ns = None if each.end_ns is None else self._ordered_ns(each)
        return {
            "transactional_id": key,
            "cluster_id": self._cluster or None,
            "producer_id": each.producer_id,
            "producer_epoch": each.epoch,
            "version": each.version,
            "client_id": each.client_id,
            "client": each.client,
            "coordinator": each.coordinator,
            "begin_ns": each.begin_ns,
            "end_ns": each.end_ns,
            "duration_ns": None if None in (each.begin_ns, each.end_ns) else each.end_ns - each.begin_ns,  # type: ignore[operator]
            "outcome": each.outcome,
            "asked": None if each.to_commit is None else "commit" if each.to_commit else "abort",
            "ended_by": each.ended_by,
            "taken_by_client_id": each.taker_client_id,
            "taken_by_client": each.taker_client,
            "partitions": len(each.parts) if is_whole else None,
            "records": sum(one[0] for one in each.written.values()) if counted else None,
            "bytes": sum(one[1] for one in each.written.values()) if counted else None,
            "groups": sorted(each.groups),
            "offsets": len(each.offsets) if is_whole else None,
            "retries": each.retries,
            "retry_ns": each.retry_ns,
            "markers_ns": None if ordered_ns is None or each.end_ns is None else ordered_ns - each.end_ns,
            "visible_ns": None if passed_ns is None or each.end_ns is None else passed_ns - each.end_ns,
            "held_ns": held[0] if held is not None else None,
            "held_offsets": held[1] if held is not None else None,
            "held_topic": held[2][0].name if held is not None else None,
            "held_partition": held[2][1] if held is not None else None,
            "timeout_ms": each.timeout_ms,
            "state": each.state,
            "errors": sorted(each.errors),
            "exchanges": _few(each.exchanges, each.telling),
            "last_ns": each.last_ns,
        }


def _named_marker(named: Callable[[Place], Place], mark: tuple[Any, ...]) -> Marker:
    marker = Marker(*mark)
    return marker if marker.place is None else marker._replace(place=named(marker.place))


def _by_time(marks: Iterable[T]) -> list[T]:
    """Marks of several brokers by time, then by number of the exchange."""
    return sorted(marks, key=lambda each: (each.ns, each.number))


def _times_of_orders(markers: dict[int, list[Marker]]) -> dict[tuple[int, int | None], list[int]]:
    """For each producer and epoch, when brokers got the order to write a marker, sorted."""
    found: dict[tuple[int, int | None], list[int]] = {}
    for producer, line in markers.items():
        for each in line:
            if each.place is None:
                found.setdefault((producer, each.epoch), []).append(each.ns)
    for times in found.values():
        times.sort()
    return found


def _first_offsets(each: Transaction) -> dict[Place, int]:
    """For each partition, the offset of its first record there, if known."""
    found: dict[Place, int] = {}
    for (place, _), (_, _, offset) in each.written.items():
        if offset is not None:
            found[place] = min(offset, found.get(place, offset))
    return found


def _has_gap(each: Transaction) -> bool:
    """Whether the sequences show that a batch of it was not captured."""
    places: dict[Place, list[tuple[int, int]]] = {}
    for (place, sequence), (records, _, _) in each.written.items():
        places.setdefault(place, []).append((sequence, records))
    for batches in places.values():
        batches.sort()
        for (sequence, records), (following, _) in itertools.pairwise(batches):
            if sequence >= 0 and sequence + records != following:
                return True
    return False


def _few(numbers: list[int], telling: list[int]) -> list[int]:
    """At most eight exchanges: the first, the most important ones, the last."""
    chosen = dict.fromkeys([*numbers[:1], *telling[-(MOST_EXCHANGES - 2) :], *numbers[-1:]])
    for number in numbers:
        if len(chosen) >= MOST_EXCHANGES:
            break
        chosen[number] = None
    return sorted(chosen)[:MOST_EXCHANGES]


def _order(row: Row) -> tuple[Any, ...]:
    first = row["exchanges"][0] if row["exchanges"] else 0
    begin = row["begin_ns"] if row["begin_ns"] is not None else row["last_ns"]
    name, held = row["transactional_id"] or "", (row["held_topic"] or "", row["held_partition"] or 0)
    return begin, first, name, *held, row["cluster_id"] or ""
