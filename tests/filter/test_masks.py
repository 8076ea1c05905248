"""Masks over the columns of an index: equal to the question asked row by row, and quick."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks import filter as benchmark
from kdissect.exchange import Exchange
from kdissect.filter.compiled import Filter, compile_filter
from kdissect.filter.field import FilterField
from kdissect.filter.fields import by_name
from kdissect.filter.literals import local_offset
from kdissect.filter.masks import IndexColumn, KnownColumn, Masks, Numbers, TextColumn, TextLists
from kdissect.filter.row import Row
from tests.amount import times
from tests.filter.exchanges import known

APIS = ("Fetch", "Produce", "Metadata", "SaslToken", "Unknown(4711)")
CLIENTS = ("10.0.0.1:40001", "10.0.0.2:9", "[fe80::1]:40001")
ERRORS = ("NOT_LEADER_OR_FOLLOWER", "UNKNOWN(777)", "TOPIC_ALREADY_EXISTS")
TOPICS = ("orders", "clicks", "", "Orders")
HOUR = 3_600 * 1_000_000_000
NOON = 1_700_000_000_000_000_000

ROWS = st.fixed_dictionaries(
    {
        "api": st.none() | st.sampled_from(APIS),
        "client": st.sampled_from(CLIENTS),
        "client_id": st.none() | st.sampled_from(("etl-7", "web", "ETL")),
        "error": st.none() | st.sampled_from(ERRORS),
        "latency_ns": st.none() | st.integers(-5, 5) | st.integers(-(1 << 63), (1 << 63) - 1),
        "request_size": st.none() | st.integers(0, 3_000),
        "response_size": st.none() | st.integers(0, 3) | st.integers(0, 3_000),
        "request_time_ns": st.none() | st.integers(NOON, NOON + 400 * HOUR) | st.integers(0, (1 << 63) - 1),
        "topics": st.lists(st.sampled_from(TOPICS), max_size=3),
        "truncated": st.booleans(),
        "group": st.lists(st.sampled_from(("a", "b")), max_size=2),
    }
)
ASKED = (
    *("api == fetch", "api != fetch", "api !== 0", "api in {Fetch, SaslToken}", "api matches '^.e'", "api"),
    *("client.ip == 10.0.0.1", "client.port == 40001", "client.port > 9", "client contains '10.'"),
    *("client_id", "client.id == etl-7", "client.id >= e", "error", "error != 6", "error in {1..100}"),
    *("error == 777", "error contains TOPIC", "latency", "latency == 2", "latency != 2", "latency > 1.5"),
    *("latency < 1e30", "latency > 1e30", "latency in {-1, 1, 3..4}", "latency !== 0", "latency <= -2"),
    *("latency in {1, 3, 5, 7, 9, 11, 13, 15, 17, -3}", "size >= 2KiB", "size == 0.5", "size !== 0.5"),
    *("time >= 2023-11-20", "time < 12:00", "time in {06:30 .. 11:00, 23:00:00.5 .. 23:59}", "time"),
    *("topic == orders", "topic != orders", "topic === orders", "topic !== orders", "topic", "topic ~ ^o"),
    *("truncated", "truncated == false", "group == a", "group != a", "group", "record.key == x", "faults"),
    *("orders", "no_response", "etl clicks"),
    *("request_size > response_size", "request_size == response_size", "all request_size != response_size"),
    *("response_size <= request_size", "latency_ns !== latency_ns", "not latency == latency_ns"),
    *("client in 10.0.0.0/31", "client == 10.0.0.1:40001", "client != fe80::1", "client > 10.0.0.1"),
    *("client_id[0:3] == etl", "client_id[-2:2] == b", "topics[0] == orders", "all topic contains r"),
    *("ip.addr == 10.0.0.2", "tcp.port == 9", "all tcp.port > 9", "tcp.port != 40001", "ip.addr != fe80::1"),
    *("any latency < 3", "all topic in {orders, clicks}", "client == client.ip", "client_id == client_id"),
)


OF_TEXTS = ("client == client.ip", "client_id == client_id")
"""Pairs of fields that are not compared by column."""


def expressions() -> st.SearchStrategy[str]:
    return st.recursive(
        st.sampled_from(ASKED),
        lambda inner: st.one_of(
            inner.map(lambda text: f"not ({text})"),
            st.tuples(inner, st.sampled_from(("and", "or")), inner).map(lambda parts: f"({' '.join(parts)})"),
        ),
        max_leaves=6,
    )


def texts(rows: list[dict[str, Any]], name: str, none: int) -> TextColumn:
    """A column of text; ``none`` stands where there is none. Not all words in the list occur."""
    words = ["", "not in any row", *sorted({row[name] for row in rows if row[name] is not None})]
    codes = [none if row[name] is None else words.index(row[name]) for row in rows]
    return TextColumn(np.array(codes, np.int16), words, none)


def lists(rows: list[dict[str, Any]], name: str) -> TextLists:
    words = sorted({text for row in rows for text in row[name]})
    codes = [words.index(text) for row in rows for text in row[name]]
    starts = np.cumsum([0, *(len(row[name]) for row in rows)])
    return TextLists(np.array(codes, np.int32), starts, words)


def numbers(rows: list[dict[str, Any]], name: str, kind: type) -> Numbers:
    values: NDArray[Any] = np.array([row[name] or 0 for row in rows], kind)
    return Numbers(values, np.array([row[name] is not None for row in rows], np.bool_))


def index(rows: list[dict[str, Any]]) -> dict[str, IndexColumn]:
    return {
        "api": texts(rows, "api", -1),
        "client": texts(rows, "client", -1),
        "client_id": texts(rows, "client_id", 0),
        "error": texts(rows, "error", -1),
        "latency_ns": numbers(rows, "latency_ns", np.int64),
        "request_size": numbers(rows, "request_size", np.uint16),
        "request_time_ns": numbers(rows, "request_time_ns", np.int64),
        "response_size": numbers(rows, "response_size", np.int32),
        "topics": lists(rows, "topics"),
        "truncated": np.array([row["truncated"] for row in rows], np.bool_),
        "group": KnownColumn(np.array([bool(row["group"]) for row in rows], np.bool_)),
    }


class Fake:
    """An exchange whose columns are a dict's; what it does not have is absent."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values


