"""Records of ``__cluster_metadata``, as brokers and controllers of KRaft fetch them → statements.

The log is the truth about its cluster (KIP-500, KIP-631). All that fetch it get the same records, so a record
is kept once, by its offset. Records at the end of the log have just happened. Records before the end have
happened earlier, at an unknown time. A starting broker reads all of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from kdissect.analysis.cluster_fields import ids, request_of, response_of
from kdissect.analysis.cluster_settings import RESOURCES, acl_text, entity_text, number_text, setting, shown
from kdissect.analysis.labels import Topic
from kdissect.analysis.packed import packed
from kdissect.analysis.recent import Recent
from kdissect.analysis.room import Room
from kdissect.analysis.shared_parts import answer_bytes, record_sets, topics_of
from kdissect.analysis.statements import Statement, fields
from kdissect.embedded.internal import decode_internal
from kdissect.exchange import Exchange
from kdissect.limits import Limits
from kdissect.names import METADATA_TOPIC, METADATA_TOPIC_ID, is_metadata_topic
from kdissect.protocol.apis import FETCH
from kdissect.protocol.library import Library, library
from kdissect.record.batch import Batch
from kdissect.record.sets import read_record_set

Body = dict[str, Any]
Told = Iterator[Statement]
_LogRecord = tuple[int, str, tuple[Statement, ...]]
"""The offset of a record, its name, and its statements."""

CARRIERS = frozenset(("Fetch", "FetchSnapshot"))
NEAR_END = 8
"""Records up to this many before the high watermark still count as the end of the log: a fetch or two."""
_CHANGED = {1: True, -1: False}
"""``BrokerRegistrationFencingChange``: 0 is no change."""
KEEPS_LEADER = -2
"""``NO_LEADER_CHANGE``."""


class LogPlace(NamedTuple):
    """The position of a record in the log of a cluster. A snapshot comes before the offset at which it
    ends."""

    cluster: str | None
    offset: int
    is_log: bool
    at: int


@packed
@dataclass(slots=True)
class Logged:
    """A record, or the statements of its fields."""

    name: str
    said: tuple[Statement, ...]
    ns: int
    number: int
    teller: str
    is_fresh: bool
    """Whether it happened when it was told."""
    counts: bool

    def covers(self, ns: int, number: int, is_fresh: bool, counts: bool) -> bool:
        """Whether another fetch of the same record tells nothing new."""
        is_earlier = self.ns < ns or (self.ns == ns and self.number <= number)
        return is_earlier and self.is_fresh >= is_fresh and self.counts >= counts


_RECORD_BYTES = 1_500
"""The approximate size of a record."""


_Carried = tuple[LogPlace, str, tuple[Statement, ...], bool]
"""A record in an answer: the place, the name, the statements, and whether it has just happened."""


class _ReadAnswer:
    """An answer with records of the log."""

    __slots__ = ("_counts", "_first", "records")

    def __init__(self, records: list[_Carried]) -> None:
        self.records = records
        self._first: tuple[int, int] | None = None
        """The time and the exchange of the first such answer, all of whose records are kept."""
        self._counts = False
        """Whether one of these counts."""

    def covers(self, ns: int, number: int, counts: bool) -> bool:
        """Whether another such answer tells nothing new."""
        return self._first is not None and self._first <= (ns, number) and self._counts >= counts

    def note(self, ns: int, number: int, counts: bool) -> None:
        """Note that all records of such an answer are kept."""
        self._first = (ns, number) if self._first is None else min(self._first, (ns, number))
        self._counts = self._counts or counts


class MetadataLog:
    """The records that were fetched."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._limits = room.limits
        self._records: dict[LogPlace, Logged] = {}
        self._answers: Recent[tuple[Any, ...], _ReadAnswer] = Recent(_MOST_ANSWERS)
        """Answers that were read lately, by :func:`_words`."""
        self.left_out = 0

    def see(self, exchange: Exchange, counts: bool) -> bool:
        """Take in a Fetch or FetchSnapshot; return whether it had any records."""
        ns, number = exchange.ended_ns, exchange.number
        words = _words(exchange)
        answer = None if words is None else self._answers.get(words)
        if answer is None:
            answer = _ReadAnswer(list(_read(exchange, self._limits)))
            if words is not None:
                self._answers.keep(words, answer)
        elif answer.covers(ns, number, counts):
            return bool(answer.records)  # as nearly always: each broker and controller fetches each record
        left_out = self.left_out
        for place, name, said, is_fresh in answer.records:
            known = self._records.get(place)
            if known is None or not known.covers(ns, number, is_fresh, counts):
                self._add(place, Logged(name, said, ns, number, exchange.broker, is_fresh, counts))
        if self.left_out == left_out:
            answer.note(ns, number, counts)
        return bool(answer.records)

    def _add(self, place: LogPlace, logged: Logged) -> None:
        known = self._records.get(place)
        if known is None:
            is_beyond = len(self._records) >= self._limits.timeline_events
            if self._room.refuses(is_beyond) or not self._room.takes(_RECORD_BYTES):
                self.left_out += 1
                return
            self._records[place] = logged
            return
        first, other = sorted((known, logged), key=lambda each: (each.ns, each.number))
        self._records[place] = Logged(
            first.name,
            first.said,
            first.ns,
            first.number,
            first.teller,
            first.is_fresh or other.is_fresh,
            first.counts or other.counts,
        )

    def merge(self, later: MetadataLog) -> None:
        """Add later fetches."""
        self.left_out += later.left_out
        for place, logged in later._records.items():
            self._add(place, logged)

    def __iter__(self) -> Iterator[tuple[LogPlace, Logged]]:
        """The records in the order of the log."""
        order = sorted(self._records, key=lambda place: (place.cluster or "", *place[1:]))
        for place in order:
            yield place, self._records[place]


