from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.model import DecodeError
from kdissect.protocol.cursor import Cursor, uuid_text
from kdissect.protocol.encode import varint_size, write_unsigned_varint
from kdissect.record.write import write_varint

FIXED: dict[str, tuple[str, Callable[[Cursor], Any]]] = {
    "int8": (">b", Cursor.read_int8),
    "int16": (">h", Cursor.read_int16),
    "int32": (">i", Cursor.read_int32),
    "int64": (">q", Cursor.read_int64),
    "uint16": (">H", Cursor.read_uint16),
    "uint32": (">I", Cursor.read_uint32),
    "float64": (">d", Cursor.read_float64),
}


@pytest.mark.parametrize(("form", "read"), FIXED.values(), ids=FIXED)
def test_numbers_of_fixed_width_are_big_endian_and_move_the_cursor(
    form: str, read: Callable[[Cursor], Any]
) -> None:
    width = struct.calcsize(form)
    for data in (bytes(width), b"\xff" * width, b"\x80" + bytes(width - 1), bytes(range(1, width + 1))):
        cursor = Cursor(b"?" + data + b"?", 1)
        value = read(cursor)
        assert struct.pack(form, value) == data
        assert cursor.position == 1 + width


@pytest.mark.parametrize(("form", "read"), FIXED.values(), ids=FIXED)
def test_a_number_that_breaks_off_moves_nothing(form: str, read: Callable[[Cursor], Any]) -> None:
    width = struct.calcsize(form)
    cursor = Cursor(bytes(20), 3, 3 + width - 1)  # there are more bytes, but behind the end
    with pytest.raises(DecodeError) as error:
        read(cursor)
    assert (error.value.kind, error.value.offset, cursor.position) == ("truncated", 3, 3)


def test_what_is_missing_is_told_in_words() -> None:
    with pytest.raises(DecodeError, match=r"^needs 4 bytes, but 1 is left$"):
        Cursor(b"\0").read_int32()
    with pytest.raises(DecodeError, match=r"^needs 1 byte, but 0 are left$"):
        Cursor(b"").read_int8()
    with pytest.raises(DecodeError, match=r"^the length is -2$") as error:
        Cursor(b"abc").read_bytes(-2)
    assert error.value.kind == "negative-length"


def test_any_byte_but_zero_is_true() -> None:
    assert [Cursor(bytes([byte])).read_boolean() for byte in (0, 1, 2, 255)] == [False, True, True, True]


def test_a_uuid_has_kafkas_own_form() -> None:
    assert Cursor(bytes(16)).read_uuid() == "A" * 22
    assert Cursor(b"?" + b"\xfb" * 16 + b"?", 1).read_uuid() == uuid_text(b"\xfb" * 16) == "-_v7" * 5 + "-w"
    with pytest.raises(DecodeError, match="needs 16 bytes, but 15 are left"):
        Cursor(bytes(15)).read_uuid()


@given(st.integers(0, 2**32 - 1))
def test_an_unsigned_varint_is_read_as_it_is_written(value: int) -> None:
    out = bytearray()
    write_unsigned_varint(out, value)
    cursor = Cursor(bytes(out) + b"\xff")
    assert (cursor.read_unsigned_varint(), cursor.position) == (value, len(out))
    assert len(out) == varint_size(value)


@given(st.integers(-(2**31), 2**31 - 1))
def test_a_varint_is_read_as_it_is_written(value: int) -> None:
    assert Cursor(write_varint(value)).read_varint() == value


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_varlong_is_read_as_it_is_written(value: int) -> None:
    data = write_varint(value)
    cursor = Cursor(data)
    assert (cursor.read_varlong(), cursor.position) == (value, len(data))


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("00", 0),
        ("01", -1),
        ("02", 1),
        ("03", -2),
        ("7e", 63),
        ("7f", -64),
        ("8001", 64),
        ("ffffffff0f", -(2**31)),
    ],
)
def test_zigzag_puts_the_sign_in_the_lowest_bit(data: str, value: int) -> None:
    assert Cursor(bytes.fromhex(data)).read_varint() == value
    assert Cursor(bytes.fromhex(data)).read_varlong() == value


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ("", "truncated"),
        ("80", "truncated"),
        ("ffffffff", "truncated"),
        ("ffffffff10", "varint-too-long"),
        ("8080808080", "varint-too-long"),
        ("808080808000", "varint-too-long"),
    ],
)
def test_a_varint_has_32_bits_and_5_bytes_at_most(data: str, kind: str) -> None:
    cursor = Cursor(bytes.fromhex(data))
    with pytest.raises(DecodeError) as error:
        cursor.read_unsigned_varint()
    assert (error.value.kind, error.value.offset, cursor.position) == (kind, 0, 0)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ("ff" * 9, "truncated"),
        ("ff" * 9 + "02", "varint-too-long"),
        ("80" * 10, "varint-too-long"),
        ("80" * 10 + "00", "varint-too-long"),
    ],
)
def test_a_varlong_has_64_bits_and_10_bytes_at_most(data: str, kind: str) -> None:
    cursor = Cursor(bytes.fromhex(data))
    with pytest.raises(DecodeError) as error:
        cursor.read_unsigned_varlong()
    assert (error.value.kind, cursor.position) == (kind, 0)
    assert Cursor(b"\xff" * 9 + b"\1").read_unsigned_varlong() == 2**64 - 1


@given(st.binary(max_size=12), st.integers(0, 12))
def test_no_varint_reads_beyond_the_end(data: bytes, end: int) -> None:
    end = min(end, len(data))
    for read in (Cursor.read_unsigned_varint, Cursor.read_unsigned_varlong, Cursor.read_varint):
        cursor = Cursor(data, 0, end)
        try:
            read(cursor)
        except DecodeError:
            assert cursor.position == 0
        else:
            assert 0 < cursor.position <= end


@given(st.binary(max_size=20))
def test_text_gives_its_bytes_back_and_a_note_where_it_is_not_utf8(data: bytes) -> None:
    cursor = Cursor(data)
    text = cursor.read_text(len(data))
    assert text.encode("utf-8", "surrogateescape") == data
    broken = text.encode("utf-8", "replace") != data
    assert [kind for kind, _, _ in cursor.notes] == ["not-utf8"] * broken


def test_the_note_names_the_byte_that_is_not_utf8() -> None:
    cursor = Cursor(b"?ab\xffc", 1)
    assert cursor.read_text(4) == "ab\udcffc"
    assert cursor.notes == [("not-utf8", "the string is not UTF-8: invalid start byte", 3)]
