"""Every request that a broker logged is on the wire as the broker says: header, request and response."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from kdissect.exchange import Exchange
from kdissect.message import Request, bare_frame, parse_request, parse_response
from tests.acceptance.request_log import (
    ENVELOPE,
    PRODUCE,
    Entry,
    address,
    body_json,
    difference,
    entry,
    exchange_key,
    header_json,
)
from tests.lab import TLS_CASES, Case, dissected_case, with_file

LOGGED_CASES = sorted({*with_file("oracle.ndjson.gz")} - {*TLS_CASES, *with_file("oracle-text.log.gz")})

NOT_CAPTURED = {
    "cluster43-combined": 6,  # the capture ended before them
    "java43-basic-loss": 3,  # their packets were taken out
    "midstream": 1,  # it was sent before the capture began
    "sweep-39-controller": 1,  # the same
}
"""Logged requests that are not in the capture."""

NOT_ANSWERED = {
    "cluster43-combined": {"capture ended": 2},
    "java09-on-39": {"connection closed": 1},
    "zk39-ibp28": {"connection closed": 1},
}
"""Requests whose response was logged but did not get out before the connection or the capture ended."""

CUT = {"cluster43-combined": 1, "java09-on-39": 1, "zk39-ibp28": 3}
"""Responses of which only a part got out."""

REFUSED_BEFORE_THE_LOG = {"wrong-requests": {"3": 2, "4711": 1}}
"""Requests by API key that a broker closes the connection upon (in place of ``case.json``'s count)."""


def pairs(
    name: str, exchanges: list[Exchange] | None = None
) -> tuple[list[tuple[Entry, Exchange]], list[Entry], list[Exchange]]:
    """The entries of a case's log with their exchanges; entries and exchanges that have none."""
    waiting: defaultdict[object, list[Exchange]] = defaultdict(list)
    for exchange in dissected_case(name).exchanges if exchanges is None else exchanges:
        waiting[exchange_key(exchange)].append(exchange)
    found, absent = [], []
    for logged in map(entry, Case(name).log()):
        if logged.forwarded:
            continue
        if waiting[logged.key]:
            found.append((logged, waiting[logged.key].pop(0)))
        else:
            absent.append(logged)
    return found, absent, [exchange for rest in waiting.values() for exchange in rest]


def request_difference(logged: Entry, request: Request) -> str | None:
    """Where a request and the log differ. A null client id is logged as an empty one."""
    header = header_json(request)
    if not header.get("clientId", True):
        header["clientId"] = logged.header["clientId"] or ""
        assert not header["clientId"], request
    problem = difference(logged.header, header, "header")
    if logged.is_refused:
        return problem
    return problem or difference(logged.request, body_json(request), "request")


@pytest.mark.parametrize("name", LOGGED_CASES)
def test_what_the_broker_logged_is_what_was_on_the_wire(name: str) -> None:
    found, absent, _ = pairs(name)
    problems = []
    unanswered: Counter[str | None] = Counter()
    cut = 0
    for logged, exchange in found:
        request, response = exchange.request, exchange.response
        assert isinstance(request, Request)
        problem = request_difference(logged, request)
        wants_no_answer = exchange.api_key == PRODUCE and request.body()["acks"] == 0
        assert (exchange.missing == "acks=0") == wants_no_answer
        if response is not None:
            cut += response.is_cut
            got = body_json(response)
            problem = problem or difference(logged.response, got, "response", response.is_cut)
        elif not wants_no_answer:
            unanswered[exchange.missing] += 1
        if problem:
            problems.append(f"{exchange.api} v{exchange.api_version} {exchange.correlation_id} {problem}")
    assert problems == []
    assert len(absent) == NOT_CAPTURED.get(name, 0)
    assert unanswered == NOT_ANSWERED.get(name, {})
    assert cut == CUT.get(name, 0)


@pytest.mark.parametrize("name", LOGGED_CASES)
def test_requests_that_were_not_logged_are_those_that_the_case_names(name: str) -> None:
    _, _, beyond = pairs(name)
    requests = Counter(str(exchange.api_key) for exchange in beyond if exchange.request is not None)
    named = Case(name).info()["stats"]["not_in_oracle"]
    assert requests == REFUSED_BEFORE_THE_LOG.get(name, named)


@pytest.mark.parametrize("name", [n for n in LOGGED_CASES if any(e["isForwarded"] for e in Case(n).log())])
def test_what_the_broker_logged_as_forwarded_is_inside_an_envelope(name: str) -> None:
    inside: dict[object, tuple[Request, bytes]] = {}
    for exchange in dissected_case(name).exchanges:
        if exchange.api_key == ENVELOPE and exchange.request is not None and exchange.response is not None:
            request = parse_request(bare_frame(exchange.request.body()["requestData"]))
            api = request.api_key, request.api_version, request.correlation_id
            answer = exchange.response.body()["responseData"]
            inside[(address(exchange.client), address(exchange.broker), *api)] = request, answer
    forwarded = [logged for logged in map(entry, Case(name).log()) if logged.forwarded]
    assert len(forwarded) == len(inside) > 0
    for logged in forwarded:
        request, answer = inside[logged.key]
        assert request_difference(logged, request) is None
        response = parse_response(bare_frame(answer), request.api_key, request.api_version)
        assert response.correlation_id == request.correlation_id
        assert difference(logged.response, body_json(response), "response") is None
        assert not request.faults
        assert not response.faults


@pytest.mark.parametrize("name", TLS_CASES)
def test_encrypted_connections_are_named_and_nothing_is_made_up(name: str) -> None:
    dissected = dissected_case(name)
    assert dissected.exchanges == []
    assert dissected.faults == []
    assert {connection.protocol for connection in dissected.connections} == {"tls"}
    for connection in dissected.connections:
        assert connection.skipped_bytes == connection.bytes_to_broker + connection.bytes_from_broker > 0


def test_requests_that_a_broker_refuses_are_shown_and_cost_no_other_connection() -> None:
    """An unknown version (99) with an older header, an unknown API, a body that breaks off."""
    exchanges = [e for e in dissected_case("wrong-requests").exchanges if e.missing == "connection closed"]
    assert [(e.api, e.api_version, e.correlation_id, e.client_id) for e in exchanges] == [
        ("Metadata", 99, 3, "wrong"),
        ("Unknown(4711)", 0, 4, "wrong"),
        ("Metadata", 1, 5, "wrong"),
    ]
    assert [[fault.kind for fault in e.faults] for e in exchanges] == [
        ["unknown-api"],
        ["unknown-api"],
        ["truncated"],
    ]