def may_have_log(exchange: Exchange) -> bool:
    """Whether an exchange of the :data:`CARRIERS` may have records of the log, judged by its topics, and the
    sizes of its record sets."""
    response = exchange.response
    if response is None:
        return False
    if response.api_key == FETCH:
        seen = response.survey()
        if seen is not None:
            places = seen.records
            if not places or places[::2] == places[1::2]:
                return False  # as nearly always: followers of the log ask several times a second
    if not exchange.may_carry_metadata():
        return False
    topics = topics_of(exchange)
    return METADATA_TOPIC in topics or METADATA_TOPIC_ID in topics


def _words(exchange: Exchange) -> tuple[Any, ...] | None:
    """The key of the records in an answer: equal keys mean equal records. None if the comparison would take
    long, or if the records do not follow from the answer's bytes alone."""
    request, response = exchange.request, exchange.response
    if request is None or response is None:
        return None
    seen = response.survey()
    if seen is None or len(seen.mentions) != 1 or not is_metadata_topic(*seen.mentions[0]):
        return None
    answer = answer_bytes(exchange, response)
    if len(answer) > _SHORT_BYTES:
        return None
    return library(), request.body().get("clusterId"), response.api_key, response.api_version, answer


def _read(exchange: Exchange, limits: Limits) -> Iterator[_Carried]:
    """The records in an exchange."""
    places = [each.place for each in record_sets(exchange, limits)]
    carried = [
        each.data
        for each in places
        if each.data and each.message is exchange.response and is_metadata_topic(each.topic, each.topic_id)
    ]
    if not carried:
        return
    cluster = request_of(exchange).get("clusterId") or None
    high_watermark, snapshot_end = _ends(response_of(exchange))
    for data in carried:
        is_short = len(data) <= _SHORT_BYTES
        batches = _known_batches(library(), data, limits) if is_short else _batches(data, limits)
        for last_offset, records in batches:
            is_fresh = snapshot_end is None and last_offset + NEAR_END >= high_watermark
            for offset, name, said in records:
                at = (
                    LogPlace(cluster, offset, True, 0)
                    if snapshot_end is None
                    else LogPlace(cluster, snapshot_end, False, offset)
                )
                yield at, name, said, is_fresh


