"""Bytes without a capture ↔ JSON: the object of a line of ``kdissect bytes``, and the object of its answer.

Every function takes the object of one line (see the command's help for its fields) and gives the object of
the answer, without the ``id``. A ValueError says what is wrong with the line; no bytes raise an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kdissect.embedded.decoded import Context, read_struct
from kdissect.embedded.faults import embedded_faults
from kdissect.embedded.internal import decode_internal, encode_internal
from kdissect.limits import DEFAULTS, Limits
from kdissect.message import Message, Request, Response, bare_frame, parse_request
from kdissect.model import DecodeError, Fault
from kdissect.present.batches import batch_values, shown
from kdissect.present.body import embedded_object, message_object, values_object
from kdissect.present.columns import fault_object
from kdissect.present.options import PLAIN, Options
from kdissect.present.questions import (
    Object,
    bytes_of,
    flag_field,
    hex_field,
    integer_field,
    list_field,
    objects_field,
    optional_hex,
    optional_integer,
    optional_text,
    refuse_redacted,
    text_field,
)
from kdissect.present.redact import may_hold_secrets
from kdissect.present.secret_names import REDACTED
from kdissect.protocol import apis
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.encode import encode
from kdissect.protocol.json_form import from_json, text_or_base64
from kdissect.protocol.schema import Struct, data_struct, era_data_structs, message_struct
from kdissect.record.batch import Batch
from kdissect.record.compression import CODECS
from kdissect.record.records import Record
from kdissect.record.sets import read_record_set
from kdissect.record.write import write_batch, write_message_set
from kdissect.wording import plural


def decode_message(asked: Object, options: Options = PLAIN) -> Object:
    """``kind``, ``api_key`` (or ``name``), ``version``, ``hex`` → ``body``, ``consumed``, ``faults``."""
    data = hex_field(asked, "hex")
    if _kind(asked) == "data":
        return _decode_data(asked, data, options)
    message = bare_message(asked, data, options.limits)
    body = message.decoded()
    found = message_object(message, options)
    del found["header"]
    return found | {
        "consumed": len(data) - len(body.remainder),
        "faults": _faults([*body.faults, *inner_faults(message, options)]),
    }


def inner_faults(message: Message, options: Options) -> Iterator[Fault]:
    """The faults of the bytes inside a message, if the user wants these decoded."""
    body = message.decoded()
    if options.embedded and body.struct is not None:
        yield from embedded_faults(body.struct.name, body.values, Context(limits=options.limits))


def bare_message(asked: Object, data: bytes, limits: Limits = DEFAULTS) -> Request | Response:
    """A message of which only the body is given."""
    key, version, frame = api_field(asked), integer_field(asked, "version"), bare_frame(data)
    if asked["kind"] == "request":
        return Request(frame, key, version, 0, None, header_version=None, body_start=0, limits=limits)
    return Response(frame, key, version, 0, header_version=None, body_start=0, limits=limits)


def is_whole_request(asked: Object) -> bool:
    """Whether the line gives no API, so that the bytes are a whole request with its header."""
    return asked.get("kind") == "request" and "api" not in asked and "api_key" not in asked


def whole_request(data: bytes, limits: Limits = DEFAULTS) -> Request:
    """A request with its header; its size may come before it.

    :raises ValueError: the bytes are not a request.
    """
    if len(data) > 4 and int.from_bytes(data[:4], "big") == len(data) - 4:
        data = data[4:]
    try:
        return parse_request(bare_frame(data), limits)
    except DecodeError as error:
        raise ValueError(f"this is not a request header: {error.reason}") from None


def decode_whole_request(data: bytes, options: Options = PLAIN) -> Object:
    """A request with its header → ``header``, ``body``, ``faults``."""
    message = whole_request(data, options.limits)
    faults = _faults([*message.faults, *inner_faults(message, options)])
    return message_object(message, options) | {"faults": faults}


def _decode_data(asked: Object, data: bytes, options: Options) -> Object:
    struct, structs = data_structs(asked)
    found = read_struct(struct.name, struct.version, Cursor(data, limits=options.limits), (), structs)
    remainder = found.remainder
    body = values_object(found.struct or struct, found.values, remainder, options)
    return {"body": body, "consumed": len(data) - len(remainder), "faults": _faults(found.faults)}


def data_structs(asked: Object) -> tuple[Struct, tuple[Struct, ...]]:
    """The struct of any other message class, and all structs that its bytes may have.

    :raises ValueError: there is no such class or version.
    """
    name = text_field(asked, "name", "the name of a message class")
    version = integer_field(asked, "version")
    try:
        struct = data_struct(name, version)
        return struct, (struct, *era_data_structs(name, version))
    except LookupError as error:
        raise ValueError(str(error.args[0])) from None


def encode_message(asked: Object, _: Options = PLAIN) -> Object:
    """``kind``, ``api_key`` (or ``name``), ``version``, ``body`` → ``hex``."""
    if _kind(asked) == "data":
        struct = data_structs(asked)[0]
    else:
        try:
            struct = message_struct(api_field(asked), integer_field(asked, "version"), asked["kind"])
        except LookupError as error:
            raise ValueError(str(error.args[0])) from None
    if may_hold_secrets(struct.name):
        refuse_redacted(asked.get("body"), "body")
    return {"hex": encode(struct, from_json(struct, asked.get("body"))).hex()}


def decode_records(asked: Object, options: Options = PLAIN) -> Object:
    """``hex`` → ``batches``, ``records``, ``faults``."""
    found = read_record_set(hex_field(asked, "hex"), options.limits)
    records = [each for batch in found.batches for each in _records(batch, options)]
    return {
        "batches": [batch_values(batch) for batch in found.batches],
        "records": records,
        "faults": _faults(found.faults),
    }


def _records(batch: Batch, options: Options) -> list[Object]:
    """The records of a batch. In magic 2, LogAppendTime hides the timestamps of records, which are needed to
    make the same bytes again. So they are given as ``stored_timestamp``."""
    records = [_record(record, options) for record in batch.records()]
    if batch.magic == 2 and batch.timestamp_type == "LogAppendTime":
        for record, timestamp in zip(records, batch.stored_timestamps(), strict=True):
            record["stored_timestamp"] = timestamp
    return records


def _record(record: Record, options: Options) -> Object:
    seen = shown(record, options, None)
    # Changed bytes are not those of the record any more, so no place is given.
    hidden = seen.value is not record.value
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key_hex": _hex(record.key),
        "value_hex": REDACTED if hidden else _hex(record.value),
        "headers": [
            [text_or_base64(name), _hex(value) if value is given else REDACTED]
            for (name, value), (_, given) in zip(seen.headers, record.headers, strict=True)
        ],
        "sequence": record.sequence,
    }


def encode_records(asked: Object, _: Options = PLAIN) -> Object:
    """``batches`` and ``records``, as :func:`decode_records` gives them → ``hex``.

    The records go into the batches in order, as many into each as its ``count`` says. Sizes, positions and
    checksums are computed again. Without ``batches``, all records go into one batch of magic 2.
    """
    records = [_to_record(each, f"records[{at}].") for at, each in enumerate(objects_field(asked, "records"))]
    batches = objects_field(asked, "batches") if "batches" in asked else [{"count": len(records)}]
    out, done = b"", 0
    for at, batch in enumerate(batches):
        path = f"batches[{at}]."
        count = integer_field(batch, "count", path)
        if not 0 <= count <= len(records) - done:
            left = plural(len(records) - done, "record is", "records are")
            raise ValueError(f"{path}count: {count}, and {left} left")
        out += _write(batch, records[done : done + count], path)
        done += count
    if done != len(records):
        raise ValueError(f"records: {len(records) - done} more than the batches announce")
    return {"hex": out.hex()}


_NUMBERS = (
    *("base_offset", "last_offset", "base_timestamp", "max_timestamp", "producer_id", "producer_epoch"),
    *("base_sequence", "partition_leader_epoch", "delete_horizon_ms"),
)
"""The columns of a batch that :func:`write_batch` has under the same names."""


def _write(batch: Object, records: list[Record], path: str) -> bytes:
    codec = batch.get("codec", "none")
    if codec not in CODECS:
        raise ValueError(f"{path}codec: {codec!r} is not one of {', '.join(CODECS)}")
    number = CODECS.index(codec)
    magic = optional_integer(batch, "magic", path)
    by_broker = batch.get("timestamp_type") == "LogAppendTime"
    given = {name: value for name in _NUMBERS if (value := optional_integer(batch, name, path)) is not None}
    transactional = flag_field(batch, "is_transactional", path)
    control = flag_field(batch, "is_control", path)
    try:
        if magic not in (2, None):
            stamp = given.get("max_timestamp") if by_broker else None
            return write_message_set(records, magic, number, append_timestamp=stamp)
        return write_batch(
            records,
            number,
            log_append_time=by_broker,
            transactional=transactional,
            control=control,
            **given,
        )
    except ValueError as error:
        raise ValueError(f"{path.rstrip('.')}: {error}") from None


def _to_record(given: Object, path: str) -> Record:
    headers = []
    for at, header in enumerate(list_field(given, "headers", path) if "headers" in given else ()):
        where = f"{path}headers[{at}]"
        if not isinstance(header, list) or len(header) != 2:
            raise ValueError(f"{where}: a list of name and value is needed")
        name, value = header
        if isinstance(name, dict):
            raise ValueError(f"{where}: a name that is not UTF-8 cannot be written")
        if not isinstance(name, str):
            raise ValueError(f"{where}: the name must be text")
        headers.append((name, bytes_of(value, where)))
    timestamp = optional_integer(given, "stored_timestamp", path)
    if timestamp is None:
        timestamp = optional_integer(given, "timestamp", path)
    return Record(
        integer_field(given, "offset", path),
        -1 if timestamp is None else timestamp,
        optional_hex(given, "key_hex", path),
        optional_hex(given, "value_hex", path),
        tuple(headers),
    )


def decode_internal_record(asked: Object, options: Options = PLAIN) -> Object:
    """``family``, ``key_hex``, ``value_hex``, perhaps ``name`` → ``name``, ``version``, ``key``, ``body``."""
    found = decode_internal(
        text_field(asked, "family"),
        optional_hex(asked, "key_hex"),
        optional_hex(asked, "value_hex"),
        optional_text(asked, "name"),
        options.limits,
    )
    return {
        "name": found.name,
        "version": found.version,
        "key": embedded_object(found.key_part, options),
        "body": embedded_object(found.value_part, options),
        "faults": _faults(found.faults),
    }


def encode_internal_record(asked: Object, _: Options = PLAIN) -> Object:
    """The result of :func:`decode_internal_record`, with the ``family`` → ``key_hex`` and ``value_hex``."""
    if may_hold_secrets(asked.get("name") or ""):
        refuse_redacted(asked.get("body"), "body")
    key, value = encode_internal(
        text_field(asked, "family"),
        optional_text(asked, "name"),
        optional_integer(asked, "version"),
        asked.get("key"),
        asked.get("body"),
    )
    return {"key_hex": _hex(key), "value_hex": _hex(value)}


def _kind(asked: Object) -> str:
    kind = asked.get("kind")
    if kind not in ("request", "response", "data"):
        raise ValueError("kind: request, response or data is needed")
    return str(kind)


def api_field(asked: Object) -> int:
    """The key of the API, given as ``api_key`` or by name as ``api``."""
    name = optional_text(asked, "api")
    if name is None:
        return integer_field(asked, "api_key")
    try:
        return apis.api_key(name)
    except LookupError as error:
        raise ValueError(str(error.args[0])) from None


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def _faults(found: Iterable[Fault]) -> list[Object]:
    """Faults of bytes without a packet."""
    return [fault_object(each._replace(packet=None)) for each in found]
