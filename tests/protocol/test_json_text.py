"""What grows as text is what json makes of the values."""

from __future__ import annotations

import json
from base64 import b64encode
from importlib import import_module

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kdissect.protocol.cursor import uuid_text
from kdissect.protocol.json_form import dumps
from kdissect.protocol.json_text import JsonText

is_compiled = not (import_module("kdissect.protocol.json_text").__file__ or "").endswith(".py")

INT64 = st.integers(-(2**63), 2**63 - 1)
NOT_QUITE = st.sampled_from(
    (
        *(b"\x80", b"\xc0\x80", b"\xc1\xbf", b"\xc2", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xed\xbf\xbf"),
        *(
            b"\xe2\x82",
            b"\xf0\x8f\xbf\xbf",
            b"\xf4\x90\x80\x80",
            b"\xf5\x80\x80\x80",
            b"\xf0\x9f\x98",
            b"\xff",
        ),
    )
)
"""What UTF-8 does not allow: bytes alone, overlong forms, surrogates, more than U+10FFFF."""
PIECES = st.one_of(st.text().map(str.encode), st.binary(max_size=9), NOT_QUITE)


def written(data: bytes) -> tuple[bytes, bool]:
    out = JsonText()
    is_text = out.string(data, 0, len(data))
    return out.take(), is_text


def expected(data: bytes) -> tuple[bytes, bool]:
    try:
        return json.dumps(data.decode("utf-8")).encode("ascii"), True
    except UnicodeDecodeError:
        return b'{"base64":"%b"}' % b64encode(data), False


@given(st.lists(PIECES).map(b"".join))
@example(bytes(range(0x20)) + b'"\\/\x7f~ \x1f')
@example(b"12345678" * 3 + b'"' + b"1234567\\")
@example("\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff".encode())
def test_a_string_is_that_of_json_and_other_bytes_are_base64(data: bytes) -> None:
    assert written(data) == expected(data)


@pytest.mark.parametrize("letter", ["a", "ü", "€", "😀", '"', "\0"])
@pytest.mark.parametrize("before", range(5))
def test_of_long_texts_no_letter_is_lost_wherever_they_are_cut(letter: str, before: int) -> None:
    data = b"x" * before + letter.encode() * 5_000
    assert written(data) == expected(data)
    assert written(data + b"\xff") == expected(data + b"\xff")


@given(st.binary(max_size=40), st.integers(0, 50), st.integers(0, 50))
def test_a_part_of_bytes_stands_in_each_form(data: bytes, start: int, size: int) -> None:
    start = min(start, len(data))
    size = min(size, len(data) - start)
    part = data[start : start + size]
    out = JsonText()
    out.base64(data, start, size)
    out.put(b" ")
    out.hexadecimal(data, start, size)
    out.put(b" ")
    out.part(data, start, size)
    assert out.take() == b'"%b" "%b" %b' % (b64encode(part), part.hex().encode(), part)


@given(st.binary(min_size=16, max_size=16), st.binary(max_size=3))
def test_a_uuid_has_kafkas_form(data: bytes, before: bytes) -> None:
    out = JsonText()
    out.uuid(before + data, len(before))
    assert out.take() == dumps(uuid_text(data)).encode()


@given(st.lists(INT64))
@example([0, -1, 9, 10, -(2**63), 2**63 - 1])
def test_integers(values: list[int]) -> None:
    out = JsonText()
    for value in values:
        out.number(value)
        out.put(b",")
    assert out.take() == b"".join(b"%d," % value for value in values)


def test_what_was_written_can_be_looked_at_and_taken_back() -> None:
    out = JsonText()
    assert (out.size(), out.take(), out.since(0)) == (0, b"", b"")
    out.put(b"one")
    mark = out.size()
    out.put(b"two")
    assert (mark, out.since(mark), out.since(6)) == (3, b"two", b"")
    out.cut(mark)
    out.put(b"three")
    assert out.take() == b"onethree"
    assert out.size() == 0


@given(st.binary(max_size=9_000), st.data())
def test_what_was_written_last_can_be_moved(text: bytes, draw: st.DataObject) -> None:
    start = draw.draw(st.integers(0, len(text)))
    to = draw.draw(st.integers(0, start))
    out = JsonText()
    out.put(text)
    assert out.is_since(start, text[start:])
    assert out.is_since(start, text[start:-1]) == (start == len(text))
    out.move(start, to)
    out.put(b".")
    assert out.take() == text[:to] + text[start:] + text[to:start] + b"."


def test_a_text_is_as_long_as_it_is() -> None:
    out = JsonText()
    for _ in range(3):  # room is given back, and asked for again
        for _ in range(200):
            out.put(b"0123456789" * 1_000)
        assert out.take() == b"0123456789" * 200_000


@given(st.integers(0, 2**63 - 1), st.integers(0, 20))
@example(0, 6)
@example(10**6 - 1, 6)
def test_integers_of_so_many_digits(value: int, count: int) -> None:
    out = JsonText()
    out.put(b"0.")
    out.digits(value, count)
    assert out.take() == b"0." + str(value).zfill(count).encode()


@given(
    st.text(alphabet=st.characters(codec="utf-8")), st.text(alphabet="a é→", max_size=9), st.integers(0, 40)
)
def test_text_is_filled_up_with_spaces_on_either_side(before: str, text: str, count: int) -> None:
    out = JsonText()
    for first in (True, False):
        out.text(before)
        start = out.size()
        out.text(text)
        out.fill(start, count, first)
        fill = " " * count
        assert out.take().decode() == before + (fill + text if first else text + fill)


@given(st.lists(st.sampled_from(("a", " ", "\n")), max_size=9).map("".join))
def test_spaces_at_the_end_are_taken_back(text: str) -> None:
    out = JsonText()
    out.text(text)
    out.trim()
    assert out.take().decode() == text.rstrip(" ")


def test_text_that_is_not_unicode_is_refused() -> None:
    out = JsonText()
    out.put(b"before")
    with pytest.raises(UnicodeEncodeError):
        out.text("\udcff")
    assert out.take() == b"before"


@pytest.mark.skipif(not is_compiled, reason="only the compiled form reads memory")
def test_nothing_is_put_outside_of_the_text() -> None:
    out = JsonText()
    out.put(b"abc")
    for start in (-1, 4, 2**62):
        with pytest.raises(IndexError):
            out.fill(start, 1, True)
    assert out.take() == b"abc"


@pytest.mark.skipif(not is_compiled, reason="only the compiled form reads memory")
@pytest.mark.parametrize(("start", "size"), [(0, 4), (4, 1), (-1, 2), (1, -1), (2**62, 2**62), (3, 2**62)])
def test_nothing_outside_of_the_bytes_is_read(start: int, size: int) -> None:
    out = JsonText()
    for write in (out.string, out.base64, out.hexadecimal, out.part):
        with pytest.raises(IndexError):
            write(b"abc", start, size)
    with pytest.raises(IndexError):
        out.uuid(bytes(17), 2)
    assert out.take() in (b"", b'"')
