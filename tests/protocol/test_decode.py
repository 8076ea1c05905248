from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdissect.faults import KINDS
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import DecodeError, Node
from kdissect.protocol.annotate import annotate
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.decode import decode
from kdissect.protocol.schema import Struct, message_struct
from tests.amount import times
from tests.protocol.official import Vector, leaves, values_of, vectors
from tests.protocol.structs import EVERYTHING, struct_of

RIGID = """data 1 of 9.9
    name    string   0+
    ids     []int32  0+
    one     One      0+  nullable
        id  int8     0+
"""
FLEXIBLE = (
    RIGID.replace("of 9.9", "of 9.9; flexible 0+")
    + """
    level   int32    0+  tag 2
    word    string   0+  nullable, tag 3
    rare    One      0+  nullable, tag 5
"""
)


def read(struct: Struct, text: str) -> tuple[dict[str, Any], Cursor]:
    cursor = Cursor(bytes.fromhex(text))
    return decode(struct, cursor), cursor


def fails(struct: Struct, text: str) -> tuple[DecodeError, dict[str, Any], Cursor]:
    cursor = Cursor(bytes.fromhex(text))
    values: dict[str, Any] = {}
    with pytest.raises(DecodeError) as caught:
        decode(struct, cursor, values)
    return caught.value, values, cursor


def test_compact_and_other_lengths() -> None:
    assert read(struct_of(RIGID), "0002 6869 00000001 00000007 01 05")[0] == {
        "name": "hi",
        "ids": [7],
        "one": {"id": 5},
    }
    # In a flexible version every struct, the inner one too, ends with its tagged fields.
    assert read(struct_of(FLEXIBLE), "03 6869 02 00000007 01 05 00 00")[0] == {
        "name": "hi",
        "ids": [7],
        "one": {"id": 5},
    }


def test_nothing_but_the_struct_is_read() -> None:
    _, cursor = read(struct_of(RIGID), "0000 00000000 ff 77")
    assert cursor.remaining() == 1


def test_a_nullable_struct_is_told_by_an_int8_and_as_a_tagged_field_by_a_varint() -> None:
    values, cursor = read(struct_of(FLEXIBLE), "01 01 ff 01 05 01 00")
    assert (values["one"], values["rare"]) == (None, None)
    values, cursor = read(struct_of(FLEXIBLE), "01 01 ff 01 05 03 01 05 00")
    assert values["rare"] == {"id": 5}
    assert cursor.notes == []
    values, cursor = read(struct_of(FLEXIBLE), "01 01 03 05 00 00")
    assert values["one"] == {"id": 5}
    assert cursor.notes == [("malformed", "announces 3; a struct is either there (1) or null (-1)", 2)]


def test_absent_tagged_fields_are_absent_and_unknown_ones_are_kept() -> None:
    values, cursor = read(struct_of(FLEXIBLE), "01 01 ff 02 02 04 00000009 64 02 beef")
    assert values == {
        "name": "",
        "ids": [],
        "one": None,
        "level": 9,
        "_unknownTaggedFields": [{"tag": 100, "data": b"\xbe\xef"}],
    }
    assert cursor.notes == []


def test_null_where_the_schema_has_none_is_read_past() -> None:
    values, cursor = read(struct_of(RIGID), "ffff ffffffff ff")
    assert values == {"name": None, "ids": None, "one": None}
    assert [(kind, offset) for kind, _, offset in cursor.notes] == [
        ("unexpected-null", 0),
        ("unexpected-null", 2),
    ]


def test_a_length_below_minus_one_is_null_and_noted() -> None:
    struct = struct_of("data 1 of 9.9\n    name  string  0+  nullable\n")
    values, cursor = read(struct, "fffb")
    assert values == {"name": None}
    assert cursor.notes[0][0] == "negative-length"


def test_tags_out_of_order_or_twice_are_noted() -> None:
    values, cursor = read(
        struct_of(FLEXIBLE), "01 01 ff 02 03 02 6f 6b 02 04 00000009".replace(" 6f 6b", " 026f")
    )
    assert (values["word"], values["level"]) == ("o", 9)
    assert [note[0] for note in cursor.notes] == ["tag-order"]
    values, cursor = read(struct_of(FLEXIBLE), "01 01 ff 02 02 04 00000009 02 04 00000008")
    assert values["level"] == 8
    assert [note[0] for note in cursor.notes] == ["tag-order"]


