"""The exchanges of transactions → marks: the facts from producers, coordinators and readers, by time.

Nothing is concluded here. Marks of a transactional id are kept on its timeline. Marks with only a producer id
(markers, answers of DescribeProducers) are on the timeline of that id. The offsets that readers may read are
on the timeline of the partition. Each broker has its own timelines, because names and ids are those of a
cluster. Answers to requests that were not captured are on the timeline of their connection. The marks are
those of :mod:`kdissect.analysis.transaction_marks`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Any, Self

from kdissect.analysis.clusters import Clusters, NameAt
from kdissect.analysis.fold import Fold
from kdissect.analysis.headers import Header
from kdissect.analysis.labels import Labels, Topic
from kdissect.analysis.packed import packed
from kdissect.analysis.rows import Rows
from kdissect.analysis.shared_parts import follows_log, record_sets
from kdissect.analysis.timelines import Timelines
from kdissect.analysis.topics import replica_id
from kdissect.analysis.transaction_marks import (
    ADD,
    END,
    INIT,
    NO_PRODUCER,
    OFFSETS,
    PRODUCE,
    TOLD,
    Active,
    Mark,
    Marker,
    Orphan,
    Place,
    ReadableTo,
    Written,
)
from kdissect.embedded.internal import decode_internal
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.protocol.errors import error_name
from kdissect.protocol.schema import ZERO_UUID
from kdissect.record.sets import read_record_set

STATE_TOPIC = "__transaction_state"
_BY_BROKERS = 4
"""From this version on, AddPartitionsToTxn is sent by brokers (KIP-890)."""
_FIRST_OF_V2 = 12
"""Clients send this version of Produce and later ones only in a transaction of version 2 (KIP-890)."""
_END_OF_V2 = 5
"""The same version for EndTxn. Its answer contains the next epoch."""
_OFFSETS_OF_V2 = 5
"""The same version for TxnOffsetCommit."""


ProducerAt = tuple[int, str]
"""Producer id, and the broker that gave it."""
PlaceAt = tuple[Place, str]
"""Partition, and the broker that gave it."""


@packed
@dataclass(slots=True)
class StableTo:
    """How far a partition was seen to be stable: the highest offset, and the latest one. A topic that is made
    anew begins at 0 again, so the latest may be lower."""

    stable: int = -1
    ns: int = 0
    """When the highest offset was first seen."""
    latest: int = -1
    latest_ns: int = 0

    def take(self, stable: int, ns: int) -> None:
        """Take in an answer."""
        if stable > self.stable or (stable == self.stable and ns < self.ns):
            self.stable, self.ns = stable, ns
        if (ns, stable) > (self.latest_ns, self.latest):
            self.latest, self.latest_ns = stable, ns

    def merge(self, later: StableTo) -> None:
        self.take(later.stable, later.ns)
        self.take(later.latest, later.latest_ns)

    def passed(self, offset: int, since_ns: int) -> bool:
        """Whether it was seen to be stable beyond an offset at this time or later."""
        return (self.stable > offset and self.ns >= since_ns) or (
            self.latest > offset and self.latest_ns >= since_ns
        )


_STABLE_BYTES = 300
"""The approximate size of a :class:`StableTo`, with its key."""


class Transactional(Fold):
    """The facts about transactions in all exchanges."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self.latest.keep_clusters(Clusters(self.room))
        self.labels = Labels(self.latest, limits)
        self.lines: Timelines[NameAt] = Timelines(self.room)
        self.markers: Timelines[ProducerAt] = Timelines(self.room)
        self.active: Timelines[ProducerAt] = Timelines(self.room)
        self.stable: Timelines[PlaceAt] = Timelines(self.room)
        self.free: Rows[PlaceAt, StableTo] = Rows(StableTo, self.room, _STABLE_BYTES)
        """Where nothing was open any more."""
        self.orphans: Timelines[int] = Timelines(self.room)

    def _exchange(self, exchange: Exchange) -> None:
        self._take(exchange, True)

    def _other(self, exchange: Exchange) -> None:
        self._take(exchange, False)

    def _take(self, exchange: Exchange, counts: bool) -> None:
        api = exchange.api
        if exchange.request is None and api != "Fetch":
            self.orphans.add(exchange.connection, _orphan(exchange))
        elif api == "Fetch":
            if not follows_log(exchange):
                self._take_fetch(exchange, counts)
        elif api == "Produce":
            self._take_produce(exchange, counts)
        elif api in _TAKEN:
            _TAKEN[api](self, exchange, counts)

    def _mark(self, key: Any, exchange: Exchange, counts: bool, kind: str, **told: Any) -> None:
        if not isinstance(key, str) or not key:
            return
        told = {
            "client": exchange.client,
            "client_id": exchange.client_id,
            "error": exchange.error,
            "coordinator": None,
            "producer_id": None,
            "epoch": None,
            "version": None,
            **told,
        }
        mark = Mark(
            ns=exchange.begun_ns,
            number=exchange.number,
            kind=kind,
            done_ns=exchange.response_time_ns,
            counts=counts,
            connection=exchange.connection,
            api_version=exchange.api_version or 0,
            missing=exchange.missing if exchange.response is None else None,
            **told,
        )
        self.lines.add(self.latest.clusters.name_at(exchange, key), mark)

    def _take_produce(self, exchange: Exchange, counts: bool) -> None:
        named = exchange.transactional_ids
        if not named:
            return
        errors = dict(self._answers(exchange)) if exchange.error is not None else {}
        written = []
        producer: tuple[int | None, int | None] = (None, None)
        for found_set in record_sets(exchange, self.limits):
            each = found_set.place
            place = (self.labels.topic(each.topic, each.topic_id), _number(each.partition))
            for batch in found_set.headers:
                producer = (batch.producer_id, batch.producer_epoch)
                offset = found_set.assigned_offset(exchange)
                found = (
                    place,
                    batch.base_sequence,
                    batch.records or 0,
                    batch.size,
                    offset,
                    errors.get(place),
                )
                written.append(Written(*found))
        self._mark(
            named[0],
            exchange,
            counts,
            PRODUCE,
            producer_id=producer[0],
            epoch=producer[1],
            written=tuple(written),
            version="TV2" if (exchange.api_version or 0) >= _FIRST_OF_V2 else None,
        )

    def _answers(self, exchange: Exchange) -> Iterator[tuple[Place, str | None]]:
        """The partitions of an answer to Produce, with their errors."""
        if exchange.response is None:
            return
        for topic in _list(exchange.response.body().get("responses")):
            named = self._topic(topic)
            for part in _list(topic.get("partitionResponses")):
                code = part.get("errorCode")
                yield (named, _number(part.get("index"))), error_name(code) if code else None

    def _init(self, exchange: Exchange, counts: bool) -> None:
        asked, told = _bodies(exchange)
        found = told.get("producerId", NO_PRODUCER)
        self._mark(
            asked.get("transactionalId"),
            exchange,
            counts,
            INIT,
            coordinator=exchange.broker,
            producer_id=found if found != NO_PRODUCER else None,
            epoch=told.get("producerEpoch") if found != NO_PRODUCER else None,
            timeout_ms=asked.get("transactionTimeoutMs"),
            is_new=asked.get("producerId", NO_PRODUCER) == NO_PRODUCER,
        )

    def _add(self, exchange: Exchange, counts: bool) -> None:
        asked, _ = _bodies(exchange)
        if "v3AndBelowTransactionalId" in asked and (exchange.api_version or 0) < _BY_BROKERS:
            self._mark(
                asked.get("v3AndBelowTransactionalId"),
                exchange,
                counts,
                ADD,
                coordinator=exchange.broker,
                producer_id=asked.get("v3AndBelowProducerId"),
                epoch=asked.get("v3AndBelowProducerEpoch"),
                parts=self._places(asked.get("v3AndBelowTopics"), "name", "partitions"),
                version="TV1",
            )
            return
        for each in _list(asked.get("transactions")):
            if each.get("verifyOnly") is False:
                self._mark(
                    each.get("transactionalId"),
                    exchange,
                    counts,
                    ADD,
                    client=None,
                    client_id=None,
                    coordinator=exchange.broker,
                    producer_id=each.get("producerId"),
                    epoch=each.get("producerEpoch"),
                    parts=self._places(each.get("topics"), "name", "partitions"),
                )

    def _add_offsets(self, exchange: Exchange, counts: bool) -> None:
        asked, _ = _bodies(exchange)
        self._mark(
            asked.get("transactionalId"),
            exchange,
            counts,
            OFFSETS,
            coordinator=exchange.broker,
            producer_id=asked.get("producerId"),
            epoch=asked.get("producerEpoch"),
            group=asked.get("groupId"),
            version="TV1",
        )

    def _commit_offsets(self, exchange: Exchange, counts: bool) -> None:
        asked, _ = _bodies(exchange)
        offsets = [
            (self._topic(topic), _number(part.get("partitionIndex")))
            for topic in _list(asked.get("topics"))
            for part in _list(topic.get("partitions"))
        ]
        self._mark(
            asked.get("transactionalId"),
            exchange,
            counts,
            OFFSETS,
            producer_id=asked.get("producerId"),
            epoch=asked.get("producerEpoch"),
            group=asked.get("groupId"),
            offsets=tuple(offsets),
            version="TV2" if (exchange.api_version or 0) >= _OFFSETS_OF_V2 else None,
        )

    def _end(self, exchange: Exchange, counts: bool) -> None:
        asked, _ = _bodies(exchange)
        self._mark(
            asked.get("transactionalId"),
            exchange,
            counts,
            END,
            coordinator=exchange.broker,
            producer_id=asked.get("producerId"),
            epoch=asked.get("producerEpoch"),
            committed=asked.get("committed"),
            version="TV2" if (exchange.api_version or 0) >= _END_OF_V2 else "TV1",
        )

    def _take_description(self, exchange: Exchange, counts: bool) -> None:
        _, told = _bodies(exchange)
        for each in _list(told.get("transactionStates")):
            if each.get("errorCode"):
                continue
            self._take_statement(
                each.get("transactionalId"),
                exchange,
                counts,
                each,
                state=each.get("transactionState"),
                timeout_ms=each.get("transactionTimeoutMs"),
                start_ns=_start_ns(each.get("transactionStartTimeMs", -1)),
                parts=self._places(each.get("topics"), "topic", "partitions"),
            )

    def _markers(self, exchange: Exchange, counts: bool) -> None:
        asked, _ = _bodies(exchange)
        if exchange.response is None or exchange.error is not None:
            return
        ns = exchange.response.frame.last_ns
        for each in _list(asked.get("markers")):
            producer_id, epoch = each.get("producerId"), each.get("producerEpoch")
            if producer_id is not None and epoch is not None:
                committed = bool(each.get("transactionResult"))
                found = Marker(ns, exchange.number, epoch, committed, None, None)
                self.markers.add((producer_id, exchange.broker), found)

    def _producers(self, exchange: Exchange, counts: bool) -> None:
        _, told = _bodies(exchange)
        broker = self.latest.clusters.at(exchange)
        for topic in _list(told.get("topics")):
            for part in _list(topic.get("partitions")):
                place = (self._topic(topic), _number(part.get("partitionIndex")))
                for each in _list(part.get("activeProducers")):
                    start = each.get("currentTxnStartOffset", -1)
                    if start < 0 or "producerId" not in each:
                        continue
                    epoch = each.get("producerEpoch", -1)
                    epoch = epoch if 0 <= epoch < 1 << 15 else None  # it has 32 bits here
                    found = (epoch, place, start, each.get("lastTimestamp", -1))
                    mark = Active(exchange.begun_ns, exchange.number, *found, counts)
                    self.active.add((each["producerId"], broker), mark)

    def _take_fetch(self, exchange: Exchange, counts: bool) -> None:
        """Take in what readers see of transactions: their batches, their ends, and the stable offsets."""
        response = exchange.response
        if response is None:
            return
        ns, told_of, broker = response.frame.last_ns, set(), ""
        for found_set in record_sets(exchange, self.limits):
            each = found_set.place
            if each.topic == STATE_TOPIC:
                self._states(exchange, counts, each.data)
            for batch in found_set.headers:
                if not batch.is_transactional and not batch.is_control:
                    continue
                place = (self.labels.topic(each.topic, each.topic_id), _number(each.partition))
                if batch.is_transactional:
                    told_of.add(place)
                if batch.is_control and batch.producer_id != NO_PRODUCER:
                    self._take_control_batch(exchange, ns, each.data, batch, place)
        if replica_id(exchange) >= 0:
            return
        for topic in _list(response.body().get("responses")):
            named = None
            for part in _list(topic.get("partitions")):
                stable, high = part.get("lastStableOffset", -1), part.get("highWatermark", -1)
                if stable < 0 or high < 0:
                    continue
                named = named or self._topic(topic)
                place = (named, _number(part.get("partitionIndex")))
                broker = broker or self.latest.clusters.at(exchange)
                if stable >= high and place not in told_of:
                    free = self.free.row((place, broker))
                    if free is not None:
                        free.take(stable, ns)
                else:
                    self.stable.add((place, broker), ReadableTo(ns, exchange.number, stable, high))

    def _take_control_batch(
        self, exchange: Exchange, ns: int, data: bytes, batch: Header, place: Place
    ) -> None:
        """Take in a control batch."""
        start, size = batch.position, batch.size
        for record in read_record_set(data[start : start + size], self.limits).records():
            kind = int.from_bytes(record.key[2:4], "big") if record.key and len(record.key) >= 4 else -1
            if kind in (0, 1):
                told = ns, exchange.number, batch.producer_epoch, kind == 1, place, batch.base_offset
                broker = self.latest.clusters.at(exchange)
                self.markers.add((batch.producer_id, broker), Marker(*told))

    def _states(self, exchange: Exchange, counts: bool, data: bytes) -> None:
        """Take in records of the coordinator's own topic."""
        for record in read_record_set(data, self.limits).records():
            found = decode_internal("transaction", record.key, record.value, limits=self.limits)
            key, values = found.key, found.body
            if key is None or values is None:
                continue
            self._take_statement(
                key.get("transactionalId"),
                exchange,
                counts,
                values,
                state=_STATES.get(values.get("transactionStatus", -1)),
                timeout_ms=values.get("transactionTimeoutMs"),
                start_ns=_start_ns(values.get("transactionStartTimestampMs", -1)),
                parts=self._places(values.get("transactionPartitions"), "topic", "partitionIds"),
            )

    def _take_statement(
        self,
        transactional_id: str | None,
        exchange: Exchange,
        counts: bool,
        values: dict[str, Any],
        **more: Any,
    ) -> None:
        """Take in the statement of a coordinator, or of its topic, about a transaction."""
        self._mark(
            transactional_id,
            exchange,
            counts,
            TOLD,
            client=None,
            client_id=None,
            coordinator=exchange.broker,
            error=None,
            producer_id=values.get("producerId"),
            epoch=values.get("producerEpoch"),
            **more,
        )

    def _topic(self, values: dict[str, Any]) -> Topic:
        topic_id = values.get("topicId", ZERO_UUID)
        name = values.get("name") or values.get("topic")
        return self.labels.topic(name, topic_id if topic_id != ZERO_UUID and not name else None)

    def _places(self, topics: Any, name: str, partitions: str) -> tuple[Place, ...]:
        return tuple(
            (self.labels.topic(topic.get(name), None), _number(number))
            for topic in _list(topics)
            for number in _list(topic.get(partitions))
        )

    def merge(self, later: Self) -> None:
        self.labels.merge(later.labels)
        self.lines.merge(later.lines)
        self.markers.merge(later.markers)
        self.active.merge(later.active)
        self.stable.merge(later.stable)
        self.free.merge(later.free)
        self.orphans.merge(later.orphans)

    @property
    def left_out(self) -> int:
        lines = (self.lines, self.markers, self.active, self.stable, self.orphans)
        found = sum(each.left_out for each in lines)
        # Where nothing is open matters only if a transaction is known.
        return found + self.free.left_out if self.lines or self.stable else found


