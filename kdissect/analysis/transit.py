"""Produced and fetched records, by offset, joined when rows are asked for.

Two tables join them: the delivery of records (:mod:`kdissect.analysis.delivery`), and records that groups
fetched more than once (:mod:`kdissect.analysis.rereads`). A third one needs no join: how long producers kept
batches (:mod:`kdissect.analysis.lingers`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from kdissect.analysis.affiliations import OF_MEMBERS, Affiliations
from kdissect.analysis.clusters import Clusters, NameAt
from kdissect.analysis.deliveries import (
    NO_LOSS,
    Again,
    Arrival,
    ConnectionLoss,
    ConsumerOutcome,
    ProducedBatch,
    after_loss,
    deliver,
    read_again,
)
from kdissect.analysis.fetcher import NEW_SESSION, NO_SESSION, forgotten
from kdissect.analysis.fold import MILLISECOND, Fold, Rows
from kdissect.analysis.headers import SAMPLE, Header, sets_of, stamps_of
from kdissect.analysis.labels import Labels, Topic
from kdissect.analysis.ledgers import NONE, Ledgers, known
from kdissect.analysis.packed import packed
from kdissect.analysis.shared_parts import SharedSet, follows_log, record_sets
from kdissect.analysis.speakers import Speaker, speaker
from kdissect.analysis.topic_lives import TOPIC_ID_APIS, TopicLives
from kdissect.analysis.topics import replica_id as replica_id_in
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.names import is_metadata_topic
from kdissect.protocol.schema import ZERO_UUID

FETCHES = ("Fetch", "ShareFetch")
LOST = ("not captured", "gap", "skipped")
"""The reasons for a missing message that may have been on the wire."""
_COUNTS, _CREATE_TIME, _SHARED, _FIRST = 1, 2, 4, 8
"""Flags of a kept batch: whether its exchange counts, whether its timestamps are the producer's, and whether
a share group fetched it. Share groups get records repeatedly by design (KIP-932). The last flag is one of
kept requests without records: whether an earlier part may have the same request."""

Place = tuple[str | None, int]
"""Topic by name, and partition."""
PlaceIn = tuple[str | None, int, str]
"""Topic by name, partition, and the cluster; empty if it is unknown."""
_Place = tuple[Topic, int]
_PlaceAt = tuple[Topic, int, str]
"""Topic, partition, and the broker that answered."""
_Read = tuple[int, Topic, int]
"""Connection, topic, partition."""


_new = tuple.__new__
"""``_new(Arrival, values)`` with all values: without the second call of NamedTuple's own ``__new__``."""
_READER_BYTES = 700
"""The approximate size of a connection that produces or fetches."""


@packed
@dataclass(slots=True)
class _ConnectionReader:
    """The client or follower of a connection."""

    who: Speaker | None = None
    replica_id: int | None = None
    broker: str | None = None

    def merge(self, later: _ConnectionReader) -> None:
        if later.who is not None and (later.who.client_id is not None or self.who is None):
            self.who = later.who
        self.replica_id = later.replica_id if later.replica_id is not None else self.replica_id
        self.broker = self.broker or later.broker


class Consumer(NamedTuple):
    """A row's consumer: a client, or a follower."""

    who: Speaker
    replica_id: int
    connection: int | None
    """Set if nothing else distinguishes it from others."""


