from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kdissect.present.sanitise import CUT, LONGEST, aligned, cell, pad, sanitise, valid_text, width
from tests.cli.run import run
from tests.kafka import Talk, request, response
from tests.present.captures import write_capture

HOSTILE = [
    "\x1b[2J\x1b]52;c;aGk=\x07",
    "a\u202eb\u2066c",
    "zero\u200bwidth\ufeff",
    "line\nend\r\n\tand\x85more\u2028",
    "\x7f\x9b31m",
    "[/foo][@click=app.bell]",
    "=HYPERLINK(1)",
    "tag\U000e0041",
]
"""Names that would do something to whoever looks at them."""

names = st.text(st.characters(codec="utf-8"), max_size=60)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders", "orders"),
        ("größe-日本", "größe-日本"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x9b", "\\x9b"),
        ("\u202e", "\\u202e"),
        ("\u200b", "\\u200b"),
        ("\u2028", "\\u2028"),
        ("\ufe0f", "\\ufe0f"),
        ("\U000e0041", "\\U000e0041"),
        ("\udcff", "\\xff"),
    ],
)
def test_what_cannot_be_seen_becomes_visible(text: str, shown: str) -> None:
    assert sanitise(text) == shown


def test_long_text_is_cut_with_a_mark() -> None:
    assert sanitise("x" * LONGEST) == "x" * LONGEST
    assert sanitise("x" * (LONGEST + 1)) == "x" * LONGEST + CUT
    assert len(sanitise("x" * 1000, None)) == 1000


@given(st.text())
@example("\ud800")
def test_nothing_unprintable_is_left(text: str) -> None:
    assert sanitise(text, None).isprintable()
    assert sanitise(sanitise(text, None), None) == sanitise(text, None)


@given(st.text(max_size=20), st.integers(0, 40))
def test_padding_reaches_the_columns_that_were_asked_for(text: str, columns: int) -> None:
    shown = sanitise(text)
    assert width(pad(shown, columns)) == max(columns, width(shown))


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x"])
def test_a_cell_is_never_a_formula(text: str) -> None:
    assert cell(text) == "'" + text


def test_a_cell_holds_no_line_end_and_no_tab() -> None:
    assert cell("a\tb\r\n=c") == "a\\tb\\r\\n=c"


def test_bytes_that_are_not_utf8_stay_visible_in_a_column() -> None:
    assert valid_text(b"a\xffb".decode("utf-8", "surrogateescape")) == "a\\xffb"
    assert valid_text("a\ud800b\udcff") == "a\\ud800b\\xff"


FORMS = ["text", "tree", "ndjson", "csv", "tsv", "records", "records.csv", "connections", "faults"]


AS_KAFKA = ("-d", "tcp.port==19092,kafka")
"""Names such as these are no sign of Kafka: what the connection speaks is not left to be guessed."""


def hostile_capture(path: Path, name: str) -> Path:
    topic = {"errorCode": 3, "name": name, "isInternal": False, "partitions": []}
    broker = {"nodeId": 1, "host": name, "port": 9092, "rack": name}
    talk = (
        Talk()
        .ask(request("Metadata", 1, 1, name, topics=[{"name": name}]))
        .answer(response("Metadata", 1, 1, brokers=[broker], controllerId=1, topics=[topic]))
        .close()
    )
    return write_capture(path, talk)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.one_of(st.sampled_from(HOSTILE), names))
def test_no_name_from_the_wire_reaches_through_to_a_terminal(
    name: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    capture = hostile_capture(tmp_path / "hostile.pcapng", name)
    for form in FORMS:
        ran = run(capsysbinary, "read", capture, "-T", form, "--color", "never", *AS_KAFKA)
        assert ran.code == 0
        assert ran.out or form in ("records", "faults")
        lines = ran.out.decode("utf-8").replace("\t", "") if form == "tsv" else ran.out.decode("utf-8")
        assert lines.replace("\n", "").isprintable(), (form, name)
        assert all(byte >= 0x20 or byte == 0x0A for byte in lines.encode())


@pytest.mark.parametrize("name", HOSTILE)
def test_ndjson_keeps_the_name_exactly(
    name: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    capture = hostile_capture(tmp_path / "hostile.pcapng", name)
    ran = run(capsysbinary, "read", capture, "-T", "ndjson", *AS_KAFKA)
    row = json.loads(ran.out)
    assert ran.out.isascii()
    assert b"\x7f" not in ran.out
    assert (row["client_id"], row["topics"]) == (name, [name])


def test_lines_of_a_table_are_padded_and_end_without_spaces() -> None:
    names, counts, notes = ["a", "long", ""], ["1", "22", "333"], ["x", "", "y "]
    assert aligned([["name"], ["count"], ["note"]], [6, -5, 4], 1, 2) == ["name    count  note"]
    assert aligned([names, counts, notes], [6, -5, 4], 3, 2) == [
        "a           1  x",
        "long       22",
        "          333  y",
    ]


def test_a_single_text_is_that_of_all_lines_and_a_long_one_stays() -> None:
    assert aligned([["same"], ["1", "longer", "3"]], [-6, 3], 3, 1) == [
        "  same 1",
        "  same longer",
        "  same 3",
    ]
    assert aligned([["", ""]], [300], 2, 2) == ["", ""]
    assert aligned([["", "b"], ["c", ""]], [300, -2], 2, 2) == [" " * 303 + "c", "b"]
