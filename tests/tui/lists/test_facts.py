"""Any statistic as columns of figures."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis.catalogue import STATISTICS
from kdissect.analysis.declared import BANDS, Declared
from kdissect.analysis.fold import Row
from kdissect.present.form import Clock
from kdissect.tui.lists.figures import Figures
from kdissect.tui.pages import facts

HOSTILE = "a\x1b[2J\u202eb[red]\r\n"


def value_of(column: Declared) -> Any:
    """Something that may stand in a column."""
    many = {"texts": [HOSTILE], "int64s": [3, 4]}
    if column.type in many:
        return many[column.type]
    return {"text": HOSTILE, "bool": True, "float64": 1.5}.get(column.type, 7)


def row_of(name: str, **given: Any) -> Row:
    return {**{each.name: value_of(each) for each in STATISTICS[name].columns}, **given}


def shown(name: str, *rows: Row) -> Figures:
    figures = facts.figures()
    figures.show(facts.numbered(name, rows), facts.columns_of(name, Clock()))
    return figures


@pytest.mark.parametrize("name", STATISTICS)
def test_every_statistic_is_shown_sorted_and_sanitised(name: str) -> None:
    empty = dict.fromkeys(each.name for each in STATISTICS[name].columns if each.unit != BANDS)
    figures = shown(name, row_of(name), {**row_of(name), **empty})
    for room in (40, 80, 120, 1_000):
        assert figures.headings(room)
        cells = [cell for row in range(2) for cell in figures.cells(row, room)]
        assert all(cell.isprintable() for cell in cells)
    assert len(figures.headings(5_000)) == len(STATISTICS[name].columns)
    assert figures.without_room(5_000) == 0
    for column in figures.columns:
        figures.sort_by(column.title)
        figures.turn()
    assert len(figures) == 2


def test_columns_without_room_are_counted() -> None:
    figures = shown("tcp", row_of("tcp"))
    assert len(figures.headings(80)) + figures.without_room(80) == len(STATISTICS["tcp"].columns)


def test_what_is_rare_is_not_said_where_it_is_0() -> None:
    (column,) = (each for each in facts.columns_of("srt", Clock()) if each.title == "unanswered")
    assert column.text(row_of("srt", **{"unanswered": 0})) == ""
    assert column.text(row_of("srt", **{"unanswered": 2})) == "2"


def test_rows_about_the_same_are_told_apart() -> None:
    figures = shown("tcp", row_of("tcp"), row_of("tcp"))
    assert figures.identity(0) != figures.identity(1)


def test_the_filter_of_a_row_is_made_of_what_it_is_about() -> None:
    row = row_of("lag", group="g", topic='a"b', partition=3)
    assert facts.filter_of("lag", row) == 'group == "g" and topic == "a\\"b" and partition == 3'
    assert facts.filter_of("io", row_of("io")) is None


def test_the_list_says_what_each_tells() -> None:
    figures = facts.list_of(["tcp", "lag"])
    assert [list(figures.cells(at, 120)) for at in range(2)] == [
        [name, STATISTICS[name].about] for name in ("tcp", "lag")
    ]