def from_dicts(field: FilterField) -> FilterField:
    """The field, reading from a :class:`Fake`."""

    def read(row: Row) -> Any:
        assert isinstance(row.exchange, Fake)
        value = row.exchange.values.get(field.source or field.name)
        if value is None:
            return [] if field.many else None
        return field.derive(value) if field.derive is not None else value

    return field._replace(read=read)


TABLE = {plain: from_dicts(field) for plain, field in by_name().items()}


def compiled(text: str) -> Filter:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kdissect.filter.resolve.by_name", lambda: TABLE)
        return compile_filter(text)


@given(st.lists(ROWS, min_size=1, max_size=12), expressions())
def test_masks_equal_the_question_row_by_row(rows: list[dict[str, Any]], text: str) -> None:
    check_masks(rows, text)


@pytest.mark.parametrize("text", ASKED)
@given(rows=st.lists(ROWS, min_size=6, max_size=12))
@settings(max_examples=times(8, 40))
def test_each_mask_equals_its_question_row_by_row(rows: list[dict[str, Any]], text: str) -> None:
    check_masks(rows, text)


def shown(
    found: Masks, matches: Callable[[Exchange], bool], exchange_at: Callable[[int], Exchange]
) -> Iterator[int]:
    """The rows that are shown, in order; only the open ones are looked at."""
    for row in np.flatnonzero(found.possible):
        number = int(row)
        if found.certain[row] or matches(exchange_at(number)):
            yield number