def _ends(response: Body) -> tuple[int, int | None]:
    """The high watermark in an answer, -1 without one; and the offset at which its snapshot ends."""
    for topic in (*(response.get("responses") or ()), *(response.get("topics") or ())):
        for each in topic.get("partitions") or ():
            if "snapshotId" in each and "size" in each:
                return -1, (each["snapshotId"] or {}).get("endOffset", 0)
            return each.get("highWatermark", -1), None
    return -1, None


def _batches(data: bytes, limits: Limits) -> list[tuple[int, list[_LogRecord]]]:
    """The batches of a record set, each with its last offset and its records. Do not change the lists."""
    return [
        (batch.last_offset, list(_records(batch)))
        for batch in read_record_set(data, limits).batches
        if not (batch.partial or batch.is_control)
    ]


_SHORT_BYTES = 4_096
_MOST_ANSWERS = 128
"""The most answers of this length that are remembered."""


@lru_cache(maxsize=128)
def _known_batches(_: Library, data: bytes, limits: Limits) -> list[tuple[int, list[_LogRecord]]]:
    """The same as :func:`_batches`, remembered for the definitions in use. For short record sets only: every
    broker and controller fetches each of them."""
    return _batches(data, limits)


def _records(batch: Batch) -> Iterator[_LogRecord]:
    for record in batch.records():
        if not record.value:
            continue
        value = record.value
        is_small = len(value) <= _KNOWN_BYTES
        name, said = _known(library(), value) if is_small else _statement_of(value)
        if said:
            yield record.offset, name, said


def _statement_of(value: bytes) -> tuple[str, tuple[Statement, ...]]:
    """The name of a record, and its statements."""
    found = decode_internal("metadata", None, value)
    name = found.name or ""
    tell = _STATEMENTS_OF.get(name)
    if tell is None or found.value_part is None:
        return name, ()
    return name, tuple(tell(found.value_part.values))


_KNOWN_BYTES = 512


@lru_cache(maxsize=1_024)
def _known(_: Library, value: bytes) -> tuple[str, tuple[Statement, ...]]:
    """The same as :func:`_statement_of`, remembered for the definitions in use. For small records only: every
    broker and controller fetches each of them."""
    return _statement_of(value)


def _broker(body: Body) -> Told:
    node = body.get("brokerId")
    is_fenced = body.get("fenced")
    epoch = body.get("brokerEpoch")
    yield Statement("node", (node,), fields(is_there=True, is_registered=True, epoch=epoch, fenced=is_fenced))
    yield from _endpoints(node, body)


def _controller(body: Body) -> Told:
    yield from _endpoints(body.get("controllerId"), body)


def _endpoints(node: Any, body: Body) -> Told:
    for each in body.get("endPoints") or ():
        found = fields(rack=body.get("rack"), listener=each.get("name"))
        yield Statement("endpoint", (node, each.get("host"), each.get("port")), found)


def _broker_changed(body: Body) -> Told:
    found = fields(
        fenced=_CHANGED.get(body.get("fenced", 0)),
        is_stopping=True if body.get("inControlledShutdown") == 1 else None,
    )
    if found:
        yield Statement("node", (body.get("brokerId"),), found + fields(epoch=body.get("brokerEpoch")))


def _broker_gone(body: Body) -> Told:
    yield Statement("node", (body.get("brokerId"),), fields(is_there=False))


def _fenced(is_fenced: bool) -> Callable[[Body], Told]:
    def tell(body: Body) -> Told:
        yield Statement("node", (body.get("id"),), fields(fenced=is_fenced))

    return tell


def _topic(body: Body) -> Told:
    label = Topic(body.get("name") or "", "")
    yield Statement("topic", (label,), fields(is_there=True, is_made=True, topic_id=body.get("topicId")))


