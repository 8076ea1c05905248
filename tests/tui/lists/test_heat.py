"""Bands of response times, and columns of time."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kdissect.analysis.fold import MILLISECOND, SECOND
from kdissect.analysis.histogram import BANDS_NS
from kdissect.feed.columns import FilterColumns
from kdissect.filter.compiled import Filter, compile_filter
from kdissect.present.options import Options
from kdissect.tui.lists.heat import EDGES_BY_ROOM, SHADES, Heat, HeatCell
from tests.feed.feeds import index_with

FETCH, PRODUCE = 1, 2
ROWS = [
    {"api": FETCH, "api_version": 4, "time_ns": 0, "latency_ns": 10},
    {"api": FETCH, "api_version": 4, "time_ns": 9 * SECOND, "latency_ns": 2 * MILLISECOND},
    {"api": FETCH, "api_version": 4, "time_ns": 9 * SECOND, "latency_ns": 2 * MILLISECOND},
    {"api": FETCH, "api_version": 5, "time_ns": 5 * SECOND, "latency_ns": 10 * SECOND},
    {"api": PRODUCE, "api_version": 4, "time_ns": 5 * SECOND, "latency_ns": 10},
    {"api": FETCH, "api_version": 4, "time_ns": 5 * SECOND},
]


def heat_of(count: int = 5, packets_ns: tuple[int, int] = (0, 10 * SECOND)) -> Heat:
    """Of the first rows.

    :param packets_ns: the times of the first packet and of the last.
    """
    index = index_with(ROWS, ["Fetch", "Produce"])
    index.first_ns, index.last_ns = packets_ns
    heat = Heat(str)
    heat.show(index, index.order()[:count], "all")
    return heat


def test_a_line_is_a_band_and_more_are_darker() -> None:
    heat = heat_of()
    lines = [heat.cells(row, 10 + 9 + 2 + 10) for row in range(len(heat))]
    assert len(lines) == len(BANDS_NS) + 1
    assert lines[0] == ["≥ 3.16 s", "1", "    " + lines[0][2][4] + "     "]
    assert lines[-1][1] == "2"
    (two,) = (line[2] for row, line in enumerate(lines) if heat.band(row)[0] == BANDS_NS[2])
    assert two[8] == SHADES[-1]
    assert SHADES.index(lines[0][2][4]) < SHADES.index(two[8])


def test_nothing_is_no_line() -> None:
    heat = Heat(str)
    assert len(heat) == 0
    assert heat.headings(80)[-1].title == "no response times"


def test_two_bands_share_a_line_where_there_is_little_room() -> None:
    heat = heat_of()
    heat.fit(len(BANDS_NS))
    bands = [heat.band(row) for row in range(len(heat))]
    assert bands[0] == (SECOND, None)
    assert bands[-1] == (None, SECOND // 10_000)
    assert all(low == ten for (low, _), (_, ten) in pairwise(bands))
    assert [heat.cells(row, 40)[1] for row in range(len(heat))] == ["1", "", "", "2", "", "2"]


@pytest.mark.parametrize("lines", [6, 11, 20, 29, 38, 47])
def test_bands_are_as_many_as_there_are_lines_for(lines: int) -> None:
    heat = heat_of()
    for room in (lines, lines + 1):
        heat.fit(room)
        assert len(heat) == lines
    bands = [heat.band(row) for row in range(lines)]
    assert all(low == ten for (low, _), (_, ten) in pairwise(bands))
    assert [heat.row_of(low) for low, _ in bands] == list(range(lines))
    assert {*BANDS_NS[::2]} <= {low for low, _ in bands[:-1]}
    assert sum(int(heat.cells(row, 40)[1] or 0) for row in range(lines)) == 5


def test_the_cells_are_all_exchanges_each_once() -> None:
    heat = heat_of()
    for columns in (1, 7, 10, 59, 219):
        cells = [heat.cell(row, at, columns) for row in range(len(heat)) for at in range(columns)]
        assert sum(cell.exchanges for cell in cells) == 5
        for row in range(len(heat)):
            of_row = [cell.exchanges for cell in cells if cell[:2] == heat.band(row)]
            assert sum(of_row) == heat.cell(row, None, columns).exchanges
            assert [at for at, count in enumerate(of_row) if count] == heat.columns_with_any(row, columns)


def test_what_began_before_the_first_packet_or_after_the_last_has_a_cell() -> None:
    heat = heat_of(packets_ns=(4 * SECOND, 6 * SECOND))
    cells = [heat.cell(row, at, 10) for row in range(len(heat)) for at in range(10)]
    assert sum(cell.exchanges for cell in cells) == 5


def test_columns_follow_one_another_and_each_time_is_in_its_column() -> None:
    heat = heat_of()
    spans = [heat.span(at, 59) for at in range(59)]
    assert all(end == begin for (_, end), (begin, _) in pairwise(spans))
    assert spans[0][0] <= 0
    assert spans[-1][1] > 10 * SECOND
    assert all(heat.column_of(ns, 59) == at for at, span in enumerate(spans) for ns in (span[0], span[1] - 1))


def test_a_cell_knows_its_slowest() -> None:
    heat = heat_of()
    assert heat.slowest_row() == 0
    cell = heat.cell(0, None, 10)
    assert tuple(cell) == (3_162_277_660, None, None, 1, 10 * SECOND, 4)
    assert cell.words(str) == "≥ 3.16 s · 1 exchange, the slowest 10.0 s (No. 4)"
    at = heat.column_of(9 * SECOND, 10)
    cell = heat.cell(heat.row_of(2 * MILLISECOND), at, 10)
    assert cell.words(lambda ns: f"{ns / SECOND} s") == (
        "1.00 ms to 3.16 ms · 8.8 s to 9.9 s · 2 exchanges, the slowest 2.00 ms (No. 2)"
    )
    assert heat.cell(1, at, 10).words(str).endswith("0 exchanges")


@pytest.mark.parametrize("lines", [6, 11, 20, 29, 38, 47])
def test_the_filter_of_a_band_has_its_ends_to_the_nanosecond(lines: int) -> None:
    bands = [(None, *edges, None) for edges in (each.tolist() for each in EDGES_BY_ROOM)]
    (edges,) = (each for each in bands if len(each) == lines + 1)
    for lowest, below in pairwise(edges):
        cell = HeatCell(lowest, below, None, 0, None, None)
        chosen = compile_filter(cell.band, Options())
        assert chosen.hints == ()
        (low, high) = (0 if lowest is None else lowest), (10**12 if below is None else below)
        for ns, is_in in ((low - 1, False), (low, True), (high - 1, True), (high, False)):
            if 0 <= ns < 10**12:
                assert _shows(chosen, ns) is is_in


def _shows(chosen: Filter, latency_ns: int) -> bool:
    index = index_with([{"api": 1, "latency_ns": latency_ns}], ["Fetch"])
    return bool(FilterColumns(index, 0, 1).masks(chosen).certain[0])