def test_a_tagged_field_ends_at_its_declared_size_whatever_it_holds() -> None:
    # too small for its int32, then too big; the field after it is read all the same
    values, cursor = read(struct_of(FLEXIBLE), "01 01 ff 02 02 02 0009 03 02 0278")
    assert values["word"] == "x"
    assert "level" not in values
    assert [(kind, offset) for kind, _, offset in cursor.notes] == [("truncated", 6)]
    values, cursor = read(struct_of(FLEXIBLE), "01 01 ff 02 02 06 00000009 beef 03 02 0278")
    assert (values["level"], values["word"]) == (9, "x")
    assert [(kind, offset) for kind, _, offset in cursor.notes] == [("remainder", 10)]


def test_bytes_that_are_not_utf8_are_kept_and_noted() -> None:
    values, cursor = read(struct_of(RIGID), "0003 61ff62 00000000 ff")
    assert values["name"].encode("utf-8", "surrogateescape") == b"a\xffb"
    assert [(kind, offset) for kind, _, offset in cursor.notes] == [("not-utf8", 3)]


def test_after_an_error_there_is_what_was_read_and_where_the_failed_field_began() -> None:
    error, values, cursor = fails(struct_of(RIGID), "0002 6869 00000001 00000007 01")
    assert values == {"name": "hi", "ids": [7], "one": {}}
    assert (error.kind, error.offset, cursor.position) == ("truncated", 13, 13)
    error, values, cursor = fails(struct_of(RIGID), "0002 6869 0000")
    assert values == {"name": "hi"}
    assert cursor.position == 4
    error, values, cursor = fails(struct_of(EVERYTHING, 0), "01 0002 00000003 00")
    assert values == {"int8": 1, "int16": 2, "int32": 3}
    assert (error.kind, cursor.position) == ("truncated", 7)


@pytest.mark.parametrize(
    ("text", "kind", "begins"),
    [
        ("0005 6869", "truncated", 0),
        ("0000 7fffffff", "truncated", 2),
        ("0000 00000002 00000001", "truncated", 2),
        ("0000 000f4241" + "00000000" * 10, "truncated", 2),
        ("00", "truncated", 0),
    ],
)
def test_a_count_or_length_that_the_bytes_cannot_hold_is_refused(text: str, kind: str, begins: int) -> None:
    error, _, cursor = fails(struct_of(RIGID), text)
    assert (error.kind, cursor.position) == (kind, begins)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("01 01 ff ffffffff0f", "truncated"),
        ("01 01 ff 01 64 7f 00", "truncated"),
        ("01 ffffffff0f 00", "truncated"),
        ("ffffffffff01", "varint-too-long"),
        ("01 01 ff 01 64", "truncated"),
        ("01 01 ff 01 80 80", "truncated"),
    ],
)
def test_hostile_varints_are_refused(text: str, kind: str) -> None:
    assert fails(struct_of(FLEXIBLE), text)[0].kind == kind


def test_a_million_elements_are_too_many_although_the_bytes_are_there() -> None:
    struct = struct_of("data 1 of 9.9\n    ids  []int8  0+\n")
    with pytest.raises(DecodeError, match="1,000,001 elements"):
        decode(struct, Cursor((1_000_001).to_bytes(4, "big") + bytes(1_000_001)))


def test_more_tagged_fields_than_the_limit_are_refused() -> None:
    data = bytes.fromhex("0101ff") + bytes.fromhex("8120") + bytes(2 * 4097)
    with pytest.raises(DecodeError, match="4,097 tagged fields, but the limit is 4,096"):
        decode(struct_of(FLEXIBLE), Cursor(data))


LISTS = struct_of("""data 1 of 9.9; flexible 1+
    lists      []List   1+
        numbers []int8  1+
    last       int8     1+
""")