def _topic_removed(body: Body) -> Told:
    label = Topic("", body.get("topicId") or "")
    yield Statement("topic", (label,), fields(is_there=False, is_deleted=True))


def _partition(body: Body) -> Told:
    """A partition when it is made, or written again as a whole."""
    found = fields(
        topic_id=body.get("topicId"),
        leader=body.get("leader"),
        leader_epoch=body.get("leaderEpoch"),
        partition_epoch=body.get("partitionEpoch"),
        replicas=ids(body.get("replicas")),
        isr=ids(body.get("isr")),
        elr=ids(body.get("eligibleLeaderReplicas")),
        recovering=True if body.get("leaderRecoveryState") == 1 else None,
    )
    yield Statement("partition", (Topic("", body.get("topicId") or ""), body.get("partitionId")), found)


def _partition_changed(body: Body) -> Told:
    leader = body.get("leader", KEEPS_LEADER)
    found = fields(
        topic_id=body.get("topicId"),
        leader=None if leader == KEEPS_LEADER else leader,
        replicas=ids(body.get("replicas")),
        isr=ids(body.get("isr")),
        elr=ids(body.get("eligibleLeaderReplicas")),
        recovering=True if body.get("leaderRecoveryState") == 1 else None,
    )
    yield Statement("partition", (Topic("", body.get("topicId") or ""), body.get("partitionId")), found)


def _config(body: Body) -> Told:
    kind, name = body.get("resourceType"), body.get("name")
    if kind in RESOURCES:
        value = shown(kind, name, body.get("value"))
        yield setting(RESOURCES[kind], body.get("resourceName") or "", name or "", value, None, None)


def _feature(body: Body) -> Told:
    level = body.get("featureLevel", 0)
    yield setting("feature", "", body.get("name") or "", str(level) if level > 0 else None, None, None)


def _quota(body: Body) -> Told:
    value = None if body.get("remove") else number_text(body.get("value"))
    yield setting("quota", entity_text(body.get("entity")), body.get("key") or "", value, None, None)


def _acl(body: Body) -> Told:
    yield Statement("acl", (acl_text(body),), fields(is_there=True))


_STATEMENTS_OF: dict[str, Callable[[Body], Told]] = {
    "RegisterBrokerRecord": _broker,
    "RegisterControllerRecord": _controller,
    "BrokerRegistrationChangeRecord": _broker_changed,
    "UnregisterBrokerRecord": _broker_gone,
    "FenceBrokerRecord": _fenced(True),
    "UnfenceBrokerRecord": _fenced(False),
    "TopicRecord": _topic,
    "RemoveTopicRecord": _topic_removed,
    "PartitionRecord": _partition,
    "PartitionChangeRecord": _partition_changed,
    "ConfigRecord": _config,
    "FeatureLevelRecord": _feature,
    "ClientQuotaRecord": _quota,
    "AccessControlEntryRecord": _acl,
}


def statements_of(records: Iterator[tuple[LogPlace, Logged]]) -> Iterator[tuple[LogPlace, Logged, Statement]]:
    """The statements of the log. Those of partitions have the epochs that follow from the records before
    (``PartitionRegistration.merge``). Each change raises the partition's epoch by one. If a change names a
    leader, even the same, it raises the leader's epoch by one too."""
    epochs: dict[tuple[Any, ...], tuple[int, int]] = {}
    for place, logged in records:
        for said in logged.said:
            if said.kind != "partition":
                yield place, logged, said
                continue
            key, values = (place.cluster, *said.subject), dict(said.fields)
            if "partition_epoch" in values:
                epochs[key] = values.get("leader_epoch", 0), values["partition_epoch"]
            elif key in epochs:
                leader_epoch, partition_epoch = epochs[key]
                leader_epoch += "leader" in values
                epochs[key] = leader_epoch, partition_epoch + 1
                added = fields(leader_epoch=leader_epoch, partition_epoch=partition_epoch + 1)
                said = said._replace(fields=said.fields + added)
            yield place, logged, said