class Transit(Fold):
    """Produced and fetched records by topic and partition, until they are joined."""

    apis = frozenset(("Produce", *FETCHES, *OF_MEMBERS, *TOPIC_ID_APIS))

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self.latest.keep_clusters(Clusters(self.room))
        self._labels = Labels(self.latest, limits)
        self._affiliations = Affiliations(self.room)
        self._lives = TopicLives(self.room)
        self._readers: Rows[int, _ConnectionReader] = Rows(
            _ConnectionReader, self.room, _READER_BYTES, limits.connections
        )
        self._produced: Ledgers[_Place] = Ledgers(9, limits.rows, limits.delivery_sets, self.room)
        """base, last, sent, acknowledged, first timestamp, largest timestamp, crc, flags, connection."""
        self._samples: Ledgers[_Place] = Ledgers(
            2 + SAMPLE, limits.rows, limits.delivery_sets // 8, self.room
        )
        """sent, crc, timestamps: for batches whose records lie apart."""
        self._fetched: Ledgers[_Read] = Ledgers(9, limits.delivery_sets, limits.delivery_sets, self.room)
        """requested offset, base, last, asked, came, first timestamp, largest timestamp, crc, flags; without
        a base if it is only a request."""
        self._heights: Ledgers[_PlaceAt] = Ledgers(2, limits.delivery_sets, limits.delivery_sets, self.room)
        """Time and high watermark, for each rise."""
        self._lost: Ledgers[int] = Ledgers(1, limits.connections, limits.delivery_sets, self.room)
        """For each connection, the times of messages that were not captured."""
        self._anew: Ledgers[int] = Ledgers(2, limits.connections, limits.delivery_sets, self.room)
        """For each connection, the times of requests that name all fetched partitions, with their session
        epochs."""
        self._let_go: Ledgers[_Read] = Ledgers(1, limits.connections, limits.delivery_sets, self.room)
        """The times of requests that stop fetching a partition."""
        self._high: dict[_PlaceAt, tuple[int, int]] = {}
        """The highest high watermark so far, and its time. Later ones that are no higher are ignored."""
        self._asked: dict[_Read, int] = {}
        """The last requested offset. Repetitions are kept once."""

    def _exchange(self, exchange: Exchange) -> None:
        self._take(exchange, _COUNTS)

    def _other(self, exchange: Exchange) -> None:
        self._take(exchange, 0)

    def _take(self, exchange: Exchange, flags: int) -> None:
        self._affiliations.see(exchange)
        api = exchange.api
        if exchange.missing in LOST:
            self._lost.add(exchange.connection, exchange.begun_ns)
        if api == "Produce":
            self._produce(exchange, flags)
        elif api in FETCHES:
            if not follows_log(exchange):
                self._fetch(exchange, flags)
        elif api in TOPIC_ID_APIS:
            self._lives.take(exchange, self._labels)

    # -- produced records -------------------------------------------------------------------------------

    def _produce(self, exchange: Exchange, flags: int) -> None:
        response = exchange.response
        if exchange.request is None:
            self._acknowledged(exchange, flags)
            return
        sent = exchange.request.frame.first_ns
        producer = self._reader(exchange)
        if producer is not None and producer.who is None:
            producer.who = speaker(exchange)
        for found in record_sets(exchange, self.limits):
            place = found.place
            if place.partition is None or place.message is not exchange.request:
                continue
            base = exchange.assigned_base_offset(place)
            acknowledged = response.frame.last_ns if base is not None and response is not None else None
            key = self._labels.topic(None if place.topic_id else place.topic, place.topic_id), place.partition
            for row, stamps in _produced_rows(found, base, sent, acknowledged, flags, exchange.connection):
                self._produced.add(key, *row)
                if stamps:
                    self._samples.add(key, sent, row[-3], *stamps, *[NONE] * (SAMPLE - len(stamps)))

    def _acknowledged(self, exchange: Exchange, flags: int) -> None:
        """Take in a Produce with a captured answer only."""
        assert exchange.response is not None
        self._reader(exchange)
        for topic in exchange.response.body().get("responses") or ():
            for partition in topic.get("partitionResponses") or ():
                number, base = partition.get("index"), partition.get("baseOffset", -1)
                if number is not None and base >= 0 and not partition.get("errorCode"):
                    key = self._topic(topic.get("name"), topic.get("topicId")), number
                    came = exchange.response.frame.last_ns
                    self._produced.add(
                        key, base, NONE, NONE, came, NONE, NONE, NONE, flags, exchange.connection
                    )

    def _reader(self, exchange: Exchange) -> _ConnectionReader | None:
        reader = self._readers.row(exchange.connection)
        if reader is not None and reader.broker is None:
            reader.broker = self.latest.clusters.at(exchange)
        return reader

    # -- fetched records --------------------------------------------------------------------------------

    def _fetch(self, exchange: Exchange, flags: int) -> None:
        reader = self._reader(exchange)
        if reader is None:
            return
        asked_ns, names_all = NONE, False
        if exchange.api == "ShareFetch":
            flags |= _SHARED
        named: dict[_Place, int] = {}
        if exchange.request is not None:
            body = exchange.request.body()
            asked_ns = exchange.request.frame.last_ns
            replica_id = replica_id_in(exchange) if exchange.api == "Fetch" else -1
            if exchange.client_id is not None or reader.who is None:
                reader.who = speaker(exchange)
            reader.replica_id = replica_id
            epoch = body.get("sessionEpoch", NO_SESSION)
            names_all = epoch in (NEW_SESSION, NO_SESSION)
            if names_all and replica_id < 0:
                self._anew.add(exchange.connection, asked_ns, epoch)
            if replica_id < 0:
                for topic, number in forgotten(self._labels, body):
                    if number is not None:
                        self._let_go.add((exchange.connection, topic, number), asked_ns)
            for topic in body.get("topics") or ():
                name = self._topic(topic.get("topic"), topic.get("topicId"))
                for partition in topic.get("partitions") or ():
                    if partition.get("fetchOffset", -1) >= 0 and "partition" in partition:
                        named[name, partition["partition"]] = partition["fetchOffset"]
        elif reader.who is None:
            reader.who = Speaker(speaker(exchange).client, None)
        if exchange.response is not None:
            self._answered(exchange, exchange.response.body(), asked_ns, named, flags)
        for place, offset in named.items():
            key = exchange.connection, *place
            before = self._asked.get(key)
            if (names_all or before != offset) and not _is_metadata(place[0]):
                own = flags | (_FIRST if before is None and not names_all else 0)
                self._remember(key, offset)
                self._fetched.add(key, offset, NONE, NONE, asked_ns, NONE, NONE, NONE, NONE, own)

    def _answered(
        self, exchange: Exchange, body: dict[str, Any], asked_ns: int, named: dict[_Place, int], flags: int
    ) -> None:
        assert exchange.response is not None
        first_ns, last_ns = exchange.response.frame.first_ns, exchange.response.frame.last_ns
        broker = exchange.broker
        sets: dict[tuple[str | None, int | None], SharedSet] = {}
        for each in record_sets(exchange, self.limits):
            place = each.place
            if place.data and place.message is exchange.response:
                sets.setdefault((place.topic_id or place.topic, place.partition), each)
        for topic in body.get("responses") or ():
            name = self._topic(topic.get("topic"), topic.get("topicId"))
            if _is_metadata(name):
                continue
            for partition in topic.get("partitions") or ():
                number = partition.get("partitionIndex")
                if number is None:
                    continue
                self._rise((name, number, broker), partition.get("highWatermark", -1), first_ns)
                offset = named.get((name, number))
                key = exchange.connection, name, number
                records = partition.get("records")
                if not records:
                    continue
                found = sets.pop((name.topic_id or name.name, number), None)
                batches = sets_of(records, self.limits) if found is None else found.sets
                for row in _fetched_rows(batches, known(offset), asked_ns, last_ns, flags):
                    self._fetched.add(key, *row)
                    if offset is not None:
                        self._remember(key, named.pop((name, number)))
                        offset = None

    def _remember(self, key: _Read, offset: int) -> None:
        if key in self._asked or not self.room.refuses(len(self._asked) >= self.limits.delivery_sets):
            self._asked[key] = offset

    def _rise(self, place: _PlaceAt, high: int, ns: int) -> None:
        highest, since_ns = self._high.get(place, (-1, ns))
        if high > highest or (high >= 0 and ns < since_ns):
            is_beyond = place not in self._high and len(self._high) >= self.limits.delivery_sets
            if high > highest and not self.room.refuses(is_beyond):
                self._high[place] = high, ns
            self._heights.add(place, ns, high)

    def _topic(self, name: str | None, topic_id: str | None) -> Topic:
        return self._labels.topic(name, topic_id if topic_id != ZERO_UUID else None)

    # -- results ----------------------------------------------------------------------------------------

    def merge(self, later: Self) -> None:
        self._labels.merge(later._labels)
        self._affiliations.merge(later._affiliations)
        self._lives.merge(later._lives)
        self._readers.merge(later._readers)
        self._produced.merge(later._produced)
        self._samples.merge(later._samples)
        for place in later._heights:
            for ns, high in later._heights.rows(place):
                self._rise(place, high, ns)
        self._heights.left_out += later._heights.left_out
        self._merge_fetched(later)
        self._lost.merge(later._lost)
        self._anew.merge(later._anew)
        self._let_go.merge(later._let_go)

    def _merge_fetched(self, later: Self) -> None:
        """Add the fetches of a later part, except for repetitions of the last request of this one."""
        self._fetched.left_out += later._fetched.left_out
        for key in later._fetched:
            before, numbers = self._asked.get(key), later._fetched.numbers(key)
            if before is not None and max(numbers[8::9]) >= _FIRST:
                at = next(at for at in range(0, len(numbers), 9) if numbers[at + 8] & _FIRST)
                if numbers[at] == before:
                    del numbers[at : at + 9]
                else:
                    numbers[at + 8] &= ~_FIRST
            self._fetched.add_all(key, numbers)
        for key, offset in later._asked.items():
            self._remember(key, offset)

    @property
    def left_out(self) -> int:
        return sum(each.left_out for each in (*self._ledgers(), self._readers, self._lives))

    def _ledgers(self) -> tuple[Ledgers[_Place] | Ledgers[_PlaceAt] | Ledgers[_Read], ...]:
        return self._produced, self._samples, self._fetched, self._heights, self._let_go

    def delivered(self) -> Iterator[tuple[PlaceIn, Consumer, str | None, ConsumerOutcome]]:
        """The deliveries: topic, partition and cluster, consumer, group, and the outcome."""
        self._labels.resolve_names()
        cluster_of = self._clusters()
        produced: dict[PlaceIn, list[ProducedBatch]] = {}
        ids: dict[str | None, set[str]] = {}
        for topic, partition in self._produced:
            name = self._labels.name(topic)
            ids.setdefault(name, set()).update(topic)
            rows = list(self._produced.rows((topic, partition)))
            clients = {each: self._consumer(each).who.client_id for each in {row[-1] for row in rows}}
            samples = {row[:2]: row[2:] for row in self._samples.rows((topic, partition))}
            clusters = {each: cluster_of(name, self._broker(each)) for each in clients}
            for row in rows:
                batch = _batch(row, samples.get((row[2], row[6]), ()), clients[row[-1]])
                produced.setdefault((name, partition, clusters[row[-1]]), []).append(batch)
        losses = self._losses()
        let_go = {
            (connection, self._labels.name(topic), partition): [
                row[0] for row in self._let_go.rows((connection, topic, partition))
            ]
            for connection, topic, partition in self._let_go
        }
        fetched: dict[PlaceIn, dict[Consumer, list[Arrival]]] = {}
        for of_topic, connection, arrivals in self._arrivals():
            place = *of_topic, cluster_of(of_topic[0], self._broker(connection))
            if place in produced:
                found = fetched.setdefault(place, {}).setdefault(self._consumer(connection), [])
                lost = losses.get(connection, NO_LOSS)
                found += after_loss(arrivals, lost, let_go.get((connection, *of_topic), ()))
        heights: dict[PlaceIn, list[tuple[int, int]]] = {}
        for topic, partition, broker in self._heights:
            name = self._labels.name(topic)
            place = name, partition, cluster_of(name, broker)
            if place in fetched:
                rises = self._heights.rows((topic, partition, broker))
                heights.setdefault(place, []).extend((row[0], row[1]) for row in rises)
        for place, consumers in fetched.items():
            followers = {each for each in consumers if each.replica_id >= 0}
            for consumer, outcome in deliver(produced[place], consumers, followers, heights.get(place, [])):
                if outcome.counts and outcome.sets:
                    yield place, consumer, self._group(consumer, place[0], ids[place[0]]), outcome

    def ages(self) -> Iterator[tuple[str | None, int | None, int | None]]:
        """The ages of records when they were sent, by batch: topic, age of the first, age of the youngest.

        Only batches whose timestamps are the producer's count.
        """
        self._labels.resolve_names()
        for topic, partition in self._produced:
            name = self._labels.name(topic)
            for row in self._produced.rows((topic, partition)):
                _, _, sent, _, first, largest, _, flags, _ = row
                if sent != NONE and flags & _CREATE_TIME:
                    yield (
                        name,
                        None if first == NONE else sent - first * MILLISECOND,
                        None if largest == NONE else sent - largest * MILLISECOND,
                    )

    def read_by_groups(self) -> Iterator[tuple[str, PlaceIn, Again]]:
        """The records of a partition that the members of each group fetched, and fetched again."""
        self._labels.resolve_names()
        cluster_of = self._clusters()
        groups: dict[tuple[str, PlaceIn], dict[Consumer, list[Arrival]]] = {}
        for of_topic, connection, arrivals in self._arrivals(shared=False):
            place = *of_topic, cluster_of(of_topic[0], self._broker(connection))
            consumer = self._consumer(connection)
            group = self._group(consumer, place[0], set())
            if group is not None:
                groups.setdefault((group, place), {}).setdefault(consumer, []).extend(arrivals)
        for (group, place), consumers in groups.items():
            arrived = {consumer.who.client_id or "": each for consumer, each in consumers.items()}
            yield group, place, read_again(arrived, self._lives.begun(place[0] or ""))

    def _arrivals(self, shared: bool = True) -> Iterator[tuple[Place, int, Iterator[Arrival]]]:
        """The fetched batches: topic and partition, connection, and arrivals.

        :param shared: whether to include those of share groups.
        """
        for connection, topic, partition in self._fetched:
            rows = self._fetched.rows((connection, topic, partition))
            found = (_arrival(row) for row in rows if shared or not row[-1] & _SHARED)
            yield (self._labels.name(topic), partition), connection, found

    def _losses(self) -> dict[int, ConnectionLoss]:
        """The times of missing messages on connections."""
        asks: dict[int, set[int]] = {connection: set() for connection in self._lost}
        for key in self._fetched:
            if key[0] in asks:
                asks[key[0]].update(row[3] for row in self._fetched.rows(key) if row[0] != NONE)
        return {
            connection: ConnectionLoss(
                sorted(row[0] for row in self._lost.rows(connection)),
                sorted(each),
                [(row[0], row[1] == NEW_SESSION) for row in self._anew.rows(connection)],
            )
            for connection, each in asks.items()
        }

    def _clusters(self) -> Callable[[str | None, str], str]:
        """A function that returns the cluster of a topic at a broker; empty if it is unknown."""
        every = {(topic, self._broker(connection)) for connection, topic, _ in self._fetched}
        every |= {(topic, broker) for topic, _, broker in self._heights}
        for topic, partition in self._produced:
            rows = self._produced.rows((topic, partition))
            every |= {(topic, self._broker(connection)) for connection in {row[-1] for row in rows}}
        names = (NameAt(self._labels.name(topic) or "", broker) for topic, broker in every)
        places = self.latest.clusters.apart(names)
        return lambda name, broker: places[NameAt(name or "", broker)].at

    def _broker(self, connection: int) -> str:
        reader = self._readers.rows.get(connection)
        return (reader.broker if reader is not None else None) or ""

    def _consumer(self, connection: int) -> Consumer:
        reader = self._readers.rows.get(connection) or _ConnectionReader()
        who = reader.who or Speaker("", None)
        if reader.replica_id is not None and reader.replica_id >= 0:
            return Consumer(Speaker(who.client, None), reader.replica_id, None)
        return Consumer(who, -1, connection if who.client_id is None else None)

    def _group(self, consumer: Consumer, topic: str | None, ids: set[str]) -> str | None:
        if consumer.replica_id >= 0:
            return None
        return self._affiliations.group(consumer.who, topic, *ids)