_STATES = {
    0: "Empty",
    1: "Ongoing",
    2: "PrepareCommit",
    3: "PrepareAbort",
    4: "CompleteCommit",
    5: "CompleteAbort",
    6: "Dead",
    7: "PrepareEpochFence",
}
"""``TransactionState.id``, by the names that DescribeTransactions gives them."""

_TAKEN = {
    "InitProducerId": Transactional._init,
    "AddPartitionsToTxn": Transactional._add,
    "AddOffsetsToTxn": Transactional._add_offsets,
    "TxnOffsetCommit": Transactional._commit_offsets,
    "EndTxn": Transactional._end,
    "DescribeTransactions": Transactional._take_description,
    "ListTransactions": Transactional._take_description,
    "WriteTxnMarkers": Transactional._markers,
    "DescribeProducers": Transactional._producers,
}
Transactional.apis = frozenset((*_TAKEN, "Fetch", "Produce"))


_SHORT = 1_024
"""The longest answer that is kept, in bytes."""
_ENDED = Struct(">iBihqhB")
"""An answer to EndTxn from version 5 on: correlation id, no tagged fields, throttleTimeMs, errorCode,
producerId, producerEpoch, no tagged fields."""


def _orphan(exchange: Exchange) -> Orphan:
    assert exchange.response is not None
    payload = exchange.response.frame.payload
    short = payload if len(payload) <= _SHORT else None
    found = Orphan(exchange.begun_ns, exchange.number, short)
    if len(payload) != _ENDED.size:
        return found
    _, tags, throttle_ms, error, producer_id, epoch, more = _ENDED.unpack(payload)
    if tags or more or error or throttle_ms < 0:
        return found
    return found._replace(producer_id=producer_id, epoch=epoch)


def _bodies(exchange: Exchange) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of request and response that are present."""
    return (
        exchange.request.body() if exchange.request is not None else {},
        exchange.response.body() if exchange.response is not None else {},
    )


def _start_ns(start_ms: Any) -> int | None:
    """When a transaction began, by the coordinator's clock in ms; None without a time."""
    return start_ms * 1_000_000 if isinstance(start_ms, int) and 0 < start_ms < 1 << 43 else None


def _list(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else ()


def _number(value: Any) -> int:
    return value if isinstance(value, int) else -1
