"""Brokers before 2.8 log their requests as text: what it shows is what kdissect decoded."""

from __future__ import annotations

from collections import defaultdict

import pytest

from kdissect.exchange import Exchange
from tests.acceptance.request_log import PRODUCE, exchange_key
from tests.acceptance.text_log import (
    Line,
    agree,
    completed,
    normal,
    produce_shape,
    scala_text,
    shape,
    shape_of_text,
)
from tests.lab import Case, dissected_case, with_file

CASES = with_file("oracle-text.log.gz")

LINES = {"broker-0.9": 153, "broker-0.10.2-new-clients": 289, "broker-1.1": 270}

NOT_CAPTURED = {"broker-0.9": 3, "broker-0.10.2-new-clients": 3, "broker-1.1": 3}
"""ControlledShutdown requests of the second broker, which was stopped when the capture had ended."""

MAPS = ("LeaderAndIsr", "UpdateMetadata", "StopReplica", "ControlledShutdown")
"""1.1 logs these from the maps that it made of them, so in another order than that of the wire."""


def problem(line: Line, exchange: Exchange) -> str | None:
    """Where a line and an exchange differ."""
    request, response = exchange.request, exchange.response
    assert request is not None
    body = request.body()
    if line.client_id is None:
        text = scala_text(exchange)
        return None if normal(text) == normal(line.request) else f"{text}, logged {line.request}"
    if line.client_id != (request.client_id or ""):
        return f"client id {request.client_id}, logged {line.client_id}"
    if exchange.error == "UNSUPPORTED_VERSION":
        # The broker could not read the body.
        return None if line.request == "{}" else f"{body}, logged {line.request}"
    ordered = exchange.api not in MAPS
    ours = produce_shape(body) if exchange.api_key == PRODUCE else shape(body)
    logged = shape_of_text(line.request)
    if (exchange.api, exchange.api_version) == ("ListOffsets", 0) and line.response is not None:
        ours = [ours[0], ()]  # 1.1 forgets the topics of version 0 when it logs
    if not agree(logged, ours, ordered=ordered):
        return f"request {ours}, logged {logged}"
    if line.response is not None and response is not None:
        ours, logged = shape(response.body()), shape_of_text(line.response)
        if not agree(logged, ours, response.is_cut, ordered):
            return f"response {ours}, logged {logged}"
    return None


@pytest.mark.parametrize("name", CASES)
def test_what_the_broker_logged_is_what_was_on_the_wire(name: str) -> None:
    waiting: defaultdict[object, list[Exchange]] = defaultdict(list)
    for exchange in dissected_case(name).exchanges:
        waiting[exchange_key(exchange)].append(exchange)
    absent, problems, lines = [], [], 0
    for line in completed(Case(name).text_log()):
        lines += 1
        if not waiting[line.key]:
            absent.append(line)
            continue
        exchange = waiting[line.key].pop(0)
        if found := problem(line, exchange):
            problems.append(f"{exchange.api} v{exchange.api_version} {exchange.correlation_id}: {found}")
        assert exchange.response is not None or exchange.missing in ("acks=0", "connection closed")
    assert problems == []
    assert lines == LINES[name]
    assert len(absent) == NOT_CAPTURED[name]
    for exchange in (exchange for rest in waiting.values() for exchange in rest):
        # A request is logged when its response is sent: these were not, or not whole.
        assert exchange.missing == "connection closed" or (exchange.response and exchange.response.is_cut)


def test_every_form_of_the_text_is_compared() -> None:
    forms = {"struct": 0, "scala": 0, "response": 0}
    for name in CASES:
        for line in completed(Case(name).text_log()):
            forms["scala" if line.client_id is None else "struct"] += 1
            forms["response"] += line.response is not None
    assert forms == {"struct": 566, "scala": 146, "response": 270}
