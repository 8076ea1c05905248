"""Expressions × exchanges: what each shows."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kdissect.exchange import Exchange
from kdissect.filter.columns import MISSING
from kdissect.filter.compiled import Filter, compile_filter
from kdissect.filter.errors import FilterError
from kdissect.present.columns import EXCHANGES
from kdissect.present.options import Options
from kdissect.present.records import record_rows
from kdissect.reading import read
from tests.amount import each_of
from tests.filter.exchanges import SECRET, exchanges_of, known, stray_fault
from tests.kafka import Talk, request

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
ALL = {1, 2, 3, 4, 5, 6}

SHOWN: list[tuple[str, set[int]]] = [
    # columns, names and aliases
    ("api == Fetch", {2}),
    ("API == fetch", {2}),
    ("api == create_topics", {5}),
    ('api == "Create_Topics"', {5}),
    ("api == 1", {2}),
    ("api in {fetch, 12}", {2, 4}),
    ("api != Fetch", {1, 3, 4, 5, 6}),
    ('api contains "eta"', {6}),
    ("api matches ^prod", {1, 3}),
    ("api_key == 0", {1, 3}),
    ("apikey == 0", {1, 3}),
    ("api.key <= 1", {1, 2, 3}),
    ("version >= 4", {1, 2, 3}),
    ("api.version == 0x7", {1, 3}),
    ("number in {2..3, 6}", {2, 3, 6}),
    ("number not in {2..3, 6}", {1, 4, 5}),
    ("conn == 1", {5, 6}),
    ('client == "10.0.0.7:40007"', {1, 2, 3, 4}),
    ("client == 10.0.0.7:40007", {1, 2, 3, 4}),
    ("client.ip == 10.0.0.9", {5, 6}),
    ("client.port > 45000", {5, 6}),
    ("broker.port == 19092", ALL),
    ("client.id == etl-7", {1, 2, 3}),
    ('client_id contains "min"', {5, 6}),
    ("client_id != etl-7", {5, 6}),
    ("not client_id == etl-7", {4, 5, 6}),
    ("corr == 2", {2, 6}),
    ("size > 100", {1, 3}),
    ("request.size > 0.1kB", {1, 3}),
    ("response_size < 1KiB", {1, 2, 4, 5}),
    ('missing == "acks=0"', {3}),
    ("missing", {3, 6}),
    ("missing == 'connection closed'", {6}),
    ("inferred", set()),
    ("request", ALL),
    ("response", {1, 2, 4, 5}),
    ('request contains "failed"', set()),
    ('request contains "connect-etl"', {4}),
    # times
    ("latency == 1ms", {1, 2, 4, 5}),
    ("latency == 1000us and latency == 1000000ns and latency == 0.001s", {1, 2, 4, 5}),
    ("latency < 1.5 ms", {1, 2, 4, 5}),
    ("latency > 1.5 ms", set()),
    ("behind == 0ns", {1, 2, 4, 5}),
    ("behind > 10ms", set()),
    ("behind_correlation_id", set()),
    ("latency", {1, 2, 4, 5}),
    ("time >= 2023-11-14T22:13:20Z", ALL),
    ("time >= '2023-11-14 22:13:20Z'", ALL),
    ("time >= 2023-11-14T23:13:20.009+01:00", {4, 5, 6}),
    ("time < 2023-11-14T22:13:20.006Z", {1}),
    ("time < 1700000000.006s", {1}),
    ("time in {22:13 .. 22:13:20.007}", {1, 2}),
    ("time < 22:13:20.006", {1}),
    ("frame == 4", {1}),
    ("packet in {4..6}", {1, 2}),
    # errors
    ("error", {2, 5}),
    ("errors", {2, 5}),
    ("error == NOT_LEADER_OR_FOLLOWER", {2}),
    ("error == not_leader_or_follower", {2}),
    ("error == 6", {2}),
    ("error != 6", {5}),
    ("not error == 6", {1, 3, 4, 5, 6}),
    ("error in {1..10}", {2}),
    ("error in {TOPIC_ALREADY_EXISTS, 7}", {5}),
    ("error contains TOPIC", {5}),
    ("error matches 'leader|exists'", {2, 5}),
    ("errorCode == NOT_LEADER_OR_FOLLOWER", {2}),
    ("errorCode == NONE", {1, 2, 4}),
    ("fetch.response.errorCode", set()),
    ("fetch.response.responses.partitions.errorCode", {2}),
    # topics, any and every
    ("topic == orders", {1, 3, 6}),
    ("topic == clicks", set()),
    ("topics in {Clicks, new}", {2, 5}),
    ('topic >= "o"', {1, 3, 6}),
    ("topic", {1, 2, 3, 5, 6}),
    ("topic != orders", {2, 5}),
    ("not topic == orders", {2, 4, 5}),
    ("partition == 7", {2}),
    ("partition in {0, 3..7}", {1, 2, 3}),
    ("partition != 3", {2}),
    ("partition != 7", {1, 3}),
    ("partition !== 7", {1, 2, 3}),
    ("partition === 3", {1, 3}),
    ("partition any_ne 7", {1, 2, 3}),
    ("partition all_eq 3", {1, 3}),
    ("partition ne 3 or partition eq 3", {1, 2, 3}),
    ("partition gt 6 or partition lt 0 or partition ge 8 or partition le -1", {2}),
    ("acks == all", {1}),
    ("acks == 0", {3}),
    ("acks === 0", {3}),
    ("acks !== 0", {1}),
    ("not acks == 0", {1, 2, 4, 5, 6}),
    ("group == connect-etl", {4}),
    ('group matches "^connect-"', {4}),
    ("group.id ~ ETL$", {4}),
    # Kafka's fields by path
    ("fetch.response.responses.partitions.highWatermark > 1500", {2}),
    ("Fetch.Response.Responses.Partitions.high_watermark > 1.5e3", {2}),
    ("fetch.response.responses.partitions.highWatermark > 2000", set()),
    ("fetch.response.responses.partitions.highWatermark != 1000", set()),
    ("fetch.response.responses.partitions.highWatermark !== 1000", {2}),
    ("fetch.highWatermark == 1000", {2}),
    ("highWatermark == 1000", {2}),
    ("partitions.highWatermark == 1000", {2}),
    ("produce.request.topicData.partitionData", {1, 3}),
    ("produce.request.topicData.partitionData.records", {1, 3}),
    ("recordsSizeInBytes > 50 B", {1, 3}),
    ("throttleTimeMs > 1s", {1}),
    ("response.throttleTimeMs == 1500", {1}),
    ("throttle_time_ms == 1500ms", {1}),
    ("createTopics.request.validateOnly", {5}),
    ("createTopics.request.validateOnly == true", {5}),
    ("createTopics.request.validateOnly == false", set()),
    ("produce.request.transactionalId", set()),
    ("heartbeat.request.groupId == connect-etl and generationId == 4", {4}),
    # records
    ("record.key == u-1", {1, 3}),
    ('record.key contains "u"', {1, 3}),
    ('record.value contains "\\xff\\xfe"', {1, 3}),
    ('record.value == "\\xff\\xfe raw"', {1, 3}),
    ('record.value matches "STATE.*failed"', {1, 3}),
    ('record.value matches r\'"state": "\\w+"\'', {1, 3}),
    ("record.header.traceId == abc", {1, 3}),
    ("record.header.traceid == abc", set()),
    ("Rec_ord.HEADER.traceId == abc", {1, 3}),
    ("record.header.trace_Id == abc", set()),
    ("record.header.none", set()),
    ("record.headers contains none", {1, 3}),
    ("record.offset == 1", {1, 3}),
    ("record.assigned_offset == 101", {1}),
    ("record.key_size == 3B", {1, 3}),
    ("record.codec == none", {1, 3}),
    ("record.transactional", set()),
    ("record.crc_valid", {1, 3}),
    ("record.timestamp >= 2023-11-14T22:13:21Z", {1, 3}),
    ("record.timestamp > 2023-11-14T22:13:21Z", set()),
    ("record.timestamp == 22:13:21", {1, 3}),
    # flags, faults
    ("no_response", {6}),
    ("noresponse", {6}),
    ("no_request", set()),
    ("truncated", set()),
    ("undecoded", set()),
    ("faults", set()),
    ("fault.kind == gap", set()),
    ("fault.layer in {tcp, session}", set()),
    # words
    ("orders", {1, 3, 6}),
    ("ORDERS", {1, 3, 6}),
    ("failed", {1, 3}),
    ("orders failed", {1, 3}),
    ("failed xyz", {1, 3}),
    ("traceid", {1, 3}),
    ("connect", {4}),
    ('"etl"', {1, 2, 3, 4}),
    ('"error"', set()),
    ("admin or clicks", {2, 5, 6}),
    ("nowhere", set()),
    # and, or, not
    ("api == Fetch && error", {2}),
    ("api == Fetch || error", {2, 5}),
    ("not error", {1, 3, 4, 6}),
    ("!error", {1, 3, 4, 6}),
    ("not not error", {2, 5}),
    ("error or conn == 0 and api == Produce", {1, 2, 3, 5}),
    ("(error or conn == 0) and api == Produce", {1, 3}),
    ("not (error or conn == 0)", {6}),
    ("not error and conn == 1", {6}),
    ("NOT error AND conn == 1 OR number == 2", {2, 6}),
]


def shown(text: str) -> set[int]:
    """Numbers of the known exchanges that a filter shows."""
    found = compile_filter(text)
    return {exchange.number for exchange in known() if found.matches(exchange)}


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def test_the_known_exchanges_are_what_the_table_takes_them_for() -> None:
    assert [exchange.api for exchange in known()] == [
        "Produce",
        "Fetch",
        "Produce",
        "Heartbeat",
        "CreateTopics",
        "Metadata",
    ]
    assert not any(exchange.faults for exchange in known())


@each_of(lambda: SHOWN, lambda case: case[0])
def test_an_expression_shows(case: tuple[str, set[int]]) -> None:
    text, numbers = case
    assert shown(text) == numbers
    assert shown(f"not ({text})") == ALL - numbers


WRONG: list[tuple[str, int, str]] = [
    ("latncy > 5ms", 0, "did you mean latency?"),
    ("error and latncy > 5ms", 10, "did you mean latency?"),
    ("error == NOT_LEADR_OR_FOLLOWER", 9, "did you mean NOT_LEADER_OR_FOLLOWER?"),
    ("api == Ftch", 7, "did you mean Fetch?"),
    ("api in {Fetch, Prduce}", 15, "did you mean Produce?"),
    ("fault.kind == gapp", 14, "did you mean gap?"),
    ("missing == nope", 11, "capture ended"),
    ("fetch.responce.responses", 6, "did you mean response?"),
    ("fetch.response.responses.partitions.hihgWatermark > 1", 36, "did you mean highWatermark?"),
    ("fetch.highwatermrk > 1", 6, "did you mean highWatermark?"),
    ("highWatermrk > 1", 0, "did you mean highWatermark?"),
    ("record.kye == 1", 0, "did you mean record.key?"),
    ("leader == 4", 0, "ambiguous"),
    ("slow", 0, "latency > 500ms"),
    ("retransmitted", 0, "-T connections"),
    ("no_response == true", 0, "is true or false by itself"),
    ("api = Fetch", 4, "did you mean '=='?"),
    ("api == Fetch & error", 13, "'&&' or 'and'"),
    ('topic == "a', 9, "the closing quote is missing"),
    ("latency >", 9, "a value"),
    ("(error", 6, "')'"),
    ("error)", 5, "'or' or the end"),
    ("error ==", 8, "a value"),
    ("> 5", 0, "there is no field before >"),
    ("topic == a b", 11, "in quotes"),
    ("latency > 5 parsecs", 12, "in quotes"),
    ("latency > 5parsec", 10, "no unit"),
    ("latency > 5MB", 10, "us ms s m h"),
    ("size > 5ms", 7, "KiB"),
    ("partition > 5ms", 12, "no unit"),
    ("partition == x", 13, "is not"),
    ('partition == "5"', 13, "is not"),
    ("partition in {7..3}", 17, "before it begins"),
    ('topic in {"b".."a"}', 15, "before it begins"),
    ("partition in {}", 14, "a value"),
    ("partition in {1,}", 16, "a value"),
    ("latency contains 5", 8, "works with text"),
    ("api < Fetch", 4, "does not work with it"),
    ("request == x", 8, "contains and matches"),
    ("fetch.response.responses == 3", 25, "use it without a value"),
    ('topic matches "("', 14, "regular expression"),
    ("topic matches (?!a)", 14, "value"),
    ("topic matches '(?!a)'", 14, "regular expression"),
    ("createTopics.request.validateOnly == maybe", 37, "true or false"),
    ("time > 25:00", 7, "time does not exist"),
    ("time > 2023-02-30", 7, "time does not exist"),
    ("time > tomorrow", 7, "is a time"),
    ("time in {12:00, 2023-01-01}", 16, "one set cannot contain"),
    ("api in {Fetch..Produce}", 8, "no ranges"),
    ("", 0, "empty"),
    ("   ", 0, "empty"),
    ('""', 0, "text to search for is empty"),
    ("(" * 65 + "error" + ")" * 65, 65, "deeper than 64"),
    ("not " * 65 + "error", 256, "deeper than 64"),
    ("a" * 4097, 4096, "limit"),
    ("error == \ud800", 9, "not a valid character"),
    ("size == 1e9999", 8, "is not"),
]


@pytest.mark.parametrize(("text", "position", "reason"), WRONG, ids=[text[:40] for text, _, _ in WRONG])
def test_what_is_wrong_is_told_with_its_place(text: str, position: int, reason: str) -> None:
    with pytest.raises(FilterError) as caught:
        compile_filter(text)
    assert reason in caught.value.reason
    assert (caught.value.position, caught.value.text) == (position, text)
    assert "\n" not in str(caught.value)


def test_the_caret_stands_under_what_is_wrong() -> None:
    with pytest.raises(FilterError) as caught:
        compile_filter("topic == ウ and latncy > 5ms")
    assert caught.value.excerpt() == (
        "topic == ウ and latncy > 5ms",
        "                ^~~~~~",
    )
    with pytest.raises(FilterError) as caught:
        compile_filter("error or " * 20 + "latncy > 5ms" + " or error" * 20)
    line, carets = caught.value.excerpt()
    assert line[carets.index("^") : len(carets)] == "latncy"
    assert line[0] == line[-1] == "…"
    assert len(line) <= 80


def test_nesting_up_to_the_limit_is_fine() -> None:
    assert shown("(" * 64 + "error" + ")" * 64) == {2, 5}
    assert shown("not " * 64 + "error") == {2, 5}
    assert shown(" or ".join(["error"] * 400)) == {2, 5}


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("eror", "did you mean error?"),
        ("api == Fetch or Produce", "api == Produce"),
        ("NOT_COORDINATOR", "error == NOT_COORDINATOR"),
        ("latency > 50", "50ns"),
    ],
)
def test_what_may_not_be_meant_is_hinted_at(text: str, hint: str) -> None:
    (found,) = compile_filter(text).hints
    assert hint in found


def test_what_is_meant_gets_no_hint() -> None:
    assert compile_filter("orders failed and latency > 50ms and error").hints == ()


def test_secrets_cannot_be_found_by_filtering() -> None:
    secret = (f'createTopics.configs.value == "{SECRET}"', f'request contains "{SECRET}"', SECRET)
    assert [shown(text) for text in secret] == [set(), set(), set()]
    assert shown("createTopics.configs.value == '<redacted>'") == {5}
    open_filter = compile_filter(secret[0], Options(show_secrets=True))
    assert [exchange.number for exchange in known() if open_filter.matches(exchange)] == [5]


def test_a_record_is_asked_alone_in_the_table_of_records() -> None:
    exchange = known()[0]
    first, second = record_rows(exchange)
    key = compile_filter("record.key == u-1 and topic == orders")
    assert key.matches_record(exchange, first)
    assert not key.matches_record(exchange, second)
    assert compile_filter("not record.key == u-1").matches_record(exchange, second)
    assert not compile_filter("not record.key == u-1").matches(exchange)


def test_a_fault_without_exchange_has_its_own_values_only() -> None:
    fault = stray_fault()
    for text in (
        "fault.kind == gap",
        "faults",
        "conn == 1",
        "not error",
        "fault.packet == 9",
        "fault.offset == 100",
    ):
        assert compile_filter(text).matches_fault(fault), text
    for text in (
        "fault.kind == bad-crc",
        "api",
        "error",
        "topic",
        "conn == 0",
        "record.key",
        "client.ip",
        "frame",
        "request contains x",
        "truncated",
        "highWatermark",
        "gap",
    ):
        assert not compile_filter(text).matches_fault(fault), text


def test_a_filter_can_be_pickled() -> None:
    again: Filter = pickle.loads(pickle.dumps(compile_filter("error", Options(show_secrets=True))))
    assert (again.text, again.options) == ("error", Options(show_secrets=True))
    assert again.matches(known()[1])


def test_only_what_the_columns_leave_open_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked: list[int] = []

    def rows(exchange: Exchange, options: Options) -> Iterator[dict[str, Any]]:
        unpacked.append(exchange.number)
        return record_rows(exchange, options)

    monkeypatch.setattr("kdissect.filter.row.record_rows", rows)
    assert shown("record.key == u-1 and record.value contains raw and number in {1..2}") == {1}
    assert unpacked == [1, 2]
    unpacked.clear()
    assert shown("failed or conn == 0") == {1, 2, 3, 4}
    assert unpacked == [5, 6]


def test_a_hostile_regular_expression_takes_linear_time() -> None:
    matches = compile_filter('record.value matches "(a+)+$"').expression.check.one  # type: ignore[union-attr]
    start = time.process_time()
    assert not matches(b"a" * 100_000 + b"!")
    assert time.process_time() - start < 5


Reference = Callable[[Exchange], bool]


def columns_of_records(exchange: Exchange, name: str) -> list[Any]:
    return [row[name] for row in record_rows(exchange)]


def is_slow(exchange: Exchange) -> bool:
    return exchange.api in ("Produce", "Fetch") and (exchange.latency_ns or 0) > 2_000_000


def joins(exchange: Exchange) -> bool:
    request = exchange.request
    return exchange.api_key == 68 and request is not None and request.body()["memberEpoch"] == 0


REAL: list[tuple[str, str, Reference]] = [
    ("errors", "error", lambda e: e.error is not None),
    ("errors", "topic != x", lambda e: bool(e.topics)),
    ("basic-kafka43", "api in {Produce, Fetch} and latency > 2ms", is_slow),
    ("basic-kafka43", "record.codec == lz4", lambda e: "lz4" in columns_of_records(e, "codec")),
    (
        "transactions-kafka39",
        "record.control contains COMMIT",
        lambda e: "COMMIT" in [control and control["type"] for control in columns_of_records(e, "control")],
    ),
    (
        "loss",
        "missing and not no_response",
        lambda e: e.missing is not None and (e.response is not None or e.missing == "acks=0"),
    ),
    ("broker-0.9", "no_response", lambda e: e.response is None and e.missing != "acks=0"),
    ("broker-0.9", "truncated", lambda e: any(m.is_cut for m in e.messages)),
    ("broker-0.9", "faults", lambda e: bool(e.faults)),
    ("midstream", "no_request", lambda e: e.request is None),
    ("sasl-scram", "api == SaslAuthenticate", lambda e: e.api_key == 36),
    ("consumer-group-kip848", "consumerGroupHeartbeat.request.memberEpoch == 0", joins),
]


@pytest.mark.parametrize(("capture", "text", "reference"), REAL, ids=[text for _, text, _ in REAL])
def test_filters_of_real_captures_agree_with_python(capture: str, text: str, reference: Reference) -> None:
    found = compile_filter(text)
    exchanges = list(read(next(CAPTURES.glob(f"{capture}.pcap*"))))
    expected = [exchange.number for exchange in exchanges if reference(exchange)]
    assert expected
    assert [exchange.number for exchange in exchanges if found.matches(exchange)] == expected


def test_decimal_numbers_are_equal_to_what_is_written() -> None:
    ops = [{"key": "rate", "value": 0.1, "remove": False}]
    entry = {"entity": [{"entityType": "user", "entityName": None}], "ops": ops}
    data = request("AlterClientQuotas", 0, 1, "a", entries=[entry], validateOnly=False)
    (exchange,) = exchanges_of(Talk().ask(data))
    for text in ("== 0.1", "in {0.1, 5}", "in {0..1e-1}", "< 0.2", "> -1e300", "!= 1"):
        assert compile_filter(f"alterClientQuotas.request.entries.ops.value {text}").matches(exchange), text
    for text in ("== 1", "in {1..2}", ">= 0.2", "!== 0.1"):
        assert not compile_filter(f"alterClientQuotas.ops.value {text}").matches(exchange), text


def test_the_reasons_for_what_is_missing_are_those_of_the_column() -> None:
    _, _, reasons = EXCHANGES.column("missing").meaning.partition(": ")
    assert tuple(reasons.split(", ")) == MISSING


def test_an_api_that_is_begun_is_offered_before_what_is_alike() -> None:
    with pytest.raises(FilterError, match="there is no API Pr; did you mean Produce"):
        compile_filter("api == Pr")


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("record.partition == 1", False),
        ("not record.partition == 1", True),
        ("record.partition != 1", True),
        ("not record.partition != 1", True),
        ("not record.key != a", True),
        ("not not record.key == a", False),
        ("not record.key", True),
        ("not api == Fetch and record.key == a", False),
        ("api == Fetch and not (record.key == a or record.offset > 3)", True),
        ("not api == Fetch", False),
    ],
)
def test_where_a_record_may_match_though_its_exchange_does_not(text: str, asks: bool) -> None:
    made = compile_filter(text)
    assert made.asks_each_record == asks
    only = False
    for exchange in read(CAPTURES / "basic-kafka43.pcapng"):
        some = any(made.matches_record(exchange, row) for row in record_rows(exchange))
        only = only or (some and not made.matches(exchange))
    assert only <= asks


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("api == Fetch and not record.key == a", "api == Fetch"),
        ("api == Fetch and (latency_ns > 5 and record.key != a)", "api == Fetch and latency_ns > 5"),
        ("api == Fetch and record.key == a", "api == Fetch and record.key == a"),
        ("api == Fetch or not record.key == a", None),
        ("not record.key == a", None),
    ],
)
def test_what_an_exchange_matches_if_one_of_its_records_matches(text: str, left: str | None) -> None:
    part = compile_filter(text).of_exchange
    assert (part is None) == (left is None)
    if part is not None and left is not None:
        wanted = compile_filter(left)
        assert part.fields == wanted.fields
        for exchange in read(CAPTURES / "basic-kafka43.pcapng"):
            assert part.matches(exchange) == wanted.matches(exchange)
