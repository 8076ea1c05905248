from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kdissect.present.form import Clock
from kdissect.present.options import Options
from kdissect.present.sanitise import width
from kdissect.present.statistics import STATISTICS
from kdissect.present.statistics_text import table_lines

TABLE = STATISTICS["topics"]
COLUMNS = [column for column in TABLE.columns if not column.apart]
"""Those that are shown also if all rows have the same."""


def row(topic: str, **given: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        column.name: {"texts": [], "int64s": [7], "float64": 1.5}.get(column.type, 7)
        for column in TABLE.columns
    }
    return {**values, "topic": topic, "cluster_id": None, "direction": "produce", "codecs": ["none"], **given}


def lines(room: int | None, whole: bool = False, *rows: dict[str, Any]) -> list[str]:
    shown = list(rows) or [row("short"), row("t" * 249, errors=3)]
    return list(table_lines(TABLE, shown, Options(), Clock("r", 0), whole, room))


def test_that_there_are_no_rows_is_said() -> None:
    assert list(table_lines(TABLE, [], Options(), Clock("r", 0))) == ["(no rows)"]


def test_without_a_limit_everything_is_printed_whole() -> None:
    text = lines(None)
    assert len(text) == 3
    assert "t" * 249 in text[2]
    assert all(column.name.removesuffix("_ns") in text[0] for column in COLUMNS)


@pytest.mark.parametrize("room", [40, 80, 120, 200])
def test_no_line_is_longer_than_the_room_and_what_is_left_out_is_named(room: int) -> None:
    head, *rest, said = lines(room)
    assert all(width(line) <= room for line in (head, *rest))
    shown = head.split()
    wanted = [column.name.removesuffix("_ns") for column in COLUMNS]
    left_out = said.removeprefix("(no room for ").partition(":")[0].split(", ")
    assert sorted([*shown, *left_out]) == sorted(wanted)
    assert shown[0] == "topic"
    assert "errors" in shown
    assert rest[1].partition(" ")[0].endswith("…")


def test_texts_that_are_short_take_no_more_than_they_need() -> None:
    head, *_ = lines(80, False, row("a"))
    assert head.startswith("topic  partition")


def test_each_row_of_a_long_table_keeps_its_own_values() -> None:
    count = 600
    head, *rest = lines(None, False, *(row(f"topic-{at}", partition=at) for at in range(count)))
    assert head.split()[:2] == ["topic", "partition"]
    assert [line.split()[:2] for line in rest] == [[f"topic-{at}", str(at)] for at in range(count)]


def test_rows_may_come_one_after_the_other_and_each_is_needed_once() -> None:
    made: list[int] = []

    def rows() -> Iterator[dict[str, Any]]:
        for at in range(600):
            made.append(at)
            yield row(f"topic-{at}", partition=at)

    text = list(table_lines(TABLE, rows(), Options(), Clock("r", 0)))
    assert text == lines(None, False, *(row(f"topic-{at}", partition=at) for at in range(600)))
    assert made == list(range(600))


@pytest.mark.parametrize("late", [0, 299, 599])
def test_a_column_is_shown_if_any_row_has_a_reason(late: int) -> None:
    shown = [row(f"topic-{at}", errors=0, cluster_id="one") for at in range(600)]
    assert not {"errors", "cluster_id"} & set(lines(None, False, *shown)[0].split())
    shown[late] = row("題", errors=7, cluster_id="two")
    head, *rest = lines(None, False, *shown)
    assert {"errors", "cluster_id"} <= set(head.split())
    assert [line.startswith("題") for line in rest] == [at == late for at in range(600)]
    assert {width(line[: line.index("produce")]) for line in rest} == {
        width(rest[0][: rest[0].index("produce")])
    }


def test_columns_that_were_asked_for_all_stay() -> None:
    text = lines(80, True)
    assert len(text) == 3
    assert len(text[0].split()) == len(TABLE.columns)


def test_a_wide_character_is_never_cut_in_half() -> None:
    _, line, *_ = lines(60, False, row("題" * 100))
    assert width(line) <= 60
