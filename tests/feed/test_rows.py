from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from kdissect import read
from kdissect.analysis.slow import taken_ns
from kdissect.analysis.waits import split
from kdissect.feed.index import Index
from kdissect.feed.rows import HAS_LATENCY, HAS_REQUEST, HAS_RESPONSE, IS_WORK, TextNumbers
from kdissect.present.sanitise import sanitise
from kdissect.present.text import topics_text
from tests.cli.run import CAPTURES
from tests.feed.feeds import decoded, index_of
from tests.kafka import Talk, request
from tests.present.captures import write_capture

CASES = sorted(CAPTURES.glob("*.pcap*"))


def value_at(index: Index, place: int, name: str) -> int:
    return index.value(name, place)


def text_at(index: Index, place: int, name: str) -> str:
    return index.text(name, place)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_row_says_what_the_exchange_says(path: Path) -> None:
    feed = decoded(path)
    index = index_of(feed)
    exchanges = list(read(path))
    assert len(index) == len(exchanges) > 0
    for place, exchange in enumerate(exchanges):
        value, text = partial(value_at, index, place), partial(text_at, index, place)
        assert value("number") == exchange.number
        assert value("connection") == exchange.connection
        assert (text("client"), text("broker")) == (exchange.client, exchange.broker)
        assert text("api") == (exchange.api or "")
        assert value("api_version") == (exchange.api_version or 0)
        assert value("correlation_id") == (exchange.correlation_id or 0)
        assert text("client_id") == sanitise(exchange.client_id or "")
        assert text("error") == (exchange.error or "")
        assert text("missing") == (exchange.missing or "")
        assert value("faults") == len(exchange.faults)
        flags = value("flags")
        assert bool(flags & HAS_REQUEST) == (exchange.request is not None)
        assert bool(flags & HAS_RESPONSE) == (exchange.response is not None)
        assert bool(flags & HAS_LATENCY) == (exchange.latency_ns is not None)
        assert value("latency_ns") == (exchange.latency_ns or 0)
        assert value("behind_ns") == (-1 if exchange.behind_ns is None else exchange.behind_ns)
        work_ns = split(exchange).broker_ns
        assert bool(flags & IS_WORK) == (work_ns is not None)
        assert (
            value("taken_ns")
            == (taken_ns(exchange) or 0)
            == (work_ns if flags & IS_WORK else value("taken_ns"))
        )
        for name, message in (("request_size", exchange.request), ("response_size", exchange.response)):
            assert value(name) == (-1 if message is None else message.frame.size)
    feed.close()


def test_a_text_has_one_number_and_is_handed_over_once() -> None:
    texts = TextNumbers()
    assert [texts.number(each) for each in ("a", None, "b", "a", "")] == [1, 0, 2, 1, 0]
    assert texts.take() == ["a", "b"]
    assert texts.number("c") == 3
    assert texts.take() == ["c"]


def test_texts_are_fit_to_be_shown(tmp_path: Path) -> None:
    talk = Talk().ask(request("ApiVersions", 0, 1, client_id="\x1b[2J[red]\u202e\n")).close()
    feed = decoded(write_capture(tmp_path / "c.pcapng", talk))
    assert "\\x1b[2J[red]\\u202e\\n" in index_of(feed).texts
    feed.close()


def test_of_many_topics_the_first_are_named() -> None:
    assert topics_text([]) == ""
    assert topics_text(["a", "b\x07"]) == "a,b\\x07"
    assert topics_text(list("abcde")) == "a,b,c +2"
