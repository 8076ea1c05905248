"""Completion: what may be written at the cursor."""

from __future__ import annotations

import pytest

from kdissect.analysis.slow import Slowness
from kdissect.filter.compiled import compile_filter
from kdissect.filter.complete import MOST, complete
from kdissect.filter.fields import own_fields
from kdissect.insight.evidence import EvidenceIndex

HEADER = ("requestApiKey", "requestApiVersion", "correlationId", "clientId")


def offered(text: str, cursor: int | None = None) -> list[str]:
    """The texts that would stand there."""
    return [found.text for found in complete(text, cursor)]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("lat", ["latency", "latency_ns"]),
        ("error and cli", ["client", "client_id", "client.ip", "client.port", "client.id"]),
        ("any lat", ["latency", "latency_ns"]),
        ("error or all client.", ["client.ip", "client.port", "client.id"]),
        ("fetch.request.header.", [f"fetch.request.header.{name}" for name in HEADER]),
        ("fetch.response.header.", ["fetch.response.header.correlationId"]),
        ("fetch.request.hea", ["fetch.request.header."]),
        ("fetch.request.topics[0].parti", ["fetch.request.topics[0].partitions."]),
        ("slo", ["slow"]),
        ("no_r", ["no_response", "no_request"]),
        ("fetch.", ["fetch.request.", "fetch.response."]),
        ("fetch.response.resp", ["fetch.response.responses."]),
        ("fetch.response.responses.partitions.high", ["fetch.response.responses.partitions.highWatermark"]),
        ("highWaterm", ["highWatermark"]),
        ("record.header", ["record.headers", "record.header."]),
        ("api == fet", ["Fetch", "FetchSnapshot"]),
        ("api in {Fetch, prod", ["Produce"]),
        ("error == not_lea", ["NOT_LEADER_OR_FOLLOWER"]),
        ("error in {6 .. unkn", ["UNKNOWN_SERVER_ERROR", "UNKNOWN_TOPIC_OR_PARTITION"]),
        ("missing == con", ['"connection closed"']),
        ("missing == 'con", ["'connection closed'"]),
        ("acks == ", ["all"]),
        ("record.transactional == t", ["true"]),
        ("size > 5", ["5B", "5kB", "5KB", "5MB", "5GB", "5KiB", "5MiB", "5GiB"]),
        ("partition > 5", []),
        ("api ", ["==", "===", "!=", "!==", "in", "contains", "matches", "not in", "and", "or"]),
        ("api not", ["not in"]),
        ("api not ", ["in"]),
        ("api in ", ["{"]),
        ("api in {Fetch ", ["}", ",", ".."]),
        ("(error == 5 ", ["and", "or", ")"]),
        ("error == 5 ", ["and", "or"]),
        ("error == 5 a", ["and"]),
        ("error) and ", []),
        ("a = ", []),
        ("a" * 5_000, []),
    ],
)  # fmt: skip
def test_offers(text: str, first: list[str]) -> None:
    assert offered(text)[: len(first) or None] == first


def test_a_field_can_begin_everywhere_a_question_can() -> None:
    names = [field.name for field in own_fields()]
    for text in ("", "(", "not ", "error or ", "error and (", "!"):
        assert offered(text)[: len(names)] == names


def test_what_follows_the_cursor_stays() -> None:
    (found,) = complete("api == Produ and error", 12)
    assert found[:3] == ("Produce", 7, 12)
    assert found.meaning == "API 0"


def test_completed_filters_compile() -> None:
    for text in (
        "api == F",
        "error == C",
        "missing == n",
        "record.codec == l",
        "latency > 5",
        "fault.kind == g",
    ):
        found = complete(text)
        assert found
        for each in found:
            compile_filter(text[: each.start] + each.text)
    for each in complete(""):
        if not each.text.endswith((".", "(", "not", "any", "all")):
            compile_filter(each.text, slowness=Slowness(), evidence=EvidenceIndex())


def test_so_many_and_no_more() -> None:
    assert len(complete("")) <= MOST
