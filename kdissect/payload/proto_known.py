"""Google's own ``.proto`` files that others import, in short form, and how values of their types are
shown."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

_HEAD = 'syntax = "proto3"; package google.protobuf; '

KNOWN = {
    f"google/protobuf/{name}.proto": _HEAD + text
    for name, text in {
        "timestamp": "message Timestamp { int64 seconds = 1; int32 nanos = 2; }",
        "duration": "message Duration { int64 seconds = 1; int32 nanos = 2; }",
        "empty": "message Empty {}",
        "any": "message Any { string type_url = 1; bytes value = 2; }",
        "field_mask": "message FieldMask { repeated string paths = 1; }",
        "struct": "message Struct { map<string, Value> fields = 1; } enum NullValue { NULL_VALUE = 0; } "
        "message Value { oneof kind { NullValue null_value = 1; double number_value = 2; "
        "string string_value = 3; bool bool_value = 4; Struct struct_value = 5; "
        "ListValue list_value = 6; } } "
        "message ListValue { repeated Value values = 1; }",
        "wrappers": " ".join(
            f"message {name}Value {{ {kind} value = 1; }}"
            for name, kind in (
                *(("Double", "double"), ("Float", "float"), ("Int64", "int64"), ("UInt64", "uint64")),
                *(("Int32", "int32"), ("UInt32", "uint32"), ("Bool", "bool"), ("String", "string")),
                ("Bytes", "bytes"),
            )
        ),
        "descriptor": "",
        "source_context": "message SourceContext { string file_name = 1; }",
    }.items()
}
"""The files, by the name that imports use. Only options need types of ``descriptor.proto``."""
KNOWN |= {
    "google/type/date.proto": 'syntax = "proto3"; package google.type; message Date { int32 year = 1; '
    "int32 month = 2; int32 day = 3; }",
    "google/type/timeofday.proto": 'syntax = "proto3"; package google.type; message TimeOfDay { '
    "int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4; }",
    **{
        f"google/type/{name}.proto": 'syntax = "proto3"; package google.type; ' + text
        for name, text in {
            "money": "message Money { string currency_code = 1; int64 units = 2; int32 nanos = 3; }",
            "latlng": "message LatLng { double latitude = 1; double longitude = 2; }",
            "decimal": "message Decimal { string value = 1; }",
            "interval": 'import "google/protobuf/timestamp.proto"; message Interval { '
            "google.protobuf.Timestamp start_time = 1; google.protobuf.Timestamp end_time = 2; }",
            "dayofweek": "enum DayOfWeek { DAY_OF_WEEK_UNSPECIFIED = 0; MONDAY = 1; TUESDAY = 2; "
            "WEDNESDAY = 3; THURSDAY = 4; FRIDAY = 5; SATURDAY = 6; SUNDAY = 7; }",
        }.items()
    },
    "confluent/meta.proto": 'syntax = "proto3"; package confluent;',
    "confluent/type/decimal.proto": 'syntax = "proto3"; package confluent.type; message Decimal { '
    "bytes value = 1; uint32 precision = 2; int32 scale = 3; }",
}


# -- values -----------------------------------------------------------------------------------------

_FIRST = datetime(1, 1, 1, tzinfo=UTC)
_SECONDS = -62_135_596_800, 253_402_300_799
"""The years 1 to 9999, the range of a ``Timestamp``."""
_LONGEST_DURATION = 315_576_000_000
_PATH = re.compile(r"[a-z0-9]+(_[a-z][a-z0-9]*)*(\.[a-z0-9]+(_[a-z][a-z0-9]*)*)*")


def _fraction(nanos: int) -> str:
    """The fraction of a second with three, six or nine digits; empty for 0."""
    if not nanos:
        return ""
    text = f".{nanos:09}"
    return text[:4] if text.endswith("000000") else text[:7] if text.endswith("000") else text


def _timestamp(values: dict[str, Any]) -> Any:
    seconds, nanos = values.get("seconds"), values.get("nanos")
    if not (isinstance(seconds, int) and isinstance(nanos, int)):
        return values  # another type with the same name
    if not (_SECONDS[0] <= seconds <= _SECONDS[1] and 0 <= nanos < 10**9):
        return values
    time = _FIRST + timedelta(seconds=seconds - _SECONDS[0])
    return f"{time.year:04}{time:-%m-%dT%H:%M:%S}{_fraction(nanos)}Z"


def _duration(values: dict[str, Any]) -> Any:
    seconds, nanos = values.get("seconds"), values.get("nanos")
    if not (isinstance(seconds, int) and isinstance(nanos, int)):
        return values
    if abs(seconds) > _LONGEST_DURATION or abs(nanos) >= 10**9 or seconds * nanos < 0:
        return values
    sign = "-" if seconds < 0 or nanos < 0 else ""
    return f"{sign}{abs(seconds)}{_fraction(abs(nanos))}s"


def _field_mask(values: dict[str, Any]) -> Any:
    paths = values.get("paths")
    if not isinstance(paths, list) or not all(
        isinstance(path, str) and _PATH.fullmatch(path) for path in paths
    ):
        return values
    return ",".join(re.sub("_([a-z])", lambda found: found[1].upper(), path) for path in paths)


def _only(name: str) -> Callable[[dict[str, Any]], Any]:
    return lambda values: values.get(name)


_WRAPPERS = ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
SHOWN: dict[str, Callable[[dict[str, Any]], Any]] = {
    **{f"google.protobuf.{name}Value": _only("value") for name in _WRAPPERS},
    "google.protobuf.Struct": _only("fields"),
    "google.protobuf.ListValue": _only("values"),
    "google.protobuf.Value": lambda values: next(
        (None if name == "null_value" else each for name, each in values.items()), None
    ),
    "google.protobuf.Timestamp": _timestamp,
    "google.protobuf.Duration": _duration,
    "google.protobuf.FieldMask": _field_mask,
}
"""How values of Google's types are shown: as in Protobuf's JSON ("ProtoJSON Format"). A value that JSON
cannot express, such as a time before the year 1, stays an object."""
