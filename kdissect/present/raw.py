"""Bytes without a capture ↔ JSON: what a line of ``kdissect bytes`` asks, as an object, and the answer.

Every function takes the object of one line (see the command's help for its fields) and gives the object
of the answer, without the ``id``. A ValueError says what is wrong with the question; nothing in the
bytes raises.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kdissect.embedded.decoded import read_struct
from kdissect.embedded.internal import decode_internal, encode_internal
from kdissect.message import Request, Response, parse_request
from kdissect.model import DecodeError, Direction, Fault, Frame
from kdissect.present.batches import batch_values
from kdissect.present.body import embedded_object, message_object, values_object
from kdissect.present.columns import fault_object
from kdissect.present.options import PLAIN, Options
from kdissect.protocol import apis
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.encode import encode
from kdissect.protocol.json_form import from_json, text_or_base64
from kdissect.protocol.schema import Struct, data_struct, era_data_structs, message_struct
from kdissect.record.compression import CODECS
from kdissect.record.records import Record
from kdissect.record.sets import read_record_set
from kdissect.record.write import write_batch, write_message_set

Object = dict[str, Any]


def decode_message(asked: Object, options: Options = PLAIN) -> Object:
    """``kind``, ``api_key`` (or ``name``), ``version``, ``hex`` → ``body``, ``consumed``, ``faults``."""
    data = hex_field(asked, "hex")
    if _kind(asked) == "data":
        return _decode_data(asked, data, options)
    message = bare_message(asked, data)
    body = message.decoded()
    found = message_object(message, options)
    del found["header"]
    return found | {
        "consumed": len(data) - len(body.remainder),
        "faults": _faults(body.faults),
    }


class _BareRequest(Request):
    __slots__ = ()

    def header_struct(self) -> None:
        return None


class _BareResponse(Response):
    __slots__ = ()

    def header_struct(self) -> None:
        return None


def bare_message(asked: Object, data: bytes) -> Request | Response:
    """A message of which there is only the body."""
    key, version = api_field(asked), _integer(asked, "version")
    if asked["kind"] == "request":
        return _BareRequest(_frame(data), key, version, 0, None, 0, 0)
    return _BareResponse(_frame(data), key, version, 0, 0, 0)


def is_whole_request(asked: Object) -> bool:
    """Whether the question leaves it to the bytes to say what they are: a request, its header first."""
    return asked.get("kind") == "request" and "api" not in asked and "api_key" not in asked


def whole_request(data: bytes) -> Request:
    """A request with its header; its size may stand before it.

    :raises ValueError: the bytes are none.
    """
    if len(data) > 4 and int.from_bytes(data[:4], "big") == len(data) - 4:
        data = data[4:]
    try:
        return parse_request(_frame(data))
    except DecodeError as error:
        raise ValueError(f"this is no request header: {error.reason}") from None


def decode_whole_request(data: bytes, options: Options = PLAIN) -> Object:
    """A request with its header → ``header``, ``body``, ``faults``."""
    message = whole_request(data)
    return message_object(message, options) | {"faults": _faults(message.faults)}


def _frame(data: bytes) -> Frame:
    return Frame(Direction.TO_BROKER, 0, data, len(data), 0, 0, 0, 0, ())


def _decode_data(asked: Object, data: bytes, options: Options) -> Object:
    struct, structs = data_structs(asked)
    found = read_struct(struct.name, struct.version, Cursor(data), (), structs)
    remainder = found.remainder
    body = values_object(found.struct or struct, found.values, remainder, options)
    return {"body": body, "consumed": len(data) - len(remainder), "faults": _faults(found.faults)}


def data_structs(asked: Object) -> tuple[Struct, tuple[Struct, ...]]:
    """The struct of any other message class, and all that its bytes may have.

    :raises ValueError: there is no such class or version.
    """
    name, version = asked.get("name"), _integer(asked, "version")
    if not isinstance(name, str):
        raise ValueError("name: the name of a message class is needed")
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
            struct = message_struct(api_field(asked), _integer(asked, "version"), asked["kind"])
        except LookupError as error:
            raise ValueError(str(error.args[0])) from None
    return {"hex": encode(struct, from_json(struct, asked.get("body"))).hex()}


def decode_records(asked: Object, options: Options = PLAIN) -> Object:
    """``hex`` → ``batches``, ``records``, ``faults``."""
    found = read_record_set(hex_field(asked, "hex"), options.limits)
    records = [_record(record) for record in found.records()]
    return {
        "batches": [batch_values(batch) for batch in found.batches],
        "records": records,
        "faults": _faults(found.faults),
    }


def _record(record: Record) -> Object:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key_hex": _hex(record.key),
        "value_hex": _hex(record.value),
        "headers": [[text_or_base64(name), _hex(value)] for name, value in record.headers],
        "sequence": record.sequence,
    }


def encode_records(asked: Object, _: Options = PLAIN) -> Object:
    """``batches`` and ``records``, as :func:`decode_records` gives them → ``hex``.

    The records go into the batches in order, as many into each as its ``count`` says; sizes, positions
    and checksums are made anew. Without ``batches``, all go into one of magic 2.
    """
    records = [_to_record(each) for each in _list(asked, "records")]
    batches = _list(asked, "batches") if "batches" in asked else [{"count": len(records)}]
    out, at = b"", 0
    for batch in batches:
        count = batch.get("count")
        if not isinstance(count, int) or at + count > len(records):
            raise ValueError(f"batches: a count of {count}, {len(records) - at} records are left")
        out += _write(batch, records[at : at + count])
        at += count
    if at != len(records):
        raise ValueError(f"records: {len(records) - at} more than the batches count")
    return {"hex": out.hex()}


def _write(batch: Object, records: list[Record]) -> bytes:
    codec = batch.get("codec", "none")
    if codec not in CODECS:
        raise ValueError(f"batches: codec: {codec!r} is none of {', '.join(CODECS)}")
    number, magic = CODECS.index(codec), batch.get("magic", 2)
    by_broker = batch.get("timestamp_type") == "LogAppendTime"
    if magic != 2:
        stamp = batch.get("max_timestamp") if by_broker else None
        return write_message_set(records, magic, number, append_timestamp=stamp)
    named = {
        "base_offset": "base_offset",
        "last_offset": "last_offset",
        "base_timestamp": "base_timestamp",
        "max_timestamp": "max_timestamp",
        "producer_id": "producer_id",
        "producer_epoch": "producer_epoch",
        "base_sequence": "base_sequence",
        "partition_leader_epoch": "partition_leader_epoch",
        "is_transactional": "transactional",
        "is_control": "control",
        "delete_horizon_ms": "delete_horizon_ms",
    }
    given = {parameter: batch[name] for name, parameter in named.items() if batch.get(name) is not None}
    return write_batch(records, number, log_append_time=by_broker, **given)


def _to_record(given: Object) -> Record:
    headers = []
    for header in _list(given, "headers") if "headers" in given else ():
        name, value = header
        if isinstance(name, dict):
            raise ValueError("headers: a name that is not UTF-8 cannot be written")
        headers.append((name, None if value is None else bytes.fromhex(value)))
    return Record(
        _integer(given, "offset"),
        given.get("timestamp", -1),
        optional_hex(given, "key_hex"),
        optional_hex(given, "value_hex"),
        tuple(headers),
    )


def decode_internal_record(asked: Object, options: Options = PLAIN) -> Object:
    """``family``, ``key_hex``, ``value_hex``, perhaps ``name`` → ``name``, ``version``, ``key``, ``body``."""
    found = decode_internal(
        str(asked.get("family")),
        optional_hex(asked, "key_hex"),
        optional_hex(asked, "value_hex"),
        asked.get("name"),
    )
    return {
        "name": found.name,
        "version": found.version,
        "key": embedded_object(found.key_part, options),
        "body": embedded_object(found.value_part, options),
        "faults": _faults(found.faults),
    }


def encode_internal_record(asked: Object, _: Options = PLAIN) -> Object:
    """What :func:`decode_internal_record` gives, with the ``family`` → ``key_hex`` and ``value_hex``."""
    key, value = encode_internal(
        str(asked.get("family")), asked.get("name"), asked.get("version"), asked.get("key"), asked.get("body")
    )
    return {"key_hex": _hex(key), "value_hex": _hex(value)}


# -- the fields of a question -----------------------------------------------------------------------


def _kind(asked: Object) -> str:
    kind = asked.get("kind")
    if kind not in ("request", "response", "data"):
        raise ValueError("kind: request, response or data is needed")
    return str(kind)


def api_field(asked: Object) -> int:
    """The key of the API, given as ``api_key`` or by name as ``api``."""
    if isinstance(asked.get("api"), str):
        try:
            return apis.api_key(asked["api"])
        except LookupError as error:
            raise ValueError(str(error.args[0])) from None
    return _integer(asked, "api_key")


def hex_field(asked: Object, name: str) -> bytes:
    """The bytes of a field of hex digits."""
    data = optional_hex(asked, name)
    if data is None:
        raise ValueError(f"{name}: needed")
    return data


def optional_hex(asked: Object, name: str) -> bytes | None:
    """The bytes of a field of hex digits, None where it is null or absent."""
    text = asked.get(name)
    if text is None:
        return None
    try:
        return bytes.fromhex(text)
    except (ValueError, TypeError):
        raise ValueError(f"{name}: hex digits are needed") from None


def _integer(asked: Object, name: str) -> int:
    value = asked.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name}: a whole number is needed")
    return value


def _list(asked: Object, name: str) -> list[Any]:
    value = asked.get(name)
    if not isinstance(value, list):
        raise ValueError(f"{name}: a list is needed")
    return value


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def _faults(found: Iterable[Fault]) -> list[Object]:
    return [fault_object(each) for each in found]
