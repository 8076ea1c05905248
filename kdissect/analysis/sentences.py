"""An exchange → a sentence about its action, readable without knowing the protocol.

    billing-1 joined the group (poll timeout expired), as member billing-1-3f…: generation 7
    wrote 12 records to orders-0: offsets 340 to 351

A sentence gives the content of the messages. For a refused request, it says what was tried, and ends with the
error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from kdissect.analysis.triggers import GIVEN_ID
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.record.records import wrap64
from kdissect.record.sets import read_record_set
from kdissect.wording import plural

LONGEST = 80
"""The longest name in a sentence, in characters."""
MOST_NAMED = 3
"""The most partitions and the like that a sentence names. Beyond that, it gives their number."""


class CarriedRecords(NamedTuple):
    """Records of one partition that an exchange carried."""

    topic: str
    partition: int | None
    first: int | None
    """The first offset; None if unknown."""
    last: int | None
    size: int | None
    """The number of records; None if the batch does not contain it."""


def records_of(
    exchange: Exchange, limits: Limits = DEFAULTS, *, with_control: bool = False
) -> Iterator[CarriedRecords]:
    """The records in an exchange, batch by batch, by the headers of batches.

    :param with_control: also return control records, which have offsets too.
    """
    for place in exchange.record_sets():
        base = exchange.assigned_base_offset(place)
        for batch in read_record_set(place.data, limits).batches:
            if batch.partial or (batch.is_control and not with_control):
                continue
            first: int | None
            last: int | None
            first, last = batch.base_offset, batch.last_offset
            if exchange.api == "Produce":
                if base is None or base < 0 or first is None:
                    first = last = None
                else:
                    first, last = base + first, base + last
            yield CarriedRecords(
                place.topic or place.topic_id or "", place.partition, first, last, batch.count
            )


class ToldExchange(NamedTuple):
    """The action of an exchange."""

    text: str
    kind: str
    """Consecutive exchanges with equal kinds may share one line."""
    records: int = 0
    """The number of its records, if several exchanges share one line."""


def action_of(exchange: Exchange, limits: Limits = DEFAULTS) -> ToldExchange:
    """The action of an exchange."""
    if exchange.api in ("Produce", "Fetch", "ShareFetch"):
        return _of_records(exchange, limits)
    did = _did(exchange)
    if exchange.error is not None or exchange.response is None:
        done, _, rest = did.partition(" ")
        did = f"tried to {_TRIED[done]} {rest}" if done in _TRIED else did
    text = f"{did}{_ending(exchange)}"
    return ToldExchange(text, f"{exchange.api} {text}")


_TRIED = {
    "aborted": "abort",
    "acknowledged": "acknowledge",
    "added": "add",
    "changed": "change",
    "committed": "commit",
    "gave": "give",
    "joined": "join",
    "left": "leave",
    "removed": "remove",
    "wrote": "write",
}
"""The word for a completed action, and the word for a refused one, or one without a response that shows
it."""


def _did(exchange: Exchange) -> str:
    api = exchange.api or ""
    if api in ("OffsetCommit", "TxnOffsetCommit"):
        return _commit(exchange)
    how = _HOW.get(api)
    if how is None:
        return _SAID.get(api, f"sent {api}" if api else "sent a request of an unknown kind")
    return how(_body(exchange, "request"), _body(exchange, "response"))


def _body(exchange: Exchange, side: str) -> dict[str, Any]:
    message = exchange.request if side == "request" else exchange.response
    return {} if message is None else message.body()


def _ending(exchange: Exchange) -> str:
    if exchange.error is not None:
        return f": {exchange.error}"
    if exchange.request is None:
        return " (the request was not captured)"
    if exchange.response is None and exchange.missing not in (None, "acks=0"):
        return f" (no answer: {exchange.missing})"
    return ""


def _of_records(exchange: Exchange, limits: Limits) -> ToldExchange:
    found = list(records_of(exchange, limits))
    places = list(dict.fromkeys(_place(each.topic, each.partition) for each in found))
    where = listed(places)
    ending = _ending(exchange)
    count = sum(each.size or 0 for each in found)
    verb, way = ("wrote", "to") if exchange.api == "Produce" else ("read", "from")
    if not found:
        topics = f" of {listed(exchange.topics)}" if exchange.topics else ""
        if exchange.api == "Produce":
            text = f"sent records{topics}{ending}"
        else:
            text = f"asked for records{topics}{ending or ': there were none'}"
        return ToldExchange(text, f"{exchange.api} nothing {text}")
    if ending:
        verb = "tried to write" if exchange.api == "Produce" else verb
    elif exchange.missing == "acks=0":
        verb, ending = "sent", " (no answer was asked for: acks=0)"
    return ToldExchange(
        f"{verb} {plural(count, 'record')} {way} {where}{_offsets(found)}{ending}",
        f"{exchange.api} {where}{ending}",
        count,
    )


def _offsets(found: list[CarriedRecords]) -> str:
    if len({(each.topic, each.partition) for each in found}) != 1:
        return ""
    firsts = [each.first for each in found if each.first is not None]
    lasts = [each.last for each in found if each.last is not None]
    if not firsts or not lasts:
        return ""
    low, high = min(firsts), max(lasts)
    return f", offset {low:,}" if low == high else f", offsets {low:,} to {high:,}"


def _place(topic: str, partition: int | None) -> str:
    return topic if partition is None else f"{topic}-{partition}"


def listed(names: Iterable[str]) -> str:
    """Names in a sentence, not too many."""
    known = [_short(name) for name in dict.fromkeys(names)]
    if len(known) <= MOST_NAMED:
        return ", ".join(known)
    return f"{', '.join(known[:MOST_NAMED])} and {len(known) - MOST_NAMED:,} more"


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}…"


# -- groups -----------------------------------------------------------------------------------------


def _join(request: dict[str, Any], response: dict[str, Any]) -> str:
    text, reason = "joined the group", request.get("reason")
    if reason and GIVEN_ID not in reason:  # else the answer only gave it its id (KIP-394)
        text += f" again ({reason})" if request.get("memberId") else f" ({reason})"
    generation = response.get("generationId", -1)
    if generation >= 0:
        text += f": generation {generation}"
        if response.get("members"):
            text += f", and leads {plural(len(response['members']), 'member')}"
    return text


def _sync(request: dict[str, Any], response: dict[str, Any]) -> str:
    given = request.get("assignments") or ()
    what = "connectors and tasks" if request.get("protocolType") == "connect" else "partitions"
    if given:
        return f"gave {plural(len(given), 'member')} their {what}"
    return f"asked for its {what}"


def _leave(request: dict[str, Any], response: dict[str, Any]) -> str:
    members = request.get("members") or ()
    reasons = listed(each["reason"] for each in members if each.get("reason"))
    who = "left the group" if len(members) <= 1 else f"removed {len(members):,} members from the group"
    return f"{who} ({reasons})" if reasons else who


_EPOCHS = {
    0: "joined the group",
    -1: "left the group",
    -2: "left the group for a while, as a static member",
}
"""What heartbeats with these member epochs do."""


def _new_heartbeat(request: dict[str, Any], response: dict[str, Any]) -> str:
    given = response.get("assignment")
    parts = None if given is None else given.get("topicPartitions") or ()
    return _beat(request, response, parts, "partition")


def _streams_heartbeat(request: dict[str, Any], response: dict[str, Any]) -> str:
    return _beat(request, response, response.get("activeTasks"), "task")


def _beat(request: dict[str, Any], response: dict[str, Any], given: Any, what: str) -> str:
    """What a heartbeat of the newer protocols does. ``given`` is what the member has from now on; None for
    what it had."""
    epoch = request.get("memberEpoch")
    text = _EPOCHS.get(epoch, "sent a heartbeat") if epoch is not None else "sent a heartbeat"
    if given is not None and epoch not in (-1, -2):
        count = sum(len(each.get("partitions") or ()) for each in given)
        text += f", and was given {plural(count, what)}: epoch {response.get('memberEpoch')}"
    return text


def committed(exchange: Exchange) -> Iterator[tuple[str, int, int]]:
    """Topic, partition and offset of a commit."""
    for topic in _body(exchange, "request").get("topics") or ():
        name = topic.get("name")
        if name is None:
            id = topic.get("topicId") or ""
            name = exchange.topic_names.get(id) or id
        for each in topic.get("partitions") or ():
            yield name, each.get("partitionIndex", -1), each.get("committedOffset", -1)


def _commit(exchange: Exchange) -> str:
    offsets = listed(f"{topic}-{at} up to {offset:,}" for topic, at, offset in sorted(committed(exchange)))
    text = f"committed {offsets}" if offsets else "committed nothing"
    return text if exchange.api == "OffsetCommit" else f"{text}, as part of the transaction"


# -- transactions -----------------------------------------------------------------------------------


def _init(request: dict[str, Any], response: dict[str, Any]) -> str:
    text = "asked for a producer id"
    if response.get("producerId", -1) >= 0:
        text = f"began as producer {response['producerId']}, epoch {response.get('producerEpoch')}"
    timeout = request.get("transactionTimeoutMs")
    if request.get("transactionalId") and timeout is not None:
        text += f" (its transactions may last {timeout:,} ms)"
    return text


def _add_partitions(request: dict[str, Any], response: dict[str, Any]) -> str:
    topics = [*(request.get("v3AndBelowTopics") or ())]
    for each in request.get("transactions") or ():
        topics += each.get("topics") or ()
    places = [f"{each.get('name')}-{at}" for each in topics for at in each.get("partitions") or ()]
    return f"added {listed(places)} to the transaction" if places else "added partitions to the transaction"


def _end(request: dict[str, Any], response: dict[str, Any]) -> str:
    return "committed the transaction" if request.get("committed") else "aborted the transaction"


def _add_offsets(request: dict[str, Any], response: dict[str, Any]) -> str:
    return f"added the offsets of group {request.get('groupId')} to the transaction"


def _markers(request: dict[str, Any], response: dict[str, Any]) -> str:
    ends = ["commit" if each.get("transactionResult") else "abort" for each in request.get("markers") or ()]
    return f"wrote {plural(len(ends), 'end')} of transactions ({listed(ends)})"


# -- topics -----------------------------------------------------------------------------------------


def _create(request: dict[str, Any], response: dict[str, Any]) -> str:
    topics = request.get("topics") or ()
    return "asked to create " + listed(
        f"{each.get('name')} with {plural(each.get('numPartitions', 0), 'partition')}"
        if each.get("numPartitions", -1) > 0
        else str(each.get("name"))
        for each in topics
    )


def _delete(request: dict[str, Any], response: dict[str, Any]) -> str:
    topics = request.get("topics") or ()
    names = [
        *(request.get("topicNames") or ()),
        *(each.get("name") or each.get("topicId") for each in topics),
    ]
    return f"asked to delete {listed(names)}"


def _delete_records(request: dict[str, Any], response: dict[str, Any]) -> str:
    return "asked to delete the records of " + listed(
        f"{topic.get('name')}-{each.get('partitionIndex')} before {each.get('offset')}"
        for topic in request.get("topics") or ()
        for each in topic.get("partitions") or ()
    )


def _list_offsets(request: dict[str, Any], response: dict[str, Any]) -> str:
    found = []
    for topic in response.get("topics") or ():
        for each in topic.get("partitions") or ():
            if wrap64(each.get("offset", -1)) >= 0:
                found.append(f"{topic.get('name')}-{each.get('partitionIndex')}: {each['offset']:,}")
    return f"asked for offsets ({listed(found)})" if found else "asked for offsets"


_HOW: dict[str, Callable[[dict[str, Any], dict[str, Any]], str]] = {
    "JoinGroup": _join,
    "SyncGroup": _sync,
    "LeaveGroup": _leave,
    "ConsumerGroupHeartbeat": _new_heartbeat,
    "ShareGroupHeartbeat": _new_heartbeat,
    "StreamsGroupHeartbeat": _streams_heartbeat,
    "InitProducerId": _init,
    "AddPartitionsToTxn": _add_partitions,
    "AddOffsetsToTxn": _add_offsets,
    "EndTxn": _end,
    "WriteTxnMarkers": _markers,
    "CreateTopics": _create,
    "DeleteTopics": _delete,
    "DeleteRecords": _delete_records,
    "ListOffsets": _list_offsets,
}

_SAID = {
    "ApiVersions": "asked what the broker can do",
    "Metadata": "asked where partitions are",
    "DescribeCluster": "asked for the brokers",
    "DescribeTopicPartitions": "asked where partitions are",
    "FindCoordinator": "asked who coordinates",
    "Heartbeat": "sent a heartbeat",
    "OffsetFetch": "asked for committed offsets",
    "OffsetForLeaderEpoch": "checked whether its offset still holds",
    "SaslHandshake": "asked to log in",
    "SaslAuthenticate": "sent a part of its login",
    "SaslToken": "sent a part of its login",
    "CreatePartitions": "asked for more partitions",
    "DeleteGroups": "asked to delete groups",
    "OffsetDelete": "asked to delete committed offsets",
    "DescribeGroups": "asked for the state of groups",
    "ConsumerGroupDescribe": "asked for the state of groups",
    "ListGroups": "asked which groups there are",
    "DescribeConfigs": "asked for configurations",
    "IncrementalAlterConfigs": "changed configurations",
    "AlterConfigs": "changed configurations",
    "DescribeTransactions": "asked for the state of transactions",
    "ListTransactions": "asked which transactions there are",
    "DescribeProducers": "asked for producers",
    "ShareAcknowledge": "acknowledged records",
    "GetTelemetrySubscriptions": "asked which metrics are wanted",
    "PushTelemetry": "sent metrics",
}
