from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.present.payload import SHOWN_BYTES, form_of, lines_of, one_line

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.parametrize(
    ("data", "form"),
    [
        (b'{"a": 1}', "json"),
        (b' [1, {"b": null}]\n', "json"),
        (b'{"a": 1', "text"),
        (b"{a: 1}", "text"),
        (b'{"a": NaN}', "text"),
        (b"12", "text"),
        (b'"x"', "text"),
        ("größer\tals\n".encode(), "text"),
        (b"a\x1b[2J", "hex"),
        ("a\u202eb".encode(), "hex"),
        (b"\xff", "hex"),
        (b"", "hex"),
        (b"[" * 100_000, "text"),
    ],
)
def test_the_form_is_what_the_bytes_are(data: bytes, form: str) -> None:
    assert form_of(data) == form


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"key-1", '"key-1"'),
        (b"a\nb", '"a\\nb"'),
        (b"\x00\x01", "00 01"),
        (b"", "(empty)"),
        (bytes(40), "00 " * 31 + "00 … (40 bytes)"),
    ],
)
def test_one_line(data: bytes, text: str) -> None:
    assert one_line(data) == text


def test_text_that_is_cut_inside_a_character_stays_text() -> None:
    data = "ä".encode() * 200
    assert one_line(data) == '"' + "ä" * 128 + '"…'
    assert one_line(("x" + "ä" * 200).encode()) == '"x' + "ä" * 127 + '"…'


def test_one_line_of_the_beginning_tells_how_many_bytes_there_are() -> None:
    assert one_line(bytes(40), 1_000) == "00 " * 31 + "00 … (1,000 bytes)"
    assert one_line(b"abc", 1_000) == '"abc"…'


def test_json_gets_a_line_for_each_value_and_keeps_what_was_written() -> None:
    form, lines = lines_of(b'{"a":1.50,"a":[1,{}],"b":[],"c":{"d":"x, {y}"},"e":1E5}')
    assert form == "json"
    assert lines == [
        "{",
        '  "a": 1.50,',
        '  "a": [',
        "    1,",
        "    {}",
        "  ],",
        '  "b": [],',
        '  "c": {',
        '    "d": "x, {y}"',
        "  },",
        '  "e": 1E5',
        "}",
    ]


@given(st.lists(JSON) | st.dictionaries(st.text(), JSON))
def test_only_blank_space_of_json_is_changed(value: Any) -> None:
    text = json.dumps(value)
    form, lines = lines_of(text.encode(), "json")
    assert form == "json"
    assert json.loads("\n".join(lines)) == value
    outside = re.compile(r'("(?:[^"\\]|\\.)*")|\s+')
    assert outside.sub(r"\1", "".join(lines)) == outside.sub(r"\1", text)


@given(st.binary(max_size=200), st.sampled_from(["auto", "json", "text", "hex"]))
def test_any_bytes_have_lines_that_can_be_shown(data: bytes, form: str) -> None:
    used, lines = lines_of(data, form)
    assert used in ("json", "text", "hex")
    assert lines
    assert all(line.isprintable() for line in lines)
    assert one_line(data, None, form).isprintable()


def test_a_form_that_the_bytes_do_not_have_gives_way() -> None:
    assert lines_of(b"plain", "json") == ("text", ["plain"])
    assert lines_of(b"a\xffb\r\nc", "text") == ("text", ["a\\xffb", "c"])


def test_of_very_many_bytes_the_beginning_is_laid_out() -> None:
    form, lines = lines_of(b"x" * SHOWN_BYTES + b"yz")
    assert form == "text"
    assert lines[-1] == "… 2 more bytes"
    deep = b"[" * 900 + b"]" * 900
    _, lines = lines_of(deep)
    assert max(map(len, lines)) <= 2 * 40 + 2
