"""What the columns of an index tell of filters, against the exchanges themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kdissect.exchange import Exchange
from kdissect.filter.compiled import compile_filter
from kdissect.filter.masks import Masks
from kdissect.present.columns import EXCHANGES
from kdissect.present.options import Options
from kdissect.tui.feed.columns import FilterColumns
from kdissect.tui.feed.decoder import Decoded
from kdissect.tui.feed.index import Index
from tests.cli.run import CAPTURES
from tests.kafka import Talk, request
from tests.present.captures import write_capture
from tests.tui.feeds import decoded, index_of

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
