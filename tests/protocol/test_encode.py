from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.protocol.cursor import Cursor, uuid_text
from kdissect.protocol.decode import decode
from kdissect.protocol.encode import encode, size_of, validate, varint_size, write_unsigned_varint
from kdissect.protocol.schema import Struct, data_struct, message_struct
from tests.protocol.structs import EVERYTHING, struct_of

OLD, NEW = struct_of(EVERYTHING, 0), struct_of(EVERYTHING, 5)


def test_absent_fields_have_their_defaults() -> None:
    values = decode(NEW, Cursor(encode(NEW, {})))
    assert (values["int8"], values["string"], values["things"], values["one"]) == (0, "", [], None)
    assert "tagged" not in values


def test_tagged_fields_are_written_in_order_and_only_where_they_say_something() -> None:
    plain = encode(NEW, {})
    assert encode(NEW, {"tagged": -1, "rare": None, "plain": {"id": 0}, "list": None}) == plain
    value = {"list": [], "plain": {"id": 1}, "tagged": 0, "_unknownTaggedFields": [{"tag": 1, "data": b"x"}]}
    assert encode(NEW, value) == plain[:-1] + bytes.fromhex(
        "04 00 04 00000000 01 01 78 03 03 000100 04 01 01"
    )


def test_an_explicit_null_is_written_where_the_default_is_another() -> None:
    plain = encode(NEW, {})
    assert encode(NEW, {"gone": None}) == plain[:-1] + bytes.fromhex("01 06 01 00")
    assert decode(NEW, Cursor(encode(NEW, {"gone": None})))["gone"] is None
    assert encode(NEW, {"one": None}) == plain


def test_a_field_that_the_version_lacks_may_be_there_if_it_says_nothing() -> None:
    fetch = message_struct(1, 13, "request")
    assert encode(fetch, {"topics": [{"topic": "dropped, for it is ignorable"}]})
    with pytest.raises(ValueError, match=r"^replicaState: version 13 cannot express"):
        encode(fetch, {"replicaState": {"replicaId": 1, "replicaEpoch": 1}})
    assert encode(fetch, {"replicaState": {"replicaId": -1, "replicaEpoch": -1}}) == encode(fetch, {})


@pytest.mark.parametrize(
    ("struct", "value", "complaint"),
    [
        (NEW, {"int8": 128}, "int8: 128 is outside int8"),
        (NEW, {"uint16": -1}, "uint16: -1 is outside uint16"),
        (NEW, {"int32": True}, "int32: an integer is needed, not bool"),
        (NEW, {"int64": 1.0}, "int64: an integer is needed, not float"),
        (NEW, {"bool": 1}, "bool: true or false is needed, not int"),
        (NEW, {"float64": "1"}, "float64: a number is needed, not str"),
        (NEW, {"uuid": "short"}, "uuid: 'short' is not a uuid"),
        (NEW, {"uuid": "AAAAAAAAAAAAAAAAAAAAAB"}, "uuid: 'AAAAAAAAAAAAAAAAAAAAAB' is not a uuid"),
        (NEW, {"string": b"x"}, "string: a string is needed, not bytes"),
        (NEW, {"string": "x" * 32768}, "string: a string of 32,768 bytes"),
        (NEW, {"string": "\ud800"}, "string: surrogates not allowed"),
        (NEW, {"bytes": "x"}, "bytes: bytes are needed, not str"),
        (NEW, {"words": None}, "words: null is not allowed"),
        (NEW, {"words": ["a", None]}, r"words\[1\]: a string is needed, not null"),
        (NEW, {"numbers": 1}, "numbers: a list is needed, not int"),
        (NEW, {"numbers": [1, 2**31]}, r"numbers\[1\]: 2147483648 is outside int32"),
        (NEW, {"things": [{"name": "a"}, {"name": None}]}, r"things\[1\]\.name: null is not allowed"),
        (NEW, {"things": [3]}, r"things\[0\]: a dict is needed, not int"),
        (NEW, {"one": {"id": 1, "other": 2}}, r"one\.other: One has no such field"),
        (NEW, {"plain": None}, "plain: null is not allowed"),
        (OLD, {"tagged": 7}, "tagged: version 0 cannot express 7"),
        (OLD, {"_unknownTaggedFields": [{"tag": 1, "data": b""}]}, "_unknownTaggedFields: version 0"),
        (
            NEW,
            {"_unknownTaggedFields": [{"tag": 3, "data": b""}]},
            r"_unknownTaggedFields\[0\]\.tag: 3 is taken",
        ),
        (NEW, {"_unknownTaggedFields": [{"tag": 9}]}, r"_unknownTaggedFields\[0\]: tag and data"),
        (NEW, {"_unknownTaggedFields": {}}, "_unknownTaggedFields: a list is needed"),
        (NEW, [], "Sample: a dict is needed, not list"),
    ],
)
def test_a_value_that_breaks_its_schema_is_refused_with_the_path(
    struct: Struct, value: Any, complaint: str
) -> None:
    for walk in (encode, size_of, validate):
        with pytest.raises(ValueError, match=f"^{complaint}"):
            walk(struct, value)


def test_a_client_id_keeps_its_int16_length_in_header_2() -> None:
    header = {"requestApiKey": 18, "requestApiVersion": 3, "correlationId": 1, "clientId": "ab"}
    assert encode(data_struct("RequestHeader", 2), header).hex() == "001200030000000100026162" + "00"


@given(st.integers(0, 2**32 - 1))
def test_varints_read_back_and_have_the_size_foretold(value: int) -> None:
    out = bytearray()
    write_unsigned_varint(out, value)
    assert Cursor(bytes(out)).read_unsigned_varint() == value
    assert varint_size(value) == len(out)


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


text = st.text(max_size=40)
one = st.fixed_dictionaries({"id": integers(16)})
VALUES = st.fixed_dictionaries(
    {
        "int8": integers(8),
        "int16": integers(16),
        "int32": integers(32),
        "int64": integers(64),
        "uint16": st.integers(0, 65535),
        "uint32": st.integers(0, 2**32 - 1),
        "float64": st.floats(allow_nan=False),
        "bool": st.booleans(),
        "uuid": st.binary(min_size=16, max_size=16).map(uuid_text),
        "string": text | st.none(),
        "bytes": st.binary(max_size=200) | st.none(),
        "records": st.binary(max_size=200) | st.none(),
        "numbers": st.lists(integers(32), max_size=200) | st.none(),
        "words": st.lists(text, max_size=5),
        "things": st.lists(st.fixed_dictionaries({"name": text}), max_size=4) | st.none(),
        "one": one | st.none(),
    }
)
TAGGED = st.fixed_dictionaries(
    {},
    optional={
        "tagged": integers(32).filter(lambda value: value != -1),
        "rare": one,
        "plain": one.filter(lambda value: value["id"] != 0),
        "list": st.lists(integers(8), max_size=9),
        "_unknownTaggedFields": st.just([{"tag": 70, "data": b"\1\2"}]),
    },
)


@given(VALUES, TAGGED)
def test_every_form_of_value_reads_back_as_it_was_written(
    plain: dict[str, Any], tagged: dict[str, Any]
) -> None:
    for struct, value in ((OLD, plain), (NEW, plain | tagged)):
        data = encode(struct, value)
        cursor = Cursor(data)
        assert decode(struct, cursor) == value
        assert (cursor.remaining(), cursor.notes, size_of(struct, value)) == (0, [], len(data))
