"""Records on their way: produced, acknowledged, replicated, visible, fetched; by offset.

What was produced is a batch with the offset that the broker gave it; what a consumer or a follower fetched
are batches with their offsets. They are joined by offset when rows are asked for, so parts of a capture
merge without seams. All comes from headers; no record is unpacked.

* Where the answer to a Produce was not captured (or refuses it, or acks is 0), its offset is not known: then
  the checksum, the count and the timestamps tell the batch, which brokers keep as they are. Where only the
  answer was captured, the offset tells where the batch begins.
* A consumer's first fetch of a record counts. What it fetches again is counted in ``read_again``, from the
  offset that it asked for on, as a broker sends whole batches.
* Where an answer was not captured and the next request asks for a later offset, the records between were
  fetched, and it is not known when: they are counted in ``records``, and in no time.
* A record is visible when any answer tells a high watermark beyond it.
* The wait of a consumer that was busy is the time from the acknowledgement to its request, where that came
  later: no fetch for the partition was outstanding in between.
* The times of the single records of a batch are taken to lie evenly between its first and its largest
  timestamp; where it is not compressed and they lie more than a few milliseconds apart, a sample of them is
  taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from kdissect.analysis.affiliations import Affiliations, Speaker, speaker
from kdissect.analysis.declared import (
    CLIENT_ADDRESS_COLUMN,
    GROUP_COLUMN,
    PARTITION_COLUMN,
    TOPIC_COLUMN,
    column,
)
from kdissect.analysis.deliveries import NO_LOSS, Arrival, Batch, Loss, Outcome, after_loss, deliver
from kdissect.analysis.fold import Row, Rows, Statistic, begun_ns
from kdissect.analysis.headers import SAMPLE, Header, sets_of, stamps_of
from kdissect.analysis.labels import Labels, Topic
from kdissect.analysis.ledgers import NONE, Ledgers, known, told
from kdissect.analysis.positions import NEW_SESSION, NO_SESSION
from kdissect.analysis.versions import replica_id_of
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.names import is_metadata_topic
from kdissect.protocol.schema import ZERO_UUID

FETCHES = ("Fetch", "ShareFetch")
LOST = ("not captured", "gap", "skipped")
"""Why a message may be missing that was on the wire."""
_COUNTS, _CREATE_TIME = 1, 2
"""Flags of a kept batch: whether its exchange counts, and whether its timestamps are the producer's."""

_Place = tuple[Topic, int]
_Read = tuple[int, Topic, int]
"""Connection, topic, partition."""


@dataclass(slots=True)
class _Reader:
    """Who speaks on a connection."""

    who: Speaker | None = None
    replica_id: int | None = None

    def merge(self, later: _Reader) -> None:
        if later.who is not None and (later.who.client_id is not None or self.who is None):
            self.who = later.who
        self.replica_id = later.replica_id if later.replica_id is not None else self.replica_id


class _Consumer(NamedTuple):
    """A row's consumer: a client, or a broker that follows."""

    who: Speaker
    replica_id: int
    connection: int | None
    """Where nothing else tells it from others."""


