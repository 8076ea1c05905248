"""Events of a partition's folder → what ``kafka-dump-log.sh --deep-iteration --print-data-log`` prints of it.

So that the two can be compared letter by letter. Releases print some things differently: transactions and
leader changes up to 3.9 in a text of their own, which :class:`Dump` is told.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kdissect.embedded.decoded import Embedded
from kdissect.embedded.internal import Internal, decode_internal, family_of_topic, read_blob
from kdissect.logdir.events import Event, FileFault, IndexEntry, LogFile, SegmentBatch, SnapshotEntry
from kdissect.logdir.names import INDEXES
from kdissect.protocol.json_form import dumps
from kdissect.record.batch import Batch
from kdissect.record.records import Record

_TRANSACTION_STATES = ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"]
_CONTROL = {
    "LeaderChangeMessage": "LeaderChange: ",
    "SnapshotHeaderRecord": "SnapshotHeader ",
    "SnapshotFooterRecord": "SnapshotFooter ",
    "KRaftVersionRecord": "KRaftVersion ",
    "VotersRecord": "KRaftVoters ",
}


def kafka_dump(path: Path) -> str:
    """What Kafka's tool printed, without what differs from run to run or the records do not tell."""
    text = path.read_bytes().decode("utf-8")
    text = re.sub(r"^Mismatches in :.*\n(?:  .*\n)+", "", text, flags=re.M)
    # The checksums of messages inside a compressed one.
    text = re.sub(
        r"(?m)^(offset: \d+ position: .* compresscodec: (?!none).*\n)"
        r"((?:(?!offset: \d+ position:|Dumping )[\s\S])*)",
        lambda m: m[1] + re.sub(r" isValid: true crc: \d+}", "", m[2]),
        text,
    )
    # A Scala set has no order.
    text = re.sub(r"(?<=,partitions=\[)[^\]]*", lambda m: ",".join(sorted(m[0].split(","))), text)
    # Some releases print a space after what a producer without batches has.
    text = re.sub(r"(?m)^(producerId: .*) $", r"\1", text)
    return one_replacement(text)


def one_replacement(text: str) -> str:
    """Java and Python put different numbers of U+FFFD for bytes that are not UTF-8."""
    return re.sub("\ufffd+", "\ufffd", text)


def internal_record(event: SegmentBatch, record: Record) -> Internal | None:
    """What a record of a batch says, if it is a control record or of an internal topic."""
    family = "control" if event.batch.is_control else family_of_topic(event.file.topic or "")
    return None if family is None else decode_internal(family, record.key, record.value)


class Dump:
    """Prints the events of one folder."""

    def __init__(self, like: str) -> None:
        self._old_control = "controlType: " in like
        self._old_transactions = "transaction_metadata::" in like

    def text(self, events: Iterable[Event]) -> str:
        return one_replacement("".join(line + "\n" for event in events for line in self._lines(event)))

    def _lines(self, event: Event) -> Iterator[str]:
        if isinstance(event, FileFault):
            raise AssertionError(event)
        if isinstance(event, LogFile):
            yield from _head(event)
        elif isinstance(event, SegmentBatch):
            yield _batch(event)
            for record in event.records():
                yield self._record(event, record)
        elif isinstance(event, IndexEntry):
            yield " ".join(f"{name}: {value}" for name, value in event.values.items())
        elif isinstance(event, SnapshotEntry):
            yield _producer(event.values)

    def _record(self, event: SegmentBatch, record: Record) -> str:
        batch = event.batch
        sizes = [-1 if data is None else len(data) for data in (record.key, record.value)]
        text = (
            f"| offset: {record.offset} {batch.timestamp_type}: {record.timestamp}"
            f" keySize: {sizes[0]} valueSize: {sizes[1]}"
        )
        if batch.magic >= 2:
            text += (
                f" sequence: {record.sequence} headerKeys: [{','.join(name for name, _ in record.headers)}]"
            )
        elif batch.codec == "none":
            text += f" isValid: {str(batch.crc_valid).lower()} crc: {batch.crc}}}"
        internal = internal_record(event, record)
        if internal is None:
            key, value = (_text(data) for data in (record.key, record.value))
        elif batch.is_control:
            return f"{text} {self._control(internal.key, internal.value_part)}"
        elif internal.family == "metadata":
            key, value = None, _metadata(internal.value_part)
        elif internal.family == "transaction" and self._old_transactions:
            assert internal.key
            assert internal.body
            key, value = _old_transaction(internal.key, internal.body)
        else:
            assert internal.key_part
            number = internal.key_part.words[0].value
            key = dumps({"type": str(number), "data": internal.key})
            value = "<DELETE>" if internal.body is None else dumps(_body(internal.version, internal.body))
        if key is not None:
            text += f" key: {key}"
        return text if value is None else f"{text} payload: {value}"

    def _control(self, key: dict[str, Any] | None, value: Embedded | None) -> str:
        assert key
        assert value
        if value.name == "EndTxnMarker":
            kind = ("ABORT", "COMMIT")[key["type"]]
            return f"endTxnMarker: {kind} coordinatorEpoch: {value.values['coordinatorEpoch']}"
        if self._old_control:
            assert value.name == "LeaderChangeMessage"
            return "controlType: LEADER_CHANGE(2)"
        return _CONTROL[value.name] + dumps(value.json())


