from __future__ import annotations

import numpy as np
import pytest

from kdissect.feed.batches import Ended
from kdissect.feed.index import Places
from kdissect.feed.records import (
    ASK_EXCHANGES,
    IS_RELATIVE,
    SPAN,
    VALUE_IS_WORDS,
    AskRecords,
    FoundRecords,
    RecordLine,
)
from kdissect.protocol import apis
from kdissect.protocol.schema import Struct, message_struct
from kdissect.tui.lists import records
from kdissect.tui.lists.records import CARRIERS, RecordRows
from tests.feed.feeds import index_with

LINE = RecordLine(0, 0, 0, 0, 1, 2, 1_000, 5, 3, 1, 2, 0, 2, 1, 2, b"k", b"vw")


class Answers:
    """Stands for what lists records: says what the test tells it to."""

    def __init__(self) -> None:
        self.asked: list[AskRecords] = []
        self.waiting: list[FoundRecords | Ended] = []
        self.reads: list[tuple[int, int]] = []
        self.line = LINE

    def request(self, asked: AskRecords) -> None:
        self.asked.append(asked)

    def poll(self) -> list[FoundRecords | Ended]:
        waiting, self.waiting = self.waiting, []
        return waiting

    def lines(self, start: int, count: int) -> list[RecordLine]:
        self.reads.append((start, count))
        return [self.line._replace(record=start + at) for at in range(count)]

    def places(self, start: int, count: int) -> Places:
        self.reads.append((start, count))
        return np.full(count, self.line.place, np.uint32)

    def close(self) -> None: ...


def rows_of(exchanges: int) -> tuple[RecordRows, Answers]:
    index = index_with(
        ({"api": 1 + (at % 4 == 3), "place": at} for at in range(exchanges)), ["Fetch", "Metadata"]
    )
    answers = Answers()
    return RecordRows(index, answers), answers


def all_places(count: int) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    return np.arange(count, dtype=np.uint32)


def test_exchanges_are_handed_over_bit_by_bit_and_those_only_that_can_have_records() -> None:
    count = 5 * ASK_EXCHANGES
    rows, answers = rows_of(count)
    rows.take(all_places(count))
    rows.step()
    assert len(answers.asked) == 2
    for _ in range(10):
        answers.waiting = [FoundRecords(rows.generation, 0, ASK_EXCHANGES, [])] if rows.is_busy else []
        rows.step()
    told = [place for asked in answers.asked for place, _, _ in SPAN.iter_unpack(asked.spans)]
    assert told == [place for place in range(count) if place % 4 != 3]
    assert all(len(asked.spans) <= ASK_EXCHANGES * SPAN.size for asked in answers.asked)