def outcomes(data: bytes, limits: Limits) -> tuple[DecodeError | None, dict[str, Any], Node]:
    """What decode gives; annotate must break off where decode does, for the same reason."""
    cursor, drawn = Cursor(data, limits=limits), Cursor(data, limits=limits)
    values: dict[str, Any] = {}
    node = Node("", "", None, 0, 0)
    error = None
    try:
        decode(LISTS, cursor, values)
    except DecodeError as found:
        error = found
        with pytest.raises(DecodeError) as again:
            annotate(LISTS, drawn, node)
        assert vars(again.value) == vars(error)
    else:
        annotate(LISTS, drawn, node)
    assert drawn.position == cursor.position == (len(data) if error is None else error.offset)
    return error, values, node


def test_the_arrays_of_a_message_share_one_limit() -> None:
    data = bytes.fromhex("04030102000203000204000700")  # 3 lists of 2, 1 and 1 numbers
    error, values, _ = outcomes(data, DEFAULTS._replace(message_elements=7))
    assert error is None
    assert values["last"] == 7
    error, values, _ = outcomes(data, DEFAULTS._replace(message_elements=6))
    assert error is not None
    assert (error.kind, error.offset) == ("too-many-elements", 8)
    assert error.reason == "announces 1 element, but 0 are left of the message's limit of 6"
    assert values == {"lists": [{"numbers": [1, 2]}, {"numbers": [3]}, {}]}


def test_tagged_fields_count_in_the_limit_of_the_message() -> None:
    data = bytes.fromhex("01070200000100")
    assert outcomes(data, DEFAULTS._replace(message_elements=2))[0] is None
    error, values, _ = outcomes(data, DEFAULTS._replace(message_elements=1))
    assert error is not None
    assert error.reason == "announces 2 tagged fields, but 1 is left of the message's limit of 1"
    assert values == {"lists": [], "last": 7}
    data = bytes.fromhex("020101000007010000")  # a list with a tagged field, and one behind it
    assert outcomes(data, DEFAULTS._replace(message_elements=3))[0] is None
    error, _, _ = outcomes(data, DEFAULTS._replace(message_elements=2))
    assert error is not None
    assert error.reason == "announces 1 tagged field, but 0 are left of the message's limit of 2"


def test_each_walk_of_a_cursor_has_the_whole_limit() -> None:
    one = struct_of("data 1 of 9.9\n    ids  []int8  0+\n")
    cursor = Cursor(bytes.fromhex("0000000105") * 2, limits=DEFAULTS._replace(message_elements=1))
    assert decode(one, cursor) == decode(one, cursor) == {"ids": [5]}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("000000030102", "announces 3 elements, but 2 bytes are left, and each takes at least 1 byte"),
        ("00000003010203", "announces 3 elements, but the limit is 2"),
    ],
)
def test_a_refused_count_tells_what_cannot_hold_it(data: str, why: str) -> None:
    cursor = Cursor(bytes.fromhex(data), limits=DEFAULTS._replace(elements=2))
    with pytest.raises(DecodeError) as found:
        decode(struct_of("data 1 of 9.9\n    ids  []int8  0+\n"), cursor)
    assert found.value.reason == why


def test_structs_of_two_bytes_cannot_take_all_memory() -> None:
    struct = message_struct(37, 3, "request")
    empty = 900
    assignments = bytes.fromhex("8507") + bytes.fromhex("0100") * empty
    topic = b"\2a" + bytes(4) + assignments + b"\0"
    values: dict[str, Any] = {}
    limits = DEFAULTS._replace(message_elements=2_000)
    with pytest.raises(DecodeError, match="of the message's limit"):
        decode(struct, Cursor(b"\5" + topic * 4 + bytes(6), limits=limits), values)
    elements = [len(each.get("assignments") or ()) for each in values["topics"]]
    assert elements == [empty, empty, 0]


def is_beginning(part: Any, whole: Any) -> bool:
    """Whether a value is what was there when the reading of the whole broke off."""
    if isinstance(part, dict) and isinstance(whole, dict):
        *done, last = part.items() or [(None, None)]
        return all(whole[key] == value for key, value in done) and (
            not part or is_beginning(last[1], whole[last[0]])
        )
    if isinstance(part, list) and isinstance(whole, list):
        return part[:-1] == whole[: max(0, len(part) - 1)] and (
            not part or is_beginning(part[-1], whole[len(part) - 1])
        )
    return bool(part == whole)