def _produced_rows(
    found: SharedSet, base: int | None, sent: int, acknowledged: int | None, flags: int, connection: int
) -> list[tuple[tuple[int, ...], list[int]]]:
    """The kept data of a produced record set's batches: a row, and timestamps that represent all records.

    :param base: the offset of its first record.
    """
    rows: list[tuple[tuple[int, ...], list[int]]] = []
    for batch in found.sets:
        length = batch.length
        row = (
            known(base),
            base + length - 1 if base is not None else length,
            sent,
            known(acknowledged),
            known(batch.first_ms),
            known(batch.last_ms),
            known(batch.content_crc),
            flags | (0 if batch.is_log_append_time else _CREATE_TIME),
            connection,
        )
        rows.append((row, stamps_of(batch, found.place.data)))
        base = base + length if base is not None else None
    return rows


def _fetched_rows(
    batches: list[Header], offset: int, asked: int, answered_ns: int, flags: int
) -> list[tuple[int, ...]]:
    """The kept data of a fetched record set's batches: a row each. Only the first row has the requested
    offset."""
    rows: list[tuple[int, ...]] = []
    for batch in batches:
        if not batch.is_control and batch.is_whole:
            row = (
                offset,
                batch.base_offset,
                batch.last_offset,
                asked,
                answered_ns,
                known(batch.first_ms),
                known(batch.last_ms),
                known(batch.content_crc),
                flags | (0 if batch.is_log_append_time else _CREATE_TIME),
            )
            rows.append(row)
            offset = NONE
    return rows


