"""Whatever bytes messages hold, statistics count, give rows that every format can hold, and still merge."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdissect.exchange import Exchange
from kdissect.message import Request, Response, parse_request, parse_response
from kdissect.model import DecodeError, Frame
from kdissect.present.form import Clock
from kdissect.present.options import PLAIN
from kdissect.present.statistics import STATISTICS
from kdissect.present.statistics_text import table_lines
from kdissect.present.writers import table_writer
from tests.amount import times
from tests.analysis.folds import SPEC, events_of, fold

CASES = ("java43-groups", "java43-kip848", "java43-share-2", "streams-protocol-2", "zk39-ibp28", "sweep-44")
APIS = (
    *("Produce", "Fetch", "ShareFetch", "JoinGroup", "SyncGroup", "LeaveGroup", "OffsetCommit"),
    *("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat", "ApiVersions"),
)


def candidates() -> list[Exchange]:
    """Exchanges whose bodies statistics look into, a few of each sort."""
    found: dict[Any, list[Exchange]] = {}
    for case in CASES:
        for event in events_of(case):
            if isinstance(event, Exchange) and event.api in APIS and event.response is not None:
                found.setdefault((case, event.api, event.api_version), []).append(event)
    return [each for some in found.values() for each in some[:4]]


@st.composite
def damaged(draw: st.DrawFn) -> list[Exchange]:
    """Some of them, with bytes of their bodies changed, or cut."""
    out = []
    for number, whole in enumerate(draw(st.lists(st.sampled_from(candidates()), min_size=1, max_size=6)), 1):
        assert isinstance(whole.request, Request)
        assert isinstance(whole.response, Response)
        exchange = Exchange(draw(st.integers(0, 1)), whole.client_endpoint, whole.broker_endpoint)
        exchange.number = number
        try:
            exchange.request = parse_request(damage(draw, whole.request.frame, whole.request.body_start))
            frame = damage(draw, whole.response.frame, whole.response.body_start)
            if draw(st.booleans()):
                exchange.response = parse_response(
                    frame, exchange.request.api_key, exchange.request.api_version
                )
        except DecodeError:
            continue
        out.append(exchange)
    return out


def damage(draw: st.DrawFn, frame: Frame, start: int) -> Frame:
    payload = bytearray(frame.payload)
    for _ in range(draw(st.integers(0, 3))):
        if start < len(payload):
            at = draw(st.integers(start, len(payload) - 1))
            some = draw(
                st.sampled_from(
                    [b"\x00", b"\xff", b"\x7f", b"\x80", b"\x7f" + b"\xff" * 7, b"\x80" + bytes(7)]
                )
            )
            payload[at : at + len(some)] = some
    if draw(st.integers(0, 4)) == 0:
        del payload[draw(st.integers(start, max(start, len(payload)))) :]
    shift = draw(st.sampled_from([0, 0, 10**9, -(10**12)]))
    return frame._replace(
        payload=bytes(payload),
        size=len(payload),
        first_ns=frame.first_ns + shift,
        last_ns=frame.last_ns + shift,
    )


@pytest.mark.parametrize("text", SPEC)
@settings(deadline=None, max_examples=times(10, 60))
@given(exchanges=damaged(), at=st.integers(0, 6))
def test_damaged_messages_are_counted(text: str, exchanges: list[Exchange], at: int) -> None:
    whole = fold(text, exchanges)
    rows = whole.result()
    table = STATISTICS[text.partition(",")[0]]
    forms = ["ndjson", "csv"]
    if pytest.importorskip("pyarrow"):
        forms.append("arrow")
    for form in forms:
        writer = table_writer(form, table, BytesIO())
        for row in rows:
            writer.write(row)
        writer.close()
    assert all("\n" not in line for line in table_lines(table, rows, PLAIN, Clock()))
    part = fold(text, exchanges[:at])
    part.merge(fold(text, exchanges[at:]))
    if not text.startswith("connections"):  # whose depth counts on responses in the order of requests
        assert part.result() == rows