def sample(count: int, size: int) -> list[Vector]:
    """Different vectors, the same in every run, none long."""
    small = [vector for vector in vectors() if 2 < len(vector.data) < size]
    return random.Random(1).sample(small, count)


def test_cut_at_any_byte_a_body_gives_its_beginning_and_no_other_error() -> None:
    for vector in sample(250, 300):
        whole = decode(vector.struct, Cursor(vector.data))
        for end in range(len(vector.data)):
            cursor = Cursor(vector.data, 0, end)
            values: dict[str, Any] = {}
            with pytest.raises(DecodeError) as caught:
                decode(vector.struct, cursor, values)
            assert caught.value.kind in KINDS
            assert is_beginning(values, whole), (vector.id, end)
            tree = Node("Sample", "Sample", None, 0, 0)
            again = Cursor(vector.data, 0, end)
            with pytest.raises(DecodeError):
                annotate(vector.struct, again, tree)
            read_to = [leaf.end for leaf in leaves(tree) if leaf.end > leaf.start]
            assert (again.position, (read_to or [0])[-1]) == (cursor.position, cursor.position), (
                vector.id,
                end,
            )


@settings(max_examples=times(400, 1500), deadline=None)
@given(data=st.data())
def test_whatever_the_bytes_decode_and_annotate_agree_and_raise_nothing_else(data: st.DataObject) -> None:
    vector = data.draw(st.sampled_from(sample(400, 600)))
    body = bytearray(vector.data)
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    values: dict[str, Any] = {}
    tree = Node("Sample", "Sample", None, 0, 0)
    one, other = Cursor(bytes(body)), Cursor(bytes(body))
    outcome, same = (
        outcome_of(lambda: decode(vector.struct, one, values)),
        outcome_of(lambda: annotate(vector.struct, other, tree)),
    )
    assert outcome == same
    assert (one.position, one.notes) == (other.position, other.notes)
    assert all(kind in KINDS for kind, _, _ in one.notes)
    assert faults_in(tree) == len(one.notes)
    covered = [leaf for leaf in leaves(tree) if leaf.end > leaf.start]
    assert [leaf.start for leaf in covered] == [0, *(leaf.end for leaf in covered[:-1])][: len(covered)]
    assert (covered[-1].end if covered else 0) == one.position
    if outcome is None and not any("in the tagged field" in message for _, message, _ in one.notes):
        assert repr(values_of(tree) or {}) == repr({key: values[key] for key in (values_of(tree) or {})})


def faults_in(node: Node) -> int:
    return (node.fault is not None) + sum(map(faults_in, node.children))


def outcome_of(walk: Any) -> tuple[str, int, str] | None:
    try:
        walk()
    except DecodeError as error:
        return error.reason, error.offset, error.kind
    return None


def test_a_struct_of_the_real_definitions_reads_real_bytes() -> None:
    values, cursor = read(message_struct(18, 0, "response"), "0000 00000001 0001 0000 000c")
    assert values == {"errorCode": 0, "apiKeys": [{"apiKey": 1, "minVersion": 0, "maxVersion": 12}]}
    assert cursor.remaining() == 0


@pytest.mark.parametrize(
    ("byte", "value", "noted"),
    [
        ("ff", None, []),
        ("01 0007", {"id": 7}, []),
        ("00 0007", {"id": 7}, ["malformed"]),
        ("7f 0007", {"id": 7}, ["malformed"]),
        ("fe", None, ["malformed"]),
    ],
)
def test_a_nullable_struct_is_told_by_minus_one_and_one(byte: str, value: object, noted: list[str]) -> None:
    one = struct_of("data 1 of 9.9\n    one  One  0+  nullable\n        id  int16  0+\n")
    cursor = Cursor(bytes.fromhex(byte))
    assert decode(one, cursor) == {"one": value}
    assert [kind for kind, _, _ in cursor.notes] == noted