def check_masks(rows: list[dict[str, Any]], text: str) -> None:
    """What is certain is shown, what is shown is possible, and what columns can settle they do."""
    chosen = compiled(text)
    fakes: list[Any] = [Fake(row) for row in rows]
    expected = [chosen.matches(fake) for fake in fakes]
    columns = index(rows)
    found = chosen.masks(columns, len(rows))
    assert not (found.certain & ~np.array(expected)).any()
    assert not (np.array(expected) & ~found.possible).any()
    if chosen.fields <= columns.keys() - {"group"} and not any(pair in text for pair in OF_TEXTS):
        assert not len(found.open)
    asked = list(shown(found, chosen.matches, fakes.__getitem__))
    assert asked == [at for at, wanted in enumerate(expected) if wanted]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe"])
def test_times_of_day_are_local_where_the_clocks_change(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    local_offset.cache_clear()
    try:
        # Over the ends of summer time on both halves of the earth, in steps of 7 minutes.
        values = np.arange(1_696_000_000, 1_712_000_000, 420, dtype=np.int64) * 1_000_000_000
        chosen = compile_filter("time in {01:30 .. 03:15}")
        found = chosen.masks({"request_time_ns": values}, len(values)).certain
        for value, hit in zip(values.tolist(), found.tolist(), strict=True):
            local = time.localtime(value // 1_000_000_000)
            minutes = 60 * local.tm_hour + local.tm_min
            assert hit == (90 <= minutes < 195 or (minutes == 195 and local.tm_sec == 0))
    finally:
        monkeypatch.undo()
        time.tzset()
        local_offset.cache_clear()


def test_only_open_rows_are_asked() -> None:
    columns: dict[str, IndexColumn] = {
        "error": TextColumn(np.array([-1, 0, -1], np.int8), ["NOT_COORDINATOR"]),
        "connection": np.array([0, 0, 1], np.int32),
    }
    asked = []
    chosen = compile_filter("error or conn == 0 and record.key == x")

    def matches(exchange: Any) -> bool:
        asked.append(exchange)
        return False

    found = chosen.masks(columns, 3)
    assert (found.certain.tolist(), found.open.tolist()) == ([False, True, False], [0])
    assert list(shown(found, matches, lambda at: at)) == [1]  # type: ignore[arg-type,return-value]
    assert asked == [0]


def test_the_columns_of_real_exchanges_give_what_the_exchanges_do() -> None:
    rows = [{name: getattr(e, name) for name in ("api", "client", "client_id", "error")} for e in known()]
    columns: dict[str, IndexColumn] = {name: texts(rows, name, -1) for name in rows[0]}
    for text in ("api == Produce", "error", "client.port > 45000 and not error", "client_id != admin"):
        chosen = compile_filter(text)
        found = chosen.masks(columns, len(rows))
        assert found.certain.tolist() == [chosen.matches(exchange) for exchange in known()]


def test_a_column_of_the_wrong_sort_is_refused() -> None:
    with pytest.raises(TypeError, match="a column of numbers cannot be api"):
        compile_filter("api == Fetch").masks({"api": np.array([1])}, 1)


def test_no_rows_are_no_rows() -> None:
    empty = index([])
    for text in ASKED:
        found = compile_filter(text).masks(empty, 0)
        assert len(found.certain) == len(found.possible) == 0


def test_a_million_rows_are_quick() -> None:
    """The aim is 50 ms each on an idle core (python -m benchmarks.filter). Python adds up as many numbers in
    about that time; a filter that looked at one row after another would take ten times as long."""
    columns = benchmark.columns(benchmark.ROWS)
    adding = min(_seconds(lambda: sum(number for number in range(benchmark.ROWS))) for _ in range(3))
    for text in benchmark.FILTERS:
        chosen = compile_filter(text)
        best = min(_seconds(lambda chosen=chosen: chosen.masks(columns, benchmark.ROWS)) for _ in range(5))  # type: ignore[misc]
        assert best < 5 * adding, text


def test_the_benchmark_runs(capsys: pytest.CaptureFixture[str]) -> None:
    benchmark.main(1_000)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(benchmark.FILTERS) + len(benchmark.ASKED)
    assert lines[-1].startswith("aim: 0.05 ms")


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
