"""Record sets → batches and records inside printed messages, in the units of the wire."""

from __future__ import annotations

from typing import Any

from kdissect.embedded.control import control_column
from kdissect.embedded.internal import family_of_topic
from kdissect.present.batch_columns import BATCH_COLUMNS
from kdissect.present.decoded import COLUMNS, add_decoded
from kdissect.present.options import PLAIN, Options
from kdissect.present.plain_records import may_hold_secrets, plain_columns
from kdissect.present.record_secrets import HIDDEN, shown_headers, shown_record
from kdissect.present.record_text import bytes_form, header_objects, write_nested
from kdissect.present.redact import is_secret_record
from kdissect.present.secret_names import contains_secret_name
from kdissect.protocol.json_form import RawText
from kdissect.protocol.json_text import JsonText
from kdissect.record.batch import Batch
from kdissect.record.records import Record
from kdissect.record.sets import read_record_set


def batch_values(batch: Batch) -> dict[str, Any]:
    """The columns of a batch, as Kafka's own iterators give them (-1 for missing values)."""
    return {name: getattr(batch, name) for name, _, _ in BATCH_COLUMNS}


def batch_objects(
    data: bytes, options: Options = PLAIN, is_metadata: bool = False, topic: str = ""
) -> list[dict[str, Any]]:
    """The batches of a record set, each with its records, for JSON.

    :param is_metadata: whether they belong to ``__cluster_metadata``, whose records may contain secrets.
    :param topic: the topic, for decoding keys and values.
    """
    out = []
    for batch in read_record_set(data, options.limits).batches:
        is_text = options.as_text and options.payloads is None
        columns = plain_columns(batch, options.show_secrets, is_metadata) if is_text else None
        if columns is not None:
            text = JsonText()
            write_nested(text, columns, options.bytes_form)
            records: Any = RawText(text.take().decode("ascii"))
        else:
            records = record_objects(batch, options, is_metadata, topic)
        values = batch_values(batch)
        values["records"] = records
        out.append(values)
    return out


def record_objects(
    batch: Batch, options: Options, is_metadata: bool, topic: str = ""
) -> list[dict[str, Any]]:
    """The records of a batch for JSON, in their order."""
    return [record_object(record, batch, options, is_metadata, topic) for record in batch.records()]


def may_hide(data: bytes, options: Options) -> bool:
    """Whether a record set of a user's topic may contain something that must not be shown. If the set is
    damaged, its bytes decide.
    """
    if options.show_secrets:
        return False
    found = read_record_set(data, options.limits)
    if any(may_hold_secrets(batch.columns()) for batch in found.batches):
        return True
    return bool(found.faults) and contains_secret_name(data)


def record_object(
    record: Record, batch: Batch, options: Options, is_metadata: bool, topic: str = ""
) -> dict[str, Any]:
    """A record of a batch for JSON."""
    key, value = record.key, record.value
    seen = shown(record, options, is_metadata)
    out: dict[str, Any] = {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": bytes_form(key, options.bytes_form),
        "value": bytes_form(seen.value, options.bytes_form),
        "headers": header_objects(seen.headers, options.bytes_form),
        "key_size": None if key is None else len(key),
        "value_size": None if value is None else len(value),
        "sequence": record.sequence,
        "control": control_of(record, batch, options),
    }
    is_own = is_metadata or batch.is_control or family_of_topic(topic) is not None
    if options.payloads is not None and not is_own:
        decoded: dict[str, Any] = {"key": key, "value": seen.value, "headers": seen.headers}
        add_decoded(decoded, topic, options.payloads)
        out |= {name: decoded[name] for name in COLUMNS if decoded.get(name) is not None}
    return out


def shown(record: Record, options: Options, is_metadata: bool | None) -> Record:
    """A record with its secrets replaced.

    :param is_metadata: whether it belongs to ``__cluster_metadata``; None if its topic is not known.
    """
    if options.show_secrets:
        return record
    if is_secret_record(record.value, is_metadata):
        return record._replace(value=HIDDEN, headers=shown_headers(record.headers))
    return shown_record(record)


def control_of(record: Record, batch: Batch, options: Options) -> dict[str, Any] | None:
    """The contents of a control record: ``{"type": "COMMIT", …}``; None for other records."""
    return control_column(record.key, record.value, options.limits) if batch.is_control else None