def _head(file: LogFile) -> Iterator[str]:
    name = Path(file.path).name
    if file.kind in ("segment", "metadata-snapshot", "producer-snapshot", *INDEXES):
        yield f"Dumping {name}"
    if file.kind == "segment":
        yield f"Log starting offset: {file.base_offset}"
    elif file.kind == "metadata-snapshot":
        yield f"Snapshot end offset: {file.base_offset}, epoch: {file.epoch}"
    elif file.kind == "offset-index" and file.size == 0:
        yield f"{name} is empty."


def _batch(event: SegmentBatch) -> str:
    batch: Batch = event.batch
    tail = (
        f"{batch.timestamp_type}: {batch.max_timestamp} size: {batch.size} magic: {batch.magic}"
        f" compresscodec: {batch.codec} crc: {batch.crc} isvalid: {str(batch.crc_valid).lower()}"
    )
    if batch.magic < 2:
        return f"offset: {batch.last_offset} position: {event.position} {tail}"
    assert batch.base_offset is not None
    last_sequence = -1
    if batch.base_sequence >= 0:
        last_sequence = (batch.base_sequence + batch.last_offset - batch.base_offset) & 0x7FFFFFFF
    horizon = ".empty" if batch.delete_horizon_ms is None else f"[{batch.delete_horizon_ms}]"
    return (
        f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.count}"
        f" baseSequence: {batch.base_sequence} lastSequence: {last_sequence} producerId: {batch.producer_id}"
        f" producerEpoch: {batch.producer_epoch} partitionLeaderEpoch: {batch.partition_leader_epoch}"
        f" isTransactional: {str(batch.is_transactional).lower()} isControl: {str(batch.is_control).lower()}"
        f" deleteHorizonMs: OptionalLong{horizon} position: {event.position} {tail}"
    )


def _producer(values: dict[str, Any]) -> str:
    first = values["currentTxnFirstOffset"]
    text = (
        f"producerId: {values['producerId']} producerEpoch: {values['epoch']}"
        f" coordinatorEpoch: {values['coordinatorEpoch']}"
        f" currentTxnFirstOffset: OptionalLong{'.empty' if first < 0 else f'[{first}]'}"
        f" lastTimestamp: {values['timestamp']}"
    )
    if values["lastOffset"] < 0:
        return text
    last = values["lastSequence"]
    return (
        f"{text} firstSequence: {last - values['offsetDelta']} lastSequence: {last}"
        f" lastOffset: {values['lastOffset']} offsetDelta: {values['offsetDelta']}"
        f" timestamp: {values['timestamp']}"
    )


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


def _metadata(part: Embedded | None) -> str:
    assert part
    kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", part.name).upper()
    return dumps({"type": kind, "version": part.version, "data": part.json()})


def _body(version: int | None, body: dict[str, Any]) -> dict[str, Any]:
    """A coordinator's value, in which the tool decodes what the members of a group sent."""
    if body.get("protocolType") == "consumer":
        for member in body["members"]:
            for field in ("subscription", "assignment"):
                blob = read_blob(
                    "consumer-protocol", b64decode(member[field]), f"ConsumerProtocol{field.capitalize()}"
                )
                member[field] = blob.json() if blob.data else member[field]
    return {"version": str(version), "data": body}


def _old_transaction(key: dict[str, Any], body: dict[str, Any]) -> tuple[str, str]:
    partitions = sorted(
        f"{each['topic']}-{number}"
        for each in body["transactionPartitions"] or ()
        for number in each["partitionIds"]
    )
    return (
        f"transaction_metadata::transactionalId={key['transactionalId']}",
        f"producerId:{body['producerId']},producerEpoch:{body['producerEpoch']},"
        f"state={_TRANSACTION_STATES[body['transactionStatus']]},partitions=[{','.join(partitions)}],"
        f"txnLastUpdateTimestamp={body['transactionLastUpdateTimestampMs']},"
        f"txnTimeoutMs={body['transactionTimeoutMs']}",
    )
