"""An exchange → the rows of the tables ``records`` and ``batches``.

Rows are used for objects, CSV, the screens and all outputs without a writer of their own. Three writers read
the columns of a batch instead, because rows would take too long there. Measured compiled, for each record:
lines of JSON take 1.7 µs instead of 28 (:mod:`kdissect.present.record_text`). Arrow takes 1.8 instead of 13
(:mod:`kdissect.present.record_columns`), records inside messages 1.6 instead of 7.5. They use rows for
secrets and other exceptions; the tests compare both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeGuard

from kdissect.embedded.decoded import Embedded
from kdissect.embedded.internal import decode_internal, family_of_topic
from kdissect.exchange import Exchange, PartitionKey, RecordSetPlace, base_offset_of
from kdissect.names import METADATA_TOPIC, is_metadata_topic
from kdissect.present.batches import batch_values, control_of, shown
from kdissect.present.body import embedded_object
from kdissect.present.decoded import add_decoded
from kdissect.present.options import PLAIN, Options
from kdissect.present.sanitise import valid_text
from kdissect.protocol.apis import PRODUCE
from kdissect.record.batch import Batch
from kdissect.record.records import Record, wrap64
from kdissect.record.sets import read_record_set
from kdissect.session.briefs import Brief, BriefSet


class Address(NamedTuple):
    """The position of a record in its exchange, counted from 0. Broken records do not count, because they
    have no rows."""

    record_set: int
    batch: int
    """The index in the set."""
    record: int
    """The index in the batch."""


def record_rows(exchange: Exchange, options: Options = PLAIN) -> Iterator[dict[str, Any]]:
    """The records of an exchange in the order of the wire; keys, values and header values are bytes."""
    return (row for _, row in addressed_rows(exchange, options))


def addressed_rows(
    exchange: Exchange, options: Options = PLAIN, only: Address | None = None
) -> Iterator[tuple[Address, dict[str, Any]]]:
    """The rows of an exchange, with their addresses.

    :param only: give this record alone; no other batch is unpacked for it.
    """
    for at, place in enumerate(exchange.record_sets()):
        if only is not None and at != only.record_set:
            continue
        assigned = exchange.assigned_base_offset(place)
        context = place_context(exchange, place)
        for number, batch in enumerate(read_record_set(place.data, options.limits).batches):
            if only is None or number == only.batch:
                about = place.topic, place.topic_id
                rows = batch_record_rows(batch, batch.records(), about, context, assigned, options, only)
                for index, row in rows:
                    yield Address(at, number, index), row
            # The broker numbers the records of a set consecutively, whatever the producer's offsets were.
            if assigned is not None:
                assigned = None if batch.count is None else assigned + batch.count


def batch_record_rows(
    batch: Batch,
    records: Sequence[Record],
    about: tuple[str | None, str | None],
    context: dict[str, Any],
    assigned: int | None,
    options: Options,
    only: Address | None = None,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The records of one batch, each with its index.

    :param records: the records of the batch.
    :param about: the topic and its id, if they are known.
    :param context: the result of :func:`place_context`.
    :param assigned: the broker's offset for the first record.
    """
    for index in range(len(records)):
        if only is not None and index != only.record:
            continue
        yield index, row_in_batch(batch, records, index, about, context, assigned, options)


def row_in_batch(
    batch: Batch,
    records: Sequence[Record],
    index: int,
    about: tuple[str | None, str | None],
    context: dict[str, Any],
    assigned: int | None,
    options: Options,
) -> dict[str, Any]:
    """The row of the record at ``index``; the parameters are those of :func:`batch_record_rows`."""
    row = context | record_row(records[index], batch, options, *about)
    if assigned is not None:
        row["assigned_offset"] = _assigned(assigned, batch, records, index)
    return row


def _assigned(first: int, batch: Batch, records: Sequence[Record], index: int) -> int | None:
    """The broker's offset for a produced record; None if it is unknown.

    The broker numbers records by their positions (``LogValidator``). In magic 2 the offset deltas give the
    positions. In a wrapper of magic 0 or 1 producers may leave all offsets 0. There the index is the
    position, unless a message is broken.

    :param first: the broker's offset for the first record of the batch.
    :param records: the records of the batch that could be read; ``index`` is among them.
    """
    if batch.magic >= 2:
        assert batch.base_offset is not None  # the header has it
        return wrap64(first + records[index].offset - batch.base_offset)
    return wrap64(first + index) if len(records) == batch.count else None


def batch_rows(exchange: Exchange, options: Options = PLAIN) -> Iterator[dict[str, Any]]:
    """The record batches of an exchange, in the order of the wire."""
    for place in exchange.record_sets():
        context = place_context(exchange, place)
        for batch in read_record_set(place.data, options.limits).batches:
            yield context | batch_values(batch)


