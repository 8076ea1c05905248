"""Google's own ``.proto`` files that others import, in short."""

from __future__ import annotations

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
"""By the name that imports have. Of ``descriptor.proto`` only options need something."""
KNOWN |= {
    "google/type/date.proto": 'syntax = "proto3"; package google.type; message Date { int32 year = 1; '
    "int32 month = 2; int32 day = 3; }",
    "google/type/timeofday.proto": 'syntax = "proto3"; package google.type; message TimeOfDay { '
    "int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4; }",
    "confluent/meta.proto": 'syntax = "proto3"; package confluent;',
    "confluent/type/decimal.proto": 'syntax = "proto3"; package confluent.type; message Decimal { '
    "bytes value = 1; uint32 precision = 2; int32 scale = 3; }",
}
