"""An exchange as one line."""

from __future__ import annotations

import re
from ipaddress import ip_address

import pytest

from kdissect import read
from kdissect.exchange import Exchange
from kdissect.present import text
from kdissect.present.sanitise import width
from kdissect.present.text import Lines, api_text, topics_text
from tests.cli.run import CAPTURES

BASIC = list(read(CAPTURES / "basic-kafka43.pcapng"))


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b", "c"], "a,b,c"),
        (["a", "b", "c", "d", "e"], "a,b,c +2"),
        (["a\x1b[2J\n"], "a\\x1b[2J\\n"),
    ],
)
def test_the_first_topics_are_named_and_the_others_counted(topics: list[str], expected: str) -> None:
    assert topics_text(topics) == expected


def test_colour_is_never_all_that_tells_anything() -> None:
    plain, coloured = Lines(), Lines(colour=True)
    for exchange in BASIC:
        line = coloured.line(exchange)
        assert "\x1b[" in line
        assert re.sub(r"\x1b\[\d*m", "", line).rstrip() == plain.line(exchange)


def test_columns_grow_with_what_comes_and_never_shrink(monkeypatch: pytest.MonkeyPatch) -> None:
    exchange, lines = BASIC[0], Lines()
    before = lines.line(exchange)
    with monkeypatch.context() as patch:
        address = ip_address("2001:db8::1234:5678").packed
        patch.setattr(exchange, "client_endpoint", address + b"\xff\xff")
        wide = lines.line(exchange)
    after = lines.line(exchange)
    assert (
        before.index(api_text(exchange)) < after.index(api_text(exchange)) == wide.index(api_text(exchange))
    )


def test_columns_stay_in_line_whatever_characters_a_client_id_has(monkeypatch: pytest.MonkeyPatch) -> None:
    begins = set()
    for client_id in (None, "a", "é", "客户", "客户客户客户"):
        monkeypatch.setattr(BASIC[0].request, "client_id", client_id)
        for colour in (False, True):
            line = re.sub(r"\x1b\[\d*m", "", Lines(colour=colour).line(BASIC[0]))
            begins.add(width(line[: line.index(api_text(BASIC[0]))]))
    assert len(begins) == 1


def test_a_client_id_cannot_break_out_of_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BASIC[0].request, "client_id", "a\n\x1b[2J\u202e" + "x" * 1_000)
    line = Lines().line(BASIC[0])
    assert line.isprintable()
    assert "a\\n\\x1b[2J\\u202e" in line
    assert len(line) < 300


def test_a_side_that_is_missing_is_told() -> None:
    exchange = Exchange(0, b"\x7f\0\0\x01\x00\x01", b"\x7f\0\0\x01\x23\x84")
    exchange.response = next(each.response for each in BASIC if each.response is not None)
    exchange.missing = "not captured"
    line = Lines().line(exchange)
    assert "  - → " in line
    assert "[no request: not captured]" in line


def test_texts_that_lines_share_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = Lines()
    for number in range(2 * text._MOST_TOLD):
        for client_id in (f"c{number}", f"{number}" + "x" * 30_000):
            monkeypatch.setattr(BASIC[0].request, "client_id", client_id)
            lines.line(BASIC[0])
    assert len(lines._clients) <= text._MOST_TOLD
    assert max(map(len, lines._clients)) <= text._LONGEST_KEPT
