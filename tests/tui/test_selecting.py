"""From what is under the cursor to a filter."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

import pytest

from kdissect import read
from kdissect.exchange import Exchange
from kdissect.feed import field_values
from kdissect.feed.field_values import MOST_VALUES
from kdissect.filter.compiled import compile_filter
from kdissect.filter.resolve import field_named
from kdissect.filter.syntax import LONGEST as LONGEST_FILTER
from kdissect.present.detail import Detail, TreeSpot
from kdissect.present.options import Options
from kdissect.present.records import record_rows
from kdissect.present.sanitise import LONGEST as LONGEST_TEXT
from kdissect.record.records import Record
from kdissect.tui.lists.exchange_columns import COLUMNS
from kdissect.tui.selecting import (
    OF_RECORDS,
    field_of_line,
    filter_of_column,
    filter_of_field,
    filter_of_line,
    filter_of_record,
    joined,
    word_of_line,
)
from tests.amount import times
from tests.cli.run import CAPTURES
from tests.kafka import Talk
from tests.present.captures import SECRET, secret_talks, write_capture
from tests.tui.producing import produced

OPTIONS = Options(embedded=True)
MOST_LINES = 20
MOST_RECORDS = times(3, 1_000_000)
"""Of one exchange: those that follow differ in their offset, key and time."""


def lines(detail: Detail, spots: list[TreeSpot]) -> Iterator[list[TreeSpot]]:
    """A line with those around it, and those below it."""
    yield spots
    for spot in detail.open(spots[-1])[:MOST_LINES]:
        yield from lines(detail, [*spots, spot])


@pytest.mark.parametrize("capture", ["basic-kafka43.pcapng", "errors.pcapng", "transactions-kafka39.pcapng"])
def test_the_filter_of_a_line_matches_the_exchange_that_has_it(capture: str) -> None:
    found = 0
    seen: set[tuple[str | None, int | None]] = set()
    for exchange in read(CAPTURES / capture):
        if (exchange.api, exchange.api_version) in seen:
            continue
        seen.add((exchange.api, exchange.api_version))
        detail = Detail(exchange, OPTIONS)
        for top in detail.spots:
            for spots in lines(detail, [top]):
                text = filter_of_line(detail, spots)
                if text is not None:
                    assert compile_filter(text).matches(exchange), text
                    found += 1
    assert found > 200


def test_fields_have_their_path_and_their_value() -> None:
    exchange = next(each for each in read(CAPTURES / "basic-kafka43.pcapng") if each.api == "Produce")
    detail = Detail(exchange, OPTIONS)
    texts = {filter_of_line(detail, spots) for top in detail.spots for spots in lines(detail, [top])}
    assert {
        "api == Produce",
        "api_version == 13",
        'client_id == "producer-none"',
        "produce.request.acks == 1",
        "not produce.request.transactionalId",
        "produce.request.topicData.partitionData.index == 1",
        "produce.request.topicData.partitionData.records",
        "record.magic == 2",
        "produce.response.throttleTimeMs == 0",
    } <= texts
    assert any(text is not None and text.startswith("record.key == ") for text in texts)


def test_the_word_of_a_line_is_that_of_its_filter() -> None:
    found: dict[str, str | None] = {}
    for exchange in read(CAPTURES / "basic-kafka43.pcapng"):
        if exchange.api not in ("Produce", "Metadata"):
            continue
        detail = Detail(exchange, OPTIONS)
        for top in detail.spots:
            for spots in lines(detail, [top]):
                word, text = word_of_line(detail, spots), filter_of_line(detail, spots)
                assert word is None or text is None or word in text
                found.setdefault(spots[-1].text.partition(":")[0], word)
    assert found["clientId"] == "client_id"
    assert found["requestApiKey"] == "api"
    assert found["acks"] == "produce.request.acks"
    assert found["topicData"] == "produce.request.topicData"
    assert found["baseTimestamp"] is None, "no filter knows it"
    assert found["key"] == "record.key"
    assert found["request"] is found["header"] is found["body"] is None, "no fields"


def test_so_have_fields_of_batches_that_stand_alone() -> None:
    exchange = next(each for each in read(CAPTURES / "basic-kafka43.pcapng") if each.api == "Produce")
    detail = Detail(exchange, OPTIONS)
    every = [spots for batch in detail.records() for spots in lines(detail, [batch])]
    texts = {text for spots in every if (text := filter_of_line(detail, spots)) is not None}
    assert any(text.startswith("record.key == ") for text in texts)
    for text in texts:
        assert compile_filter(text).matches(exchange), text
    assert {field_of_line(detail, spots) for spots in every} >= {"record.key", "record.value"}


def test_the_field_of_a_line_has_a_name_whatever_its_value(tmp_path: Path) -> None:
    exchange = next(each for each in read(CAPTURES / "basic-kafka43.pcapng") if each.api == "Produce")
    detail = Detail(exchange, OPTIONS)
    names = {field_of_line(detail, spots) for top in detail.spots for spots in lines(detail, [top])}
    assert {
        *("api", "api_version", "client_id", "produce.request.transactionalId", "record.magic"),
        *("produce.request.topicData.partitionData.index", "produce.response.throttleTimeMs", None),
    } <= names
    assert field_of_line(detail, [detail.spots[0]]) is None
    secrets = read(write_capture(tmp_path / "c.pcapng", *secret_talks()))
    details = [Detail(each, OPTIONS) for each in secrets]
    hidden = {
        field_of_line(detail, spots)
        for detail in details
        for top in detail.spots
        for spots in lines(detail, [top])
        if spots[-1].is_hidden
    }
    assert "saslAuthenticate.request.authBytes" in hidden


@pytest.mark.parametrize(
    "name",
    [
        *("produce.request.acks", "produce.response.responses.partitionResponses.errorCode", "wait_ns"),
        *("record.key", "record.magic", "record.timestamp", "metadata.request.allowAutoTopicCreation"),
        *("client.ip", "groupId", "metadata.response.topics.topicId"),
    ],
)
def test_the_filter_of_a_column_that_shows_a_field_matches_the_exchange(name: str) -> None:
    field, found = field_named(name), set()
    for exchange in chain(*(read(CAPTURES / f"{capture}.pcapng") for capture in ("basic-kafka43", "errors"))):
        text = filter_of_field(field, exchange, OPTIONS)
        if text is not None:
            assert compile_filter(text).matches(exchange), text
            found.add(text)
    assert any(not text.startswith("not ") for text in found)


def written(path: Path, *keys: bytes | None) -> Exchange:
    """A Produce request with records that have these keys."""
    talk = Talk()
    records = [Record(at, 1, key, b"v") for at, key in enumerate(keys)]
    talk.ask(produced(records))
    return next(iter(read(write_capture(path / "written.pcapng", talk.close()))))


def test_the_filter_of_a_field_has_all_of_its_value_or_there_is_none(tmp_path: Path) -> None:
    field = field_named("record.key")
    long = written(tmp_path, b"k" * (2 * LONGEST_TEXT))
    assert filter_of_field(field, long, OPTIONS) == 'record.key == "' + "k" * (2 * LONGEST_TEXT) + '"'
    assert filter_of_field(field, written(tmp_path, b"k" * LONGEST_FILTER), OPTIONS) is None


def test_a_field_lacks_a_value_only_where_all_records_were_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    field = field_named("record.key")
    assert filter_of_field(field, written(tmp_path, *[None] * MOST_VALUES), OPTIONS) == "not record.key"
    later = written(tmp_path, *[None] * MOST_VALUES, b"k")
    assert filter_of_field(field, later, OPTIONS) is None
    monkeypatch.setattr(field_values, "MOST_RECORD_BYTES", 0)
    assert filter_of_field(field, written(tmp_path, b"k"), OPTIONS) is None


def test_a_secret_has_no_filter(tmp_path: object) -> None:
    path = write_capture(tmp_path / "c.pcapng", *secret_talks())  # type: ignore[operator]
    for exchange in read(path):
        detail = Detail(exchange, OPTIONS)
        for top in detail.spots:
            for spots in lines(detail, [top]):
                text = filter_of_line(detail, spots)
                assert text is None or SECRET not in text
                if spots[-1].is_hidden:
                    assert text is None
                    assert word_of_line(detail, spots) is None


@pytest.mark.parametrize("capture", ["errors.pcapng", "midstream.pcapng", "broker-0.9.pcap"])
def test_the_filter_of_a_column_matches_the_exchange(capture: str) -> None:
    for exchange in read(CAPTURES / capture):
        for column in COLUMNS:
            text = filter_of_column(column, exchange)
            if column in ("mark", "coloring_rule"):
                assert text is None
            else:
                assert text is not None, column
                assert compile_filter(text).matches(exchange), text


@pytest.mark.parametrize(
    ("capture", "has_headers"),
    [("basic-kafka43.pcapng", True), ("incidents/poison-pill.pcapng.gz", False)],
)
def test_the_filter_of_a_column_of_records_matches_the_record(capture: str, has_headers: bool) -> None:
    found = set()
    for exchange in read(CAPTURES / capture):
        for row in islice(record_rows(exchange, OPTIONS), MOST_RECORDS):
            for column in ("No.", "Client id", *OF_RECORDS, "Offset"):
                text = filter_of_record(column, row, exchange)
                if text is None:
                    continue
                assert compile_filter(text).matches_record(exchange, row), text
                found.add(text)
    assert ("record.headers" in found) == has_headers
    assert len(found) > 20


def test_what_a_record_lacks_has_a_filter() -> None:
    told = set()
    for exchange in chain(*(read(CAPTURES / f"{name}.pcapng") for name in ("basic-kafka43", "sasl-scram"))):
        rows = list(record_rows(exchange, OPTIONS))
        for column in ("Key", "Value"):
            name = OF_RECORDS[column]
            for row in islice((row for row in rows if row[name] is None), MOST_RECORDS):
                assert filter_of_record(column, row, exchange) == f"not record.{name}"
                told.add(column)
    assert told == {"Key", "Value"}


def test_an_offset_selects_who_wrote_it_and_who_fetched_it() -> None:
    rows = [
        (exchange, row)
        for exchange in read(CAPTURES / "basic-kafka43.pcapng")
        for row in record_rows(exchange, OPTIONS)
    ]
    for direction in ("produce", "fetch"):
        exchange, row = next(each for each in rows if each[1]["direction"] == direction)
        text = filter_of_record("Offset", row, exchange)
        assert text is not None
        matches = compile_filter(f"record.partition == {row['partition']} and {text}").matches_record
        found = [each["direction"] for of, each in rows if matches(of, each)]
        assert set(found) == {"produce", "fetch"}
        assert all(
            (each["assigned_offset"] if each["direction"] == "produce" else each["offset"])
            == (row["assigned_offset"] if direction == "produce" else row["offset"])
            for of, each in rows
            if matches(of, each)
        )


def test_no_headers_have_a_filter_too() -> None:
    exchange = next(each for each in read(CAPTURES / "incidents/poison-pill.pcapng.gz") if each.number == 7)
    row = next(record_rows(exchange, OPTIONS))
    assert filter_of_record("Hdr", row, exchange) == "not record.headers"


def test_operations() -> None:
    assert joined("only", "a", "b") == "a"
    assert joined("not", "a", "b") == "not a"
    assert joined("not", "not a.b", "b") == "a.b"
    assert joined("not", "not a == b", "b") == "not not a == b"
    assert joined("and", "a", "b") == "(b) and a"
    assert joined("or", "a", "b") == "(b) or a"
    assert joined("and", "a", "") == joined("or", "a", "") == "a"
    assert joined("not", "a", "") == "not a"
