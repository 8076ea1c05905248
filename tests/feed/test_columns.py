"""What the columns of an index tell of filters, against the exchanges themselves; and what is slow among its
rows, against what the command line says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kdissect
from kdissect.analysis.histogram import Histogram
from kdissect.analysis.slow import ENOUGH, HANDFUL, LONGEST_NS, POLL_ENDS_NS, Slowness
from kdissect.exchange import Exchange
from kdissect.feed.columns import NEVER, FilterColumns, limits_of, slowness_of, why_nothing_is_slow
from kdissect.feed.decoder import Decoded
from kdissect.feed.filtering import Shown
from kdissect.feed.index import Index
from kdissect.feed.rows import HAS_TAKEN
from kdissect.filter.compiled import compile_filter
from kdissect.filter.masks import Masks
from kdissect.message import SASL_TOKEN
from kdissect.present.columns import EXCHANGES
from kdissect.present.options import Options
from kdissect.protocol import apis
from tests.cli.run import CAPTURES
from tests.feed.feeds import decoded, index_of, index_with
from tests.kafka import Talk, request
from tests.present.captures import write_capture

TEXTS = ["Metadata", "Produce", SASL_TOKEN, "Fetch"]


def taking(api: int, times: range) -> list[dict[str, int]]:
    return [{"api": api, "taken_ns": ns, "flags": HAS_TAKEN} for ns in times]


def test_slow_is_what_takes_longer_than_nearly_all_of_its_api() -> None:
    few, tokens = taking(2, range(1, HANDFUL)), taking(3, range(1, 2 * ENOUGH))
    index = index_with([*few, *taking(1, range(1, 2 * ENOUGH + 1)), *tokens, {"api": 1}], TEXTS)
    limit = 2 * ENOUGH * 99 // 100
    assert limits_of(index, slowness_of(index)).tolist() == [NEVER, limit, LONGEST_NS, NEVER, NEVER]
    index = index_with(taking(2, range(1, ENOUGH)), TEXTS)
    assert limits_of(index, slowness_of(index)).tolist()[2] == 3 * ENOUGH // 2


def test_a_time_of_the_users_is_for_every_api_that_has_a_key() -> None:
    index = index_with([*taking(1, range(3)), *taking(2, range(3)), *taking(3, range(3))], TEXTS)
    assert limits_of(index, slowness_of(index, 5)).tolist() == [NEVER, 5, 5, NEVER, NEVER]


@pytest.mark.parametrize("api", ["Metadata", "Fetch"])
@given(times=st.lists(st.integers(-(10**6), 10**12), max_size=3 * ENOUGH))
def test_the_limit_is_that_of_the_histogram(api: str, times: list[int]) -> None:
    histogram = Histogram()
    for time in times:
        histogram.add(time)
    code, is_poll = TEXTS.index(api) + 1, api == "Fetch"
    index = index_with(({"api": code, "taken_ns": ns, "flags": HAS_TAKEN} for ns in times), TEXTS)
    found, wanted = slowness_of(index).limit_ns(apis.api_key(api)), LONGEST_NS
    if len(times) >= HANDFUL:
        wanted = min(LONGEST_NS, 3 * max(0, histogram.ceiling(50) or 0)) or (LONGEST_NS if is_poll else 0)
    if len(times) >= ENOUGH:
        wanted = histogram.ceiling(99) or 0
    assert found == (max(wanted, POLL_ENDS_NS) if is_poll else wanted)


def test_where_nothing_is_slow_it_is_said_why() -> None:
    index = index_with(taking(1, range(1, 4)), TEXTS)
    assert "3 times their median" in (why_nothing_is_slow(index, slowness_of(index)) or "")
    assert "longer than 1 ms" in (why_nothing_is_slow(index, slowness_of(index, 1_000_000)) or "")
    assert why_nothing_is_slow(index, slowness_of(index, 2)) is None


@pytest.mark.parametrize("slow_ms", [None, 2])
@pytest.mark.parametrize("name", ["basic-kafka43", "errors", "consumer-group-kip848"])
def test_the_screens_and_the_command_line_call_the_same_slow(name: str, slow_ms: int | None) -> None:
    path = CAPTURES / f"{name}.pcapng"
    told = Slowness(None if slow_ms is None else slow_ms * 1_000_000)
    exchanges = list(kdissect.read(path))
    for exchange in exchanges:
        told.feed(exchange)
    feed = decoded(path)
    index = index_of(feed)
    shown = Shown(index, feed, Options(), slow_ms=slow_ms)
    shown.push("slow")
    wanted = sorted(each.number for each in exchanges if told.is_slow(each))
    assert index.column("number")[shown.places].tolist() == wanted
    assert shown.progress is None
    feed.close()


def test_the_rows_answer_alone() -> None:
    index = index_with(taking(1, range(1, 2 * ENOUGH + 1)), TEXTS)
    slowness = slowness_of(index)
    found = FilterColumns(index, 0, len(index), slowness).masks(compile_filter("slow", slowness=slowness))
    assert found.certain is found.possible
    assert np.flatnonzero(found.certain).tolist() == [2 * ENOUGH - 2, 2 * ENOUGH - 1]


TOLD = (
    "number == 5",
    "number in {2, 4..9}",
    "connection == 1",
    "api == Fetch",
    "api != Fetch",
    'api matches "^Pro"',
    "api_key == 3",
    "api_key > 17",
    "api_version > 8",
    "correlation_id == 3",
    "client.port > 40000 and broker.ip == 127.0.0.1",
    'client contains "4277"',
    'client_id contains "producer" or client_id == "errors"',
    "not client_id",
    "request_packet > 20",
    "response_packet == 14",
    "latency > 2ms",
    "latency < 0",
    "not latency",
    "behind > 1ms",
    "behind == 0",
    "not behind",
    "request_size > 100 and response_size <= 62",
    "response_size",
    "error",
    "error == MESSAGE_TOO_LARGE",
    "error != MESSAGE_TOO_LARGE",
    "missing",
    'missing == "acks=0" or no_response',
    "inferred",
    "fault",
    "truncated",
    "time > 2020-01-01",
    "response_start_ns > 5",
    "request and not response",
)
"""Filters that the columns answer, of captures without hostile names."""
ASKED = (
    "topic",
    'topic contains "errors"',
    "orders",
    "not topic == x",
    "request_start_ns > 5",
    "frame.number == 12",
)
"""Filters that they may leave open."""


def exchanges(feed: Decoded, index: Index) -> list[Exchange]:
    places, lengths = index.column("place").tolist(), index.column("length").tolist()
    return [feed.exchange(*where) for where in zip(places, lengths, strict=True)]


def found(index: Index, text: str) -> Masks:
    return FilterColumns(index, 0, len(index)).masks(compile_filter(text, Options()))


@pytest.mark.parametrize("capture", ["errors.pcapng", "loss.pcapng", "midstream.pcapng", "sasl-scram.pcapng"])
def test_columns_tell_what_the_exchanges_tell(capture: str) -> None:
    feed = decoded(CAPTURES / capture)
    index = index_of(feed)
    each = exchanges(feed, index)
    for text in TOLD + ASKED:
        chosen = compile_filter(text, Options())
        masks, truth = found(index, text), np.array([chosen.matches(exchange) for exchange in each])
        assert not (masks.certain & ~truth).any(), text
        assert not (truth & ~masks.possible).any(), text
        assert text in ASKED or not len(masks.open), text
    feed.close()


def test_names_that_are_not_shown_as_they_are_leave_the_answer_to_the_exchange(tmp_path: Path) -> None:
    names = ("a\tb", "a\\tb", "", "[red]", "a,b", "x" * 400, "plain")
    talk = Talk()
    for number, name in enumerate(names, 1):
        talk.ask(request("Metadata", 1, number, client_id=name, topics=[{"name": name}]))
    feed = decoded(write_capture(tmp_path / "c.pcapng", talk.close()))
    index = index_of(feed)
    each = exchanges(feed, index)
    for text in (
        'client_id == "a\\\\tb"',
        "topic == a",
        'topic == "a,b"',
        "client_id",
        "not client_id == plain",
    ):
        chosen = compile_filter(text, Options())
        masks, truth = found(index, text), np.array([chosen.matches(exchange) for exchange in each])
        assert not (masks.certain & ~truth).any(), text
        assert not (truth & ~masks.possible).any(), text
    assert found(index, "client_id == plain").certain.tolist().count(True) == 1
    assert not len(found(index, "number == 3").open)
    feed.close()


def test_the_index_has_the_filters_own_names() -> None:
    feed = decoded(CAPTURES / "errors.pcapng")
    names = set(FilterColumns(index_of(feed), 0, 52))
    made = {"truncated", "client.port", "broker.port"}
    assert names - made <= {column.name for column in EXCHANGES.columns}
    assert made <= names
    assert len(names) > 20
    feed.close()
