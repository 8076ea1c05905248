"""Produced and fetched records, by offset, joined when rows are asked for.

Two tables join them: the delivery of records (:mod:`kdissect.analysis.delivery`), and records that groups
fetched more than once (:mod:`kdissect.analysis.rereads`). A third one needs no join: how long producers kept
batches (:mod:`kdissect.analysis.lingers`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

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
from kdissect.analysis.fold import MILLISECOND, Batched
from kdissect.analysis.headers import MOST_MS, SAMPLE, Header, sets_of, stamps_of
from kdissect.analysis.labels import Labels, Topic
from kdissect.analysis.ledgers import NONE, Ledgers, known
from kdissect.analysis.packed import packed
from kdissect.analysis.rows import Rows
from kdissect.analysis.shared_parts import SharedSet, follows_log, record_sets
from kdissect.analysis.speakers import Speaker, speaker
from kdissect.analysis.topic_lives import TOPIC_ID_APIS, TopicLives
from kdissect.analysis.topics import replica_id as replica_id_in
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.message import Message
from kdissect.names import is_metadata_topic
from kdissect.protocol.schema import ZERO_UUID
from kdissect.record.batch import CONTROL, LOG_APPEND_TIME

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


_CONTROL, _LOG_APPEND_TIME, _MOST_MS, _NONE, _CREATED = CONTROL, LOG_APPEND_TIME, MOST_MS, NONE, _CREATE_TIME
"""The same in C."""
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


class Transit(Batched):
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

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        _take(exchanges, _COUNTS, self)

    def _other(self, exchange: Exchange) -> None:
        _take([exchange], 0, self)

    # -- produced records -------------------------------------------------------------------------------

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

    def _remember(self, key: _Read, offset: int) -> None:
        if key in self._asked or not self.room.refuses(len(self._asked) >= self.limits.delivery_sets):
            self._asked[key] = offset

    def _topic(self, name: str | None, topic_id: str | None) -> Topic:
        return _topic(self._labels, name, topic_id)

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
                _rise(place, high, ns, self)
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


def _take(exchanges: list[Exchange], counts: int, transit: Transit) -> None:
    """Take in exchanges.

    :param counts: the flags of their batches: whether they count.
    """
    labels = transit._labels
    for exchange in exchanges:
        api = exchange._api()
        if api in OF_MEMBERS:
            transit._affiliations.see(exchange)
        if exchange.missing is not None and exchange.missing in LOST:
            transit._lost.add(exchange.connection, exchange._begun())
        if api == "Produce":
            if exchange.request is None:
                transit._acknowledged(exchange, counts)
            else:
                _take_produced(exchange, exchange.request, counts, labels, transit)
        elif api in FETCHES:
            if not follows_log(exchange):
                reader = transit._reader(exchange)
                if reader is not None:
                    flags = counts if api == "Fetch" else counts | _SHARED
                    _take_fetched(exchange, flags, reader, labels, transit)
        elif api in TOPIC_ID_APIS:
            transit._lives.take(exchange, labels)


def _take_produced(
    exchange: Exchange, request: Message, flags: int, labels: Labels, transit: Transit
) -> None:
    """Take in a Produce whose request was captured."""
    producer = transit._reader(exchange)
    if producer is not None and producer.who is None:
        producer.who = speaker(exchange)
    produced, response = transit._produced, exchange.response
    for found in record_sets(exchange, transit.limits):
        place = found.place
        if place.partition is None or place.message is not request:
            continue
        base = found.assigned_offset(exchange)
        acknowledged = NONE if base is None or response is None else response.frame.last_ns
        key = labels.topic(None if place.topic_id else place.topic, place.topic_id), place.partition
        sent = request.frame.first_ns
        for row, stamps in _produced_rows(found, base, sent, acknowledged, flags, exchange.connection):
            produced.add_row(key, row)
            if stamps:
                transit._samples.add(key, sent, row[-3], *stamps, *[NONE] * (SAMPLE - len(stamps)))


def _take_fetched(
    exchange: Exchange, flags: int, reader: _ConnectionReader, labels: Labels, transit: Transit
) -> None:
    """Take in a Fetch or ShareFetch."""
    asked_ns, names_all = NONE, False
    request, connection = exchange.request, exchange.connection
    named: dict[_Place, int] = {}
    if request is not None:
        body = request.body()
        asked_ns = request.frame.last_ns
        replica_id = -1 if flags & _SHARED else replica_id_in(exchange)
        who, client_id = reader.who, request.client_id
        if who is None or (client_id is not None and client_id != who.client_id):
            reader.who = speaker(exchange)
        reader.replica_id = replica_id
        epoch = body.get("sessionEpoch", NO_SESSION)
        names_all = epoch in (NEW_SESSION, NO_SESSION)
        if replica_id < 0:
            if names_all:
                transit._anew.add(connection, asked_ns, epoch)
            if body.get("forgottenTopicsData"):
                for gone, number in forgotten(labels, body):
                    if number is not None:
                        transit._let_go.add((connection, gone, number), asked_ns)
        for topic in body.get("topics") or ():
            name = _topic(labels, topic.get("topic"), topic.get("topicId"))
            for partition in topic.get("partitions") or ():
                if partition.get("fetchOffset", -1) >= 0 and "partition" in partition:
                    named[name, partition["partition"]] = partition["fetchOffset"]
    elif reader.who is None:
        reader.who = Speaker(speaker(exchange).client, None)
    if exchange.response is not None:
        _take_answer(exchange, exchange.response, asked_ns, named, flags, labels, transit)
    if not named:
        return
    asked, fetched = transit._asked, transit._fetched
    for (name, number), offset in named.items():
        key = connection, name, number
        before = asked.get(key)
        if (names_all or before != offset) and not _is_metadata(name):
            own = flags | (_FIRST if before is None and not names_all else 0)
            transit._remember(key, offset)
            fetched.add_row(key, (offset, NONE, NONE, asked_ns, NONE, NONE, NONE, NONE, own))


def _take_answer(
    exchange: Exchange,
    response: Message,
    asked_ns: int,
    named: dict[_Place, int],
    flags: int,
    labels: Labels,
    transit: Transit,
) -> None:
    """Take in the answer to a Fetch or ShareFetch. Partitions with records are removed from ``named``."""
    broker, connection = exchange._broker_address(), exchange.connection
    answered_ns = response.frame.first_ns
    sets: dict[tuple[str | None, int | None], SharedSet] = {}
    for each in record_sets(exchange, transit.limits):
        place = each.place
        if place.data and place.message is response:
            sets.setdefault((place.topic_id or place.topic, place.partition), each)
    fetched = transit._fetched
    for topic in response.body().get("responses") or ():
        name = _topic(labels, topic.get("topic"), topic.get("topicId"))
        if _is_metadata(name):
            continue
        for partition in topic.get("partitions") or ():
            number = partition.get("partitionIndex")
            if number is None:
                continue
            _rise((name, number, broker), partition.get("highWatermark", -1), answered_ns, transit)
            records = partition.get("records")
            if not records:
                continue
            offset = named.get((name, number))
            key = connection, name, number
            found = sets.pop((name.topic_id or name.name, number), None)
            batches = sets_of(records, transit.limits) if found is None else found.sets
            for row in _fetched_rows(batches, known(offset), asked_ns, response.frame.last_ns, flags):
                fetched.add_row(key, row)
                if offset is not None:
                    transit._remember(key, named.pop((name, number)))
                    offset = None


def _rise(place: _PlaceAt, high: int, ns: int, transit: Transit) -> None:
    """Take in the high watermark of a partition at a time."""
    heights = transit._high
    before = heights.get(place)
    if before is None:
        if high < 0:
            return
        is_higher = True
    else:
        highest, since_ns = before
        is_higher = high > highest
        if not is_higher and (ns >= since_ns or high < 0):  # as nearly always
            return
    is_beyond = before is None and len(heights) >= transit.limits.delivery_sets
    if is_higher and not transit.room.refuses(is_beyond):
        heights[place] = high, ns
    rises = transit._heights
    rises.add_row(place, (ns, high))


def _topic(labels: Labels, name: str | None, topic_id: str | None) -> Topic:
    return labels.topic(name, topic_id if topic_id != ZERO_UUID else None)


def _produced_rows(
    found: SharedSet, base: int | None, sent: int, acknowledged: int, flags: int, connection: int
) -> list[tuple[tuple[int, ...], list[int]]]:
    """The kept data of a produced record set's batches: a row, and timestamps that represent all records.

    :param base: the offset of its first record.
    :param acknowledged: NONE if it is unknown.
    """
    rows: list[tuple[tuple[int, ...], list[int]]] = []
    for batch in found.sets:
        length = batch.length
        row = (
            known(base),
            base + length - 1 if base is not None else length,
            sent,
            acknowledged,
            *_content(batch, flags),
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
        if batch.is_whole and not (batch.magic >= 2 and batch.attributes & _CONTROL):
            row = (
                offset,
                batch.base_offset,
                batch.last_offset,
                asked,
                answered_ns,
                *_content(batch, flags),
            )
            rows.append(row)
            offset = NONE
    return rows


def _content(batch: Header, flags: int) -> tuple[int, int, int, int]:
    """First timestamp, largest timestamp, checksum, flags: in C, without the properties of a header."""
    first, largest, crc = batch.base_timestamp, batch.max_timestamp, batch.crc
    if not 0 <= first <= _MOST_MS:
        first = _NONE
    if not 0 <= largest <= _MOST_MS:
        largest = _NONE
    if batch.magic < 2:
        crc = _NONE
    if batch.magic < 1 or not batch.attributes & _LOG_APPEND_TIME:
        flags |= _CREATED
    return first, largest, crc, flags


def _is_metadata(topic: Topic) -> bool:
    return is_metadata_topic(topic.name, topic.topic_id)


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