class Delivery(Statistic):
    """The statistic ``delivery``."""

    name = "delivery"
    about = "records from producer to consumer: acknowledged, replicated, visible, fetched"
    columns = (
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        column("consumer", "text", "the client id of the consumer; broker N for a follower"),
        CLIENT_ADDRESS_COLUMN,
        GROUP_COLUMN,
        column("producers", "texts", "client ids of those that produced what it fetched"),
        column("sets", "int64", "produced record sets of which it fetched records"),
        column(
            "records", "int64", "records that it fetched and of which the producing was captured", kept=True
        ),
        column("read_again", "int64", "records that it had fetched before", rare=True),
        column(
            "send_to_fetched_p50_ns", "int64", "first byte of the Produce request to the last of the answer"
        ),
        column("send_to_fetched_p99_ns", "int64", "99 % took no longer (within 0.4 %)"),
        column("send_to_fetched_max_ns", "int64", "the longest"),
        column(
            "ack_to_fetched_p50_ns",
            "int64",
            "acknowledgement to fetched; negative where it was fetched first",
        ),
        column("ack_to_fetched_p99_ns", "int64", "99 % took no longer (within 0.4 %)"),
        column(
            "create_to_fetched_p50_ns",
            "int64",
            "timestamp of the record (by the producer's clock) to fetched; records of a batch taken evenly",
        ),
        column("create_to_fetched_p99_ns", "int64", "99 % took no longer (within 0.4 %)"),
        column("linger_p50_ns", "int64", "timestamp of a batch's first record to its Produce request"),
        column("youngest_p50_ns", "int64", "largest timestamp of a batch to its Produce request"),
        column("produce_p50_ns", "int64", "Produce request to its answer"),
        column(
            "replicate_p50_ns", "int64", "Produce request to the last follower's fetch of it; null without"
        ),
        column(
            "visible_p50_ns", "int64", "Produce request to the first answer with a high watermark beyond it"
        ),
        column(
            "waited_p50_ns",
            "int64",
            "acknowledgement to the request that fetched it, 0 where that came first: the consumer was busy",
        ),
        column("unconsumed", "int64", "records produced behind all that it fetched or asked for"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self._labels = Labels(limits)
        self._affiliations = Affiliations(limits)
        self._readers: Rows[int, _Reader] = Rows(_Reader, limits.connections)
        self._produced: Ledgers[_Place] = Ledgers(9, limits.rows, limits.delivery_sets)
        """base, last, sent, acknowledged, first timestamp, largest timestamp, crc, flags,
        connection."""
        self._samples: Ledgers[_Place] = Ledgers(2 + SAMPLE, limits.rows, limits.delivery_sets // 8)
        """sent, crc, timestamps: of batches whose records lie apart."""
        self._fetched: Ledgers[_Read] = Ledgers(9, limits.delivery_sets, limits.delivery_sets)
        """offset asked for, base, last, asked, came, first timestamp, largest timestamp, crc, flags; without
        a base where it is only asked for."""
        self._heights: Ledgers[_Place] = Ledgers(2, limits.delivery_sets, limits.delivery_sets)
        """Time, high watermark: where it rose."""
        self._lost: Ledgers[int] = Ledgers(1, limits.connections, limits.delivery_sets)
        """By connection: when a message was not captured."""
        self._anew: Ledgers[int] = Ledgers(2, limits.connections, limits.delivery_sets)
        """By connection: when a request named all that it fetches, and its session epoch."""
        self._high: dict[_Place, tuple[int, int]] = {}
        """The highest so far, and when it was told: what comes later and is no higher tells nothing."""
        self._asked: dict[_Read, int] = {}
        """What was asked for last: what stays the same is kept once."""
        self._cut = 0
        """Rows that were too many when they were last asked for."""

    def _exchange(self, exchange: Exchange) -> None:
        self._take(exchange, _COUNTS)

    def _other(self, exchange: Exchange) -> None:
        self._take(exchange, 0)

    def _take(self, exchange: Exchange, flags: int) -> None:
        self._labels.see(exchange)
        self._affiliations.see(exchange)
        api = exchange.api
        if exchange.missing in LOST:
            self._lost.add(exchange.connection, begun_ns(exchange))
        if api == "Produce":
            self._produce(exchange, flags)
        elif api in FETCHES:
            self._fetch(exchange, flags)

    # -- what was produced ------------------------------------------------------------------------------

    def _produce(self, exchange: Exchange, flags: int) -> None:
        response = exchange.response
        if exchange.request is None:
            self._acknowledged(exchange, flags)
            return
        sent = exchange.request.frame.first_ns
        producer = self._readers.row(exchange.connection)
        if producer is not None and producer.who is None:
            producer.who = speaker(exchange)
        for place in exchange.record_sets():
            if place.partition is None or place.message is not exchange.request:
                continue
            base = exchange.assigned_base_offset(place)
            acknowledged = response.frame.last_ns if base is not None and response is not None else None
            key = self._labels.topic(None if place.topic_id else place.topic, place.topic_id), place.partition
            for batch in sets_of(place.data, self.limits):
                length = batch.length
                self._produced.add(
                    key,
                    known(base),
                    base + length - 1 if base is not None else length,
                    sent,
                    known(acknowledged),
                    *_stamps(batch),
                    flags | (0 if batch.is_log_append_time else _CREATE_TIME),
                    exchange.connection,
                )
                stamps = stamps_of(batch, place.data)
                if stamps:
                    crc = known(batch.content_crc)
                    self._samples.add(key, sent, crc, *stamps, *[NONE] * (SAMPLE - len(stamps)))
                base = base + length if base is not None else None

    def _acknowledged(self, exchange: Exchange, flags: int) -> None:
        """Of a Produce only the answer was captured."""
        assert exchange.response is not None
        for topic in exchange.response.body().get("responses") or ():
            for partition in topic.get("partitionResponses") or ():
                number, base = partition.get("index"), partition.get("baseOffset", -1)
                if number is not None and base >= 0 and not partition.get("errorCode"):
                    key = self._topic(topic.get("name"), topic.get("topicId")), number
                    came = exchange.response.frame.last_ns
                    self._produced.add(
                        key, base, NONE, NONE, came, NONE, NONE, NONE, flags, exchange.connection
                    )

    # -- what was fetched -------------------------------------------------------------------------------

    def _fetch(self, exchange: Exchange, flags: int) -> None:
        reader = self._readers.row(exchange.connection)
        if reader is None:
            return
        asked_ns, names_all = NONE, False
        named: dict[_Place, int] = {}
        if exchange.request is not None:
            body = exchange.request.body()
            asked_ns = exchange.request.frame.last_ns
            replica_id = replica_id_of(body) if exchange.api == "Fetch" else -1
            reader.merge(_Reader(speaker(exchange), replica_id))
            epoch = body.get("sessionEpoch", NO_SESSION)
            names_all = epoch in (NEW_SESSION, NO_SESSION)
            if names_all and replica_id < 0:
                self._anew.add(exchange.connection, asked_ns, epoch)
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
            if (names_all or self._asked.get(key) != offset) and not _is_metadata(place[0]):
                self._remember(key, offset)
                self._fetched.add(key, offset, NONE, NONE, asked_ns, NONE, NONE, NONE, NONE, flags)

    def _answered(
        self, exchange: Exchange, body: dict[str, Any], asked_ns: int, named: dict[_Place, int], flags: int
    ) -> None:
        assert exchange.response is not None
        first_ns, last_ns = exchange.response.frame.first_ns, exchange.response.frame.last_ns
        for topic in body.get("responses") or ():
            name = self._topic(topic.get("topic"), topic.get("topicId"))
            if _is_metadata(name):
                continue
            for partition in topic.get("partitions") or ():
                number = partition.get("partitionIndex")
                if number is None:
                    continue
                self._rise((name, number), partition.get("highWatermark", -1), first_ns)
                offset = named.get((name, number))
                key = exchange.connection, name, number
                for batch in sets_of(partition.get("records") or b"", self.limits):
                    if batch.is_control or not batch.is_whole:
                        continue
                    self._fetched.add(
                        key,
                        known(offset),
                        batch.base_offset,
                        batch.last_offset,
                        asked_ns,
                        last_ns,
                        *_stamps(batch),
                        flags | (0 if batch.is_log_append_time else _CREATE_TIME),
                    )
                    if offset is not None:
                        self._remember(key, named.pop((name, number)))
                        offset = None

    def _remember(self, key: _Read, offset: int) -> None:
        if key in self._asked or len(self._asked) < self.limits.delivery_sets:
            self._asked[key] = offset

    def _rise(self, place: _Place, high: int, ns: int) -> None:
        highest, since_ns = self._high.get(place, (-1, ns))
        if high > highest or (high >= 0 and ns < since_ns):
            if high > highest and (place in self._high or len(self._high) < self.limits.delivery_sets):
                self._high[place] = high, ns
            self._heights.add(place, ns, high)

    def _topic(self, name: str | None, topic_id: str | None) -> Topic:
        return self._labels.topic(name, topic_id if topic_id != ZERO_UUID else None)

    # -- all of it --------------------------------------------------------------------------------------

    def merge(self, later: Self) -> None:
        self._labels.merge(later._labels)
        self._affiliations.merge(later._affiliations)
        self._readers.merge(later._readers)
        for mine, theirs in (
            (self._produced, later._produced),
            (self._samples, later._samples),
            (self._heights, later._heights),
        ):
            mine.merge(theirs)
        self._fetched.merge(later._fetched)
        self._lost.merge(later._lost)
        self._anew.merge(later._anew)
        for place, told_then in later._high.items():
            if told_then[0] > self._high.get(place, (-1, 0))[0]:
                self._high[place] = told_then
        self._asked |= later._asked

    @property
    def left_out(self) -> int:
        return sum(each.left_out for each in self._ledgers()) + self._readers.left_out + self._cut

    def _ledgers(self) -> tuple[Ledgers[_Place] | Ledgers[_Read], ...]:
        return self._produced, self._samples, self._fetched, self._heights

    def result(self) -> list[Row]:
        self._labels.settle()
        produced: dict[tuple[str | None, int], list[Batch]] = {}
        ids: dict[str | None, set[str]] = {}
        for topic, partition in self._produced:
            name = self._labels.name(topic)
            ids.setdefault(name, set()).update(topic)
            rows = self._produced.rows((topic, partition))
            samples = {row[:2]: row[2:] for row in self._samples.rows((topic, partition))}
            batches = (
                _batch(row, samples.get((row[2], row[6]), ()), self._consumer(row[8]).who.client_id)
                for row in rows
            )
            produced.setdefault((name, partition), []).extend(batches)
        fetched: dict[tuple[str | None, int], dict[_Consumer, list[Arrival]]] = {}
        losses = self._losses()
        for connection, topic, partition in self._fetched:
            place = self._labels.name(topic), partition
            if place in produced:
                arrivals = fetched.setdefault(place, {}).setdefault(self._consumer(connection), [])
                found = map(_arrival, self._fetched.rows((connection, topic, partition)))
                arrivals += after_loss(found, losses.get(connection, NO_LOSS))
        heights: dict[tuple[str | None, int], list[tuple[int, int]]] = {}
        for topic, partition in self._heights:
            place = self._labels.name(topic), partition
            if place in fetched:
                rises = self._heights.rows((topic, partition))
                heights.setdefault(place, []).extend((row[0], row[1]) for row in rises)
        out = []
        for place, consumers in fetched.items():
            followers = {each for each in consumers if each.replica_id >= 0}
            for consumer, outcome in deliver(produced[place], consumers, followers, heights.get(place, [])):
                if outcome.counts and outcome.sets:
                    group = self._group(consumer, place[0], ids[place[0]])
                    out.append(_result(place, consumer, group, outcome))
        self._cut = max(0, len(out) - self.limits.rows)
        return sorted(out[: self.limits.rows], key=_order)

    def _losses(self) -> dict[int, Loss]:
        """Where messages of connections are missing."""
        asks: dict[int, set[int]] = {connection: set() for connection in self._lost}
        for key in self._fetched:
            if key[0] in asks:
                asks[key[0]].update(row[3] for row in self._fetched.rows(key) if row[0] != NONE)
        return {
            connection: Loss(
                sorted(row[0] for row in self._lost.rows(connection)),
                sorted(each),
                [(row[0], row[1] == NEW_SESSION) for row in self._anew.rows(connection)],
            )
            for connection, each in asks.items()
        }

    def _consumer(self, connection: int) -> _Consumer:
        reader = self._readers.rows.get(connection) or _Reader()
        who = reader.who or Speaker("", None)
        if reader.replica_id is not None and reader.replica_id >= 0:
            return _Consumer(Speaker(who.client, None), reader.replica_id, None)
        return _Consumer(who, -1, connection if who.client_id is None else None)

    def _group(self, consumer: _Consumer, topic: str | None, ids: set[str]) -> str | None:
        if consumer.replica_id >= 0:
            return None
        return self._affiliations.group(consumer.who, topic, *ids)


def _stamps(batch: Header) -> tuple[int, int, int]:
    return known(batch.first_ms), known(batch.last_ms), known(batch.content_crc)


def _is_metadata(topic: Topic) -> bool:
    return is_metadata_topic(topic.name or None, topic.topic_id or None)


def _batch(row: tuple[int, ...], sample: tuple[int, ...], producer: str | None) -> Batch:
    base, last, sent, acknowledged, first, largest, crc, flags, _ = row
    is_create_time = bool(flags & _CREATE_TIME)
    return Batch(
        told(base),
        told(last),
        told(sent),
        told(acknowledged),
        told(first) if is_create_time else None,
        told(largest) if is_create_time else None,
        told(crc),
        bool(flags & _COUNTS),
        tuple(ms for ms in sample if ms != NONE),
        producer,
    )


def _arrival(row: tuple[int, ...]) -> Arrival:
    offset, base, last, asked, came, first, largest, crc, flags = row
    is_create_time = bool(flags & _CREATE_TIME)
    return Arrival(
        told(offset),
        told(base),
        last,
        told(asked),
        came,
        told(first) if is_create_time else None,
        told(largest) if is_create_time else None,
        told(crc),
        bool(flags & _COUNTS),
    )


def _order(row: Row) -> tuple[str, int, str, str]:
    return row["topic"] or "", row["partition"], row["consumer"] or "", row["client"] or ""


def _result(place: tuple[str | None, int], consumer: _Consumer, group: str | None, outcome: Outcome) -> Row:
    send_50, send_99 = outcome.send.percentiles(50, 99)
    ack_50, ack_99 = outcome.ack.percentiles(50, 99)
    create_50, create_99 = outcome.create.percentiles(50, 99)
    follows = consumer.replica_id >= 0
    return {
        "topic": place[0],
        "partition": place[1],
        "consumer": f"broker {consumer.replica_id}" if follows else consumer.who.client_id,
        "client": consumer.who.client or None,
        "group": group,
        "producers": sorted(outcome.producers),
        "sets": outcome.sets,
        "records": outcome.records,
        "read_again": outcome.read_again,
        "send_to_fetched_p50_ns": send_50,
        "send_to_fetched_p99_ns": send_99,
        "send_to_fetched_max_ns": outcome.send.most,
        "ack_to_fetched_p50_ns": ack_50,
        "ack_to_fetched_p99_ns": ack_99,
        "create_to_fetched_p50_ns": create_50,
        "create_to_fetched_p99_ns": create_99,
        "linger_p50_ns": outcome.linger.percentiles(50)[0],
        "youngest_p50_ns": outcome.youngest.percentiles(50)[0],
        "produce_p50_ns": outcome.produce.percentiles(50)[0],
        "replicate_p50_ns": outcome.replicate.percentiles(50)[0],
        "visible_p50_ns": outcome.visible.percentiles(50)[0],
        "waited_p50_ns": outcome.waited.percentiles(50)[0],
        "unconsumed": outcome.unconsumed,
    }