def test_an_exchange_is_handed_over_once() -> None:
    rows, answers = rows_of(8)
    rows.take(all_places(4))
    rows.take(all_places(8))
    rows.step()
    told = [place for asked in answers.asked for place, _, _ in SPAN.iter_unpack(asked.spans)]
    assert told == [0, 1, 2, 4, 5, 6]
    rows.begin(None)
    rows.take(all_places(8))
    rows.step()
    assert [len(asked.spans) // SPAN.size for asked in answers.asked] == [6, 6]
    assert answers.asked[-1].generation > answers.asked[0].generation


def test_answers_to_an_older_question_do_not_count() -> None:
    rows, answers = rows_of(4)
    old = rows.generation
    rows.begin(None)
    answers.waiting = [FoundRecords(old, 100, 1, ["x"])]
    assert not rows.step()
    assert len(rows) == 0
    answers.waiting = [FoundRecords(rows.generation, 7, 1, ["t", "zstd"])]
    assert rows.step()
    assert len(rows) == 7


def test_only_lines_that_are_drawn_are_read_a_page_at_a_time() -> None:
    rows, answers = rows_of(4)
    answers.waiting = [FoundRecords(rows.generation, 1_000_000, 3, ["t", "zstd"])]
    rows.step()
    rows.headings(120)
    assert answers.reads == [(0, 64), (64, 64), (999_936, 64)]  # for the width of columns, once
    answers.reads.clear()
    for row in range(500_000, 500_050):
        rows.cells(row, 120)
        rows.tone(row)
    assert answers.reads == [(499_968, 64), (500_032, 64)]
    for row in range(0, 1_000_000, 1_000):
        rows.line(row)
    assert len(rows._pages) <= 32


def test_the_last_page_is_read_again_when_it_grew() -> None:
    rows, answers = rows_of(4)
    answers.waiting = [FoundRecords(rows.generation, 3, 1, ["t", "zstd"])]
    rows.step()
    assert rows.line(2) is not None
    answers.waiting = [FoundRecords(rows.generation, 5, 1, [])]
    rows.step()
    assert rows.line(4) is not None


@pytest.mark.parametrize("width", [80, 120, 200])
def test_cells(width: int) -> None:
    rows, answers = rows_of(4)
    answers.waiting = [FoundRecords(rows.generation, 1, 3, ["t", "zstd"])]
    rows.step()
    answers.line = LINE._replace(flags=LINE.flags | IS_RELATIVE)
    cells = dict(zip((heading.title for heading in rows.headings(width)), rows.cells(0, width), strict=True))
    assert (cells["Topic"], cells["Part"], cells["Offset"], cells["Key"]) == ("t", "3", "+5", '"k"')
    assert cells["Value"] == '"vw"'
    if width >= 120:
        assert cells["Time"] == "1970-01-01T00:00:01.000Z"
        assert cells["Size"] == "3 B"
    rows.form = "hex"
    assert "76 77" in rows.cells(0, width)


DAY_MS = 24 * 3_600_000


@pytest.mark.parametrize(
    ("timestamp", "cell"), [(1_000, "00:00:01.000Z"), (DAY_MS - 1, "23:59:59.999Z"), (DAY_MS, "1970-01-02")]
)
def test_a_narrow_list_has_the_time_of_day_or_the_date_of_another_day(timestamp: int, cell: str) -> None:
    rows, answers = rows_of(4)  # all exchanges are of 1970-01-01
    answers.line = LINE._replace(timestamp=timestamp)
    answers.waiting = [FoundRecords(rows.generation, 1, 3, ["t", "zstd"])]
    rows.step()
    for width in range(62, 80):
        titles = [heading.title for heading in rows.headings(width)]
        assert rows.cells(0, width)[titles.index("Time")] == cell
    rows.clock.letter = "e"
    titles = [heading.title for heading in rows.headings(79)]
    assert rows.cells(0, 79)[titles.index("Time")] == f"{timestamp // 1_000}.{timestamp % 1_000:03}"


def test_words_are_not_shown_as_bytes() -> None:
    rows, answers = rows_of(4)
    answers.line = LINE._replace(flags=VALUE_IS_WORDS, value=b'OffsetCommit v3 {"group":"g')
    answers.waiting = [FoundRecords(rows.generation, 1, 3, ["t", "zstd"])]
    rows.step()
    assert 'OffsetCommit v3 {"group":"g…' in rows.cells(0, 80)
    rows.form = "hex"
    assert "…" in rows.cells(0, 80)


def test_columns_take_what_their_contents_need_and_more_where_those_grow() -> None:
    rows, answers = rows_of(4)
    answers.waiting = [FoundRecords(rows.generation, 1, 3, ["t" * 20, "zstd"])]
    rows.step()
    widths = {heading.title: heading.width for heading in rows.headings(200)}
    assert (widths["Topic"], widths["Part"], widths["Offset"], widths["Value"]) == (20, 4, 6, 0)
    before = rows.key(0)
    answers.line = LINE._replace(offset=123_456_789)
    answers.waiting = [FoundRecords(rows.generation, 2, 1, [])]
    rows.step()
    assert next(each.width for each in rows.headings(200) if each.title == "Offset") == 9
    assert rows.key(0) != before  # the row is to be drawn anew


def test_that_it_failed_is_told_and_ends_it() -> None:
    rows, answers = rows_of(4)
    rows.take(all_places(4))
    rows.step()
    assert rows.is_busy
    answers.waiting = [Ended("killed")]
    assert rows.step()
    assert (rows.reason, rows.is_busy) == ("killed", False)


def test_a_line_that_cannot_be_read_says_so() -> None:
    rows, answers = rows_of(4)
    answers.waiting = [FoundRecords(rows.generation, 1, 3, ["t", "zstd"])]
    rows.step()

    def lines(start: int, count: int) -> list[RecordLine]:
        raise OSError("gone")

    answers.lines = lines  # type: ignore[method-assign]
    assert "cannot be read" in rows.cells(0, 120)
    assert rows.tone(0) == "table--error"
    assert rows.number(0) is None


def test_the_apis_with_records_are_those_of_the_definitions() -> None:
    found = set()
    for key in apis.api_keys():
        for version in apis.versions(key):
            for kind in ("request", "response"):
                if _has_records(message_struct(key, version, kind)):
                    found.add(apis.api_name(key))
    assert found == set(CARRIERS)


def _has_records(struct: Struct) -> bool:
    return any(
        field.type == "records" or (field.struct is not None and _has_records(field.struct))
        for field in struct.fields
    )


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (b'{"a":1}', '{"a":1}'),
        (b"[1, 2]", "[1, 2]"),
        (b'{"a": [', '"{"a": ["'),
        (b"{brace}", '"{brace}"'),
        (b"[ERROR] no", '"[ERROR] no"'),
        (b"word", '"word"'),
        (b'"word"', '""word""'),
    ],
)
def test_json_stands_without_quotes_around_it(value: bytes, cell: str) -> None:
    rows, answers = rows_of(1)
    answers.line = LINE._replace(value=value, value_size=len(value))
    rows._texts = [""] * 6
    rows._grow(1)
    titles = [heading.title for heading in rows.headings(120)]
    assert rows.cells(0, 120)[titles.index("Value")] == cell


def test_of_json_that_is_cut_the_beginning_stands_without_quotes_too() -> None:
    rows, answers = rows_of(1)
    answers.line = LINE._replace(value=b'{"a": "' + b"x" * 50, value_size=10_000)
    rows._texts = [""] * 6
    rows._grow(1)
    titles = [heading.title for heading in rows.headings(120)]
    assert rows.cells(0, 120)[titles.index("Value")] == '{"a": "' + "x" * 50 + "…"


def test_the_places_of_rows_are_read_once() -> None:
    rows, answers = rows_of(8)
    rows.take(all_places(8))
    rows.step()
    for count in (100, 100, 150):
        answers.waiting = [FoundRecords(rows.generation, count, 0, [])]
        rows.step()
        assert rows.read_places()
        assert len(rows.places) == count
    assert answers.reads == [(0, 100), (100, 50)]
    rows.begin(None)
    assert len(rows.places) == 0


def test_the_places_of_many_rows_are_read_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_PLACES_AT_ONCE", 40)
    rows, answers = rows_of(8)
    rows.take(all_places(8))
    rows.step()
    answers.waiting = [FoundRecords(rows.generation, 100, 0, [])]
    rows.step()
    assert [(rows.read_places(), len(rows.places)) for _ in range(4)] == [
        (False, 40),
        (False, 80),
        (True, 100),
        (True, 100),
    ]
    assert answers.reads == [(0, 40), (40, 40), (80, 20)]