def place_context(exchange: Exchange, place: RecordSetPlace) -> dict[str, Any]:
    """The values that all records of a record set share with their exchange."""
    message, _, _, topic, topic_id, partition = place
    is_request, about = message is exchange.request, (topic, topic_id, partition)
    return _context(
        exchange.number, exchange.connection, is_request, exchange.api, exchange.api_version, about
    )


def _context(
    number: int,
    connection: int,
    is_request: bool,
    api: str | None,
    version: int | None,
    about: tuple[str | None, str | None, int | None],
) -> dict[str, Any]:
    """The values that all records of a set share.

    :param about: topic, topic id and partition.
    """
    topic, topic_id, partition = about
    return {
        "exchange": number,
        "connection": connection,
        "direction": "produce" if is_request else "fetch",
        "api": None if api in ("Produce", "Fetch") else api,
        "api_version": version,
        "topic": None if topic is None else valid_text(topic),
        "topic_id": topic_id,
        "partition": partition,
    }


def may_have_records(event: object) -> TypeGuard[Exchange]:
    """Whether an event is an exchange, in brief or not, whose messages can contain records."""
    if isinstance(event, Brief):
        brief = event
        return brief.form.request.has_records() or brief.form.response.has_records()
    if isinstance(event, Exchange):
        for each in event.messages:
            if each.may_have_records():
                return True
    return False


RecordSetSource = tuple[bytes, str | None, str | None, int | None, dict[str, Any]]
"""A record set: its bytes, the name of the topic, the topic id, the broker's offset for its first record, and
the result of :func:`place_context`."""


def record_set_sources(source: Exchange | Brief) -> Iterator[RecordSetSource]:
    """The record sets of an exchange that are not empty, with the values that their records share."""
    if not isinstance(source, Brief):
        for place in source.record_sets():
            if not place.data:
                continue
            assigned, context = source.assigned_base_offset(place), place_context(source, place)
            yield place.data, place.topic, place.topic_id, assigned, context
        return
    sets, form = source.record_sets(), source.form
    offsets: dict[PartitionKey, int | None] | None = {}
    if sets and form.key == PRODUCE:
        offsets = source.base_offsets()
    if sets is None or offsets is None:
        yield from record_set_sources(source.exchange())
        return
    for told in sets:
        is_request, start, size, topic, topic_id, partition = told
        assigned = base_offset_of(offsets, topic, topic_id, partition) if is_request else None
        whole = source.request_data if is_request else source.response_data
        assert whole is not None
        yield whole[start : start + size], topic, topic_id, assigned, brief_context(source, told)


def brief_context(brief: Brief, told: BriefSet) -> dict[str, Any]:
    """The values that all records of a record set share with their exchange in brief."""
    form = brief.form
    return _context(brief.number, brief.connection, told[0], form.name, form.version, told[3:])


def add_batch(row: dict[str, Any], batch: Batch) -> None:
    """Add the values that all records of a batch share. Missing values are null."""
    row["timestamp_type"] = batch.timestamp_type
    row["magic"] = batch.magic
    row["codec"] = batch.codec
    row["producer_id"] = _known(batch.producer_id)
    row["producer_epoch"] = _known(batch.producer_epoch)
    row["transactional"] = batch.is_transactional
    row["partition_leader_epoch"] = _known(batch.partition_leader_epoch)
    row["batch_offset"] = batch.base_offset
    row["crc_valid"] = batch.crc_valid


def record_row(
    record: Record, batch: Batch, options: Options, topic: str | None, topic_id: str | None = None
) -> dict[str, Any]:
    """The values of a record and its batch; missing values are null."""
    key, value = record.key, record.value
    is_metadata = is_metadata_topic(topic, topic_id)
    seen = shown(record, options, None if topic is topic_id is None else is_metadata)
    row = {
        "offset": record.offset,
        "assigned_offset": None,
        "timestamp": _known(record.timestamp),
        "key": key,
        "value": seen.value,
        "headers": seen.headers,
        "key_size": None if key is None else len(key),
        "value_size": None if value is None else len(value),
        "sequence": _known(record.sequence),
        "control": control_of(record, batch, options),
    }
    add_batch(row, batch)
    family = family_of_topic(METADATA_TOPIC if is_metadata else topic or "")
    if options.embedded and family is not None and not batch.is_control:
        found = decode_internal(family, key, value, limits=options.limits)
        row["keyDecoded"] = _named(found.key_part, options)
        row["valueDecoded"] = _named(found.value_part, options)
    elif options.payloads is not None and family is None and not batch.is_control:
        add_decoded(row, topic or "", options.payloads)
    return row


def _named(part: Embedded | None, options: Options) -> dict[str, Any] | None:
    """A key or value of an internal topic, with its name."""
    if part is None:
        return None
    return {"name": part.name or None, "version": part.version, "data": embedded_object(part, options)}


def _known(number: int) -> int | None:
    """A number; None for -1, which is Kafka's none."""
    return None if number == -1 else number
