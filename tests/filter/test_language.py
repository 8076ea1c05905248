"""What the language promises, sentence by sentence, beyond the table of expressions."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.exchange import Exchange
from kdissect.filter import paths
from kdissect.filter.compiled import compile_filter
from kdissect.filter.errors import FilterError
from kdissect.protocol.body import Body, read_body
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.schema import Struct
from tests.amount import each_of
from tests.filter.exchanges import exchanges_of, known
from tests.kafka import Talk, request, response
from tests.tcp.segments import BROKER

ALL = {1, 2, 3, 4, 5, 6}

SHOWN: list[tuple[str, set[int]]] = [
    # headers, and the paths of the NDJSON
    ("fetch.request.header.clientId == etl-7", {2}),
    ("fetch.request.header.client_id == etl-7", {2}),
    ("request.header.clientId == admin", {5, 6}),
    ("request.header.requestApiKey in {0, 12}", {1, 3, 4}),
    ("header.correlationId == 2", {2, 6}),
    ("response.header.correlationId == 2", {2}),
    ("fetch.request.header.clientId", {2}),
    ("fetch.request.body.maxWaitMs == 500", {2}),
    ("produce.request.body.acks == 0", {3}),
    # arrays and slices
    ("topics[0] == Clicks", {2}),
    ("topics[-1] == orders", {1, 3, 6}),
    ("topics[1]", set()),
    ("topics[*] == orders", {1, 3, 6}),
    ("topics[0][0:2] == Cl", {2}),
    ("partition[0] == 0", {2}),
    ("partition[1] == 7", {2}),
    ("partition[-1] == 7", {2}),
    ("partition[1:1] == 7", {2}),
    ("partition[0-1] == 7", {2}),
    ("partition[:1] == 7", set()),
    ("partition[1:] == 7", {2}),
    ("partition[9:] == 7", set()),
    ("partition[-9] == 7", set()),
    ("fetch.request.topics[0].partitions[-1].partition == 7", {2}),
    ("fetch.request.topics[0].partitions[0].partition == 7", set()),
    ("fetch.request.topics[*].partitions[*].partition == 7", {2}),
    ("fetch.request.topics[1].partitions", set()),
    ("fetch.partitions[1].highWatermark == 2000", {2}),
    ("fetch.response.responses.partitions[0].highWatermark === 1000", {2}),
    ("client_id[0:3] == etl", {1, 2, 3}),
    ("client_id[-1] == 7", {1, 2, 3}),
    ("client_id[:4] == etl-", {1, 2, 3}),
    ("client_id[3-4] == -7", {1, 2, 3}),
    ("client_id[5]", set()),
    ('record.key[0:2] == "u-"', {1, 3}),
    ('record.value[0:2] == "\\xff\\xfe"', {1, 3}),
    ("record.value[0:99]", set()),
    ("record.header.traceId[0] == x", {1, 3}),
    ("fetch.request.topics[0].topic[0:2] == Cl", {2}),
    # addresses
    ("client == 10.0.0.7", {1, 2, 3, 4}),
    ("client == 10.0.0.7:40007", {1, 2, 3, 4}),
    ("client == 10.0.0.7:40008", set()),
    ("client != 10.0.0.7", {5, 6}),
    ("client in 10.0.0.0/8", ALL),
    ("client in 10.0.0.8/29", {5, 6}),
    ("client == 10.0.0.7/32", {1, 2, 3, 4}),
    ("client not in 10.0.0.8/29", {1, 2, 3, 4}),
    ("client in {10.0.0.9, 192.168.0.0/16}", {5, 6}),
    ("client in {10.0.0.8 .. 10.0.0.10}", {5, 6}),
    ("client.ip in {10.0.0.8 .. 10.0.0.10}", {5, 6}),
    ("client.ip in 10.0.0.0/29", {1, 2, 3, 4}),
    ("client < 10.0.0.8", {1, 2, 3, 4}),
    ("client <= 10.0.0.7", {1, 2, 3, 4}),
    ("client > 10.0.0.7", {5, 6}),
    ("client >= 10.0.0.9", {5, 6}),
    ("client > 10.0.0.7:40006", ALL),
    ("client == ::1", set()),
    ("client in ::/0", set()),
    ('client contains ".0.7:"', {1, 2, 3, 4}),
    ("client matches ':4000[0-9]$'", {1, 2, 3, 4}),
    # Wireshark's names for both ends
    ("ip.addr == 10.0.0.9", {5, 6}),
    ("ip.addr != 10.0.0.9", {1, 2, 3, 4}),
    ("any ip.addr != 10.0.0.9", ALL),
    ("ip.addr in 10.0.0.8/29", {5, 6}),
    ("tcp.port == 40007", {1, 2, 3, 4}),
    ("tcp.port == 19092 and tcp.port", ALL),
    ("all tcp.port > 20000", set()),
    ("tcp.port === 19092", set()),
    ("tcp.port != 50112", {1, 2, 3, 4}),
    ("tcp.stream == 1 and ip.addr", {5, 6}),
    ("client.ip == ip.addr", ALL),
    ("ip.addr == client.ip and ip.addr == broker", ALL),
    # two fields
    ("request_size > response_size", {1, 4, 5}),
    ("request_size < response_size", {2}),
    ("request_size >= response_size and request_size <= response_size", set()),
    ("request_size == request_size", ALL),
    ("response_size === response_size", {1, 2, 4, 5}),
    ("response_size != response_size", set()),
    ("request_size != response_size", {1, 2, 4, 5}),
    ("latency < throttleTimeMs", {1}),
    ("throttleTimeMs > latency", {1}),
    ("request_time_ns < response_start_ns", {1, 2, 4, 5}),
    ("record.timestamp < request_time_ns", {1, 3}),
    ("record.offset < record.assigned_offset", {1}),
    ("record.assigned_offset == produce.response.baseOffset", {1}),
    ("fetch.response.responses.partitions.highWatermark > fetch.request.maxWaitMs", {2}),
    ("partition == partition[0]", {1, 2, 3}),
    ("partition === partition[0]", {1, 3}),
    ("client != broker", ALL),
    ("client.ip == broker.ip", set()),
    ("client_id == request.header.clientId", {1, 2, 3, 5, 6}),
    ("not client_id == request.header.clientId", {4}),
    ("error == errors", {2, 5}),
    ("topic == fetch.request.topics.topic", {2}),
    # any and all
    ("any partition > 3", {2}),
    ("all partition > 3", set()),
    ("all partition >= 3", {1, 3}),
    ("ALL partition in {0, 7}", {2}),
    ("all partition in {0..6}", {1, 3}),
    ("any partition != 7", {1, 2, 3}),
    ("all partition != 7", {1, 3}),
    ("all partition == 3", {1, 3}),
    ("any partition === 7", {2}),
    ("not all partition == 3", {2, 4, 5, 6}),
    ("all record.key contains u", {1, 3}),
    ("all record.key matches '-1$'", set()),
    ("all topic == orders and any topic == orders", {1, 3, 6}),
    ("all latency < 1s", {1, 2, 4, 5}),
    ("all partition >= partition[0]", {1, 2, 3}),
    ("all partition > partition[0]", set()),
    ("all acks == all", {1}),
    ("acks == ALL", {1}),
    ('"all"', set()),
    # one value, one range or one network needs no braces
    ("api in Fetch", {2}),
    ("partition in 3..6", {1, 3}),
    # flags
    ("duplicate", set()),
    # old names of fields
    ("produce.response.responses.partitions.baseOffset == 100", {1}),
    ("fetch.response.topics.partitions.high_watermark > 1e3", {2}),
    ("fetch.response.topics[0].partitions[1].highWatermark == 2000", {2}),
]


@each_of(lambda: SHOWN, lambda case: case[0])
def test_an_expression_shows(case: tuple[str, set[int]]) -> None:
    text, numbers = case
    found = compile_filter(text)
    assert {exchange.number for exchange in known() if found.matches(exchange)} == numbers
    negated = compile_filter(f"not ({text})")
    assert {exchange.number for exchange in known() if negated.matches(exchange)} == ALL - numbers


WRONG: list[tuple[str, int, str]] = [
    ("topics[0", 6, "the closing bracket is missing"),
    ("topics[0]x == 1", 6, "the closing bracket is missing"),
    ("topics[x] == 1", 6, "[a:n]"),
    ("topics[] == 1", 6, "[a:n]"),
    ("topics[3-1]", 6, "ends before it begins"),
    ("topics[99999999999]", 6, "[a:n]"),
    ("fetch.request.topics[0].partitions[q].partition == 7", 34, "[a:n]"),
    ("latency[0] == 1", 0, "brackets work with arrays"),
    ("client[0] == 1", 0, "brackets work with arrays"),
    ("topics[0][0][0] == x", 0, "brackets work with arrays"),
    ("record.offset[0] == 1", 0, "brackets work with arrays"),
    ("fetch[0].request.maxWaitMs == 1", 0, "brackets work with arrays"),
    ("fetch.request.maxWaitMs[0] == 1", 0, "brackets work with arrays"),
    ("fetch.request.topics[0].partitons[1].partition == 3", 24, "did you mean partitions?"),
    ("topcs[0] == x", 0, "did you mean"),
    ("fetch.request.header.clientIdd == x", 21, "did you mean clientId?"),
    ("fetch.request.heder.clientId == x", 14, "did you mean header?"),
    ("request_size > respons_size", 15, "did you mean response_size?"),
    ("latency > 10sec", 10, "there is no unit 'sec': a time has us ms s m h"),
    ("latency > size", 10, "request_size is a size, and latency_ns is a time"),
    ("latency > api", 10, "latency_ns is a number, and api is an API"),
    ("request_time_ns > latency", 18, "is a number"),
    ("fetch.request.maxWaitMs < fetch.request.minByte", 40, "did you mean minBytes?"),
    ("partition in {partition}", 14, "is not"),
    ("client == localhost", 10, "10.0.0.0/8"),
    ("client == 10.0.0.0/33", 10, "10.0.0.0/8"),
    ("client == 10.0.0.1:99999", 10, "is not"),
    ("client == [::1", 10, "is not"),
    ("ip.addr == 10.0.0.1:5", 11, "has no port"),
    ("client.ip == 10.0.0.1:5", 13, "has no port"),
    ("client in {10.0.0.9 .. 10.0.0.1}", 23, "before it begins"),
    ("all orders", 10, "'=='"),
    ("any", 3, "a field"),
    ("all (error)", 4, "a field"),
    ("partition in", 12, "a value or '{'"),
    ("retransmitted", 0, "-T connections"),
    ("slow", 0, "latency > 500ms"),
    ("not finding", 4, "findings are not known here"),
    ("finding.severity >= warning", 0, "findings are not known here"),
    ("not (error or slow == true)", 14, "latency > 500ms"),
]


@pytest.mark.parametrize(("text", "position", "reason"), WRONG, ids=[text for text, _, _ in WRONG])
def test_what_is_wrong_is_told_with_its_place(text: str, position: int, reason: str) -> None:
    with pytest.raises(FilterError) as caught:
        compile_filter(text)
    assert reason in caught.value.reason
    assert caught.value.position == position


def test_a_word_after_a_field_of_text_that_names_a_field_is_told_as_such() -> None:
    found = compile_filter("topic == group")
    assert found.hints == ('group means the field of that name; "group" in quotes means the text',)
    assert compile_filter('topic == "group"').hints == ()
    assert compile_filter("topic == latency").hints == ()  # a number: only the text can be meant


def ipv6(last: int, port: int) -> bytes:
    return bytes((0xFD, *bytes(14), last)) + port.to_bytes(2, "big")


def test_addresses_of_ipv6() -> None:
    beat = {"groupId": "g", "generationId": 1, "memberId": "m"}
    talks = [
        Talk(client=ipv6(host, 40_000), broker=ipv6(9, 9092)).ask(request("Heartbeat", 1, 1, None, **beat))
        for host in (1, 2)
    ]
    exchanges = exchanges_of(*talks)
    assert [exchange.client for exchange in exchanges] == ["[fd00::1]:40000", "[fd00::2]:40000"]
    for text, wanted in (
        ("client == fd00::1", [True, False]),
        ("client == [fd00::1]", [True, False]),
        ("client == fd00:0:0:0:0:0:0:1", [True, False]),
        ("client == [FD00::2]:40000", [False, True]),
        ("client == [fd00::2]:4", [False, False]),
        ("client in fd00::/8", [True, True]),
        ("client in {fd00::/127, 10.0.0.0/8}", [True, False]),
        ("client.ip == fd00::2", [False, True]),
        ("client.ip in {fd00::2 .. fd00::ff}", [False, True]),
        ("client in 0.0.0.0/0", [False, False]),
        ("client > fd00::1", [False, True]),
        ("client > 1.1.1.1", [False, False]),
        ("broker.port == 9092", [True, True]),
    ):
        chosen = compile_filter(text)
        assert [chosen.matches(exchange) for exchange in exchanges] == wanted, text


def test_headers_are_asked_of_every_api_unknown_ones_too() -> None:
    unknown = b"\x12\x67\x00\x00" + b"\x00\x00\x00\x2a" + b"\x00\x01x" + b"\x00" * 8
    known_one = request("ApiVersions", 0, 1, "x")
    talk = Talk().ask(known_one).answer(response("ApiVersions", 0, 1, errorCode=0, apiKeys=[])).ask(unknown)
    exchanges = exchanges_of(talk)
    assert exchanges[-1].api == "Unknown(4711)"
    chosen = compile_filter("request.header.correlationId == 42 and header.clientId == x")
    assert [chosen.matches(exchange) for exchange in exchanges] == [False, True]


@pytest.mark.parametrize(
    ("api", "side", "old", "new"),
    [(*key, old, new) for key, names in paths.OLD_NAMES.items() for old, new in names.items()],
)
def test_old_names_of_fields_are_understood(api: str, side: str, old: str, new: str) -> None:
    """A path that ends with the old name means what the new one does, unless the API has the old one too."""
    old_places, new_places = (paths.places(f"{api}.{side}.{name}") for name in (old, new))
    assert new_places
    own = [place for place in old_places if place.twigs[-1].name == old]
    assert own or old_places == new_places


def test_bodies_are_decoded_only_where_the_columns_leave_it_open(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str | None] = []

    def counted(cursor: Cursor, candidates: tuple[Struct, ...], *more: Any) -> Body:
        decoded.append(candidates[0].name.removesuffix("Request").removesuffix("Response"))
        return read_body(cursor, candidates, *more)

    monkeypatch.setattr("kdissect.message.read_body", counted)

    def chosen(text: str) -> list[int]:
        decoded.clear()
        for exchange in known():
            for message in exchange.messages:
                message.forget_body()
        found = compile_filter(text)
        return [exchange.number for exchange in known() if found.matches(exchange)]

    assert chosen("client in 10.0.0.0/8 and request_size > response_size") == [1, 4, 5]
    assert chosen("request.header.clientId == admin") == [5, 6]
    assert decoded == []
    assert chosen("highWatermark == 2000 and api == Fetch") == [2]
    assert set(decoded) == {"Fetch"}
    assert chosen("number == 1 or highWatermark == 2000 and conn == 0 and not api == Heartbeat") == [1, 2]
    assert set(decoded) == {"Fetch"}  # a Produce has no such field, and is not decoded to see that
    assert chosen("record.key == u-1 and partition == 7 and api == Produce") == []
    assert set(decoded) == {"Produce"}


def test_comparing_many_values_with_many_takes_no_time_for_every_pair() -> None:
    from kdissect.filter.pairs import comparison

    left = compile_filter("partition == partition[0]").expression.left  # type: ignore[union-attr]
    ours, theirs = list(range(200_000)), list(range(200_000, 400_000))
    for operator in ("==", "===", "!=", "!==", "<", "<=", ">", ">="):
        for every in (False, True):
            wanted = operator in ("<", "<=", "!=", "!==")
            assert comparison(left, operator, left, every).holds(ours, theirs) == wanted


def shown_of(exchanges: tuple[Exchange, ...], text: str) -> list[bool]:
    chosen = compile_filter(text)
    return [chosen.matches(exchange) for exchange in exchanges]


def test_a_correlation_id_that_is_still_in_use_is_a_duplicate() -> None:
    beat = {"groupId": "g", "generationId": 1, "memberId": "m"}
    talk = Talk(broker=BROKER)
    for correlation in (1, 2, 2):
        talk.ask(request("Heartbeat", 1, correlation, None, **beat))
    for correlation in (1, 2, 2):
        talk.answer(response("Heartbeat", 1, correlation, throttleTimeMs=0, errorCode=0))
    exchanges = exchanges_of(talk.close())
    flagged = shown_of(exchanges, "duplicate")
    assert flagged == shown_of(exchanges, "fault.kind == duplicate-correlation")
    assert flagged.count(True) == 1