def _is_metadata(topic: Topic) -> bool:
    return is_metadata_topic(topic.name or None, topic.topic_id or None)


def _batch(row: tuple[int, ...], sample: tuple[int, ...], producer: str | None) -> ProducedBatch:
    base, last, sent, acknowledged, first, largest, crc, flags, _ = row
    is_create_time = bool(flags & _CREATE_TIME)
    values = (
        None if base == NONE else base,
        None if last == NONE else last,
        None if sent == NONE else sent,
        None if acknowledged == NONE else acknowledged,
        first if is_create_time and first != NONE else None,
        largest if is_create_time and largest != NONE else None,
        None if crc == NONE else crc,
        bool(flags & _COUNTS),
        tuple([ms for ms in sample if ms != NONE]),
        producer,
    )
    return _new(ProducedBatch, values)


def _arrival(row: tuple[int, ...]) -> Arrival:
    offset, base, last, asked, came, first, largest, crc, flags = row
    is_create_time = bool(flags & _CREATE_TIME)
    values = (
        None if offset == NONE else offset,
        None if base == NONE else base,
        last,
        None if asked == NONE else asked,
        came,
        first if is_create_time and first != NONE else None,
        largest if is_create_time and largest != NONE else None,
        None if crc == NONE else crc,
        bool(flags & _COUNTS),
        False,
    )
    return _new(Arrival, values)
