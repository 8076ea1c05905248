"""Statistics over parts, merged, are the statistic over the whole; and they survive being sent elsewhere."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdissect.analysis.catalogue import STATISTICS
from kdissect.limits import DEFAULTS
from kdissect.present.options import PLAIN
from kdissect.present.statistics import STATISTICS as TABLES
from tests.amount import some, times
from tests.analysis.folds import SPEC, case_of, events_of, fold

CASES = ["java43-groups", "java43-kip848", "java43-share-2", "midstream", "zk39-ibp28", "ipv6"]
CASES += ["sweep-39-controller"]


def test_every_statistic_is_tested_here() -> None:
    assert {text.partition(",")[0] for text in SPEC} == set(STATISTICS) == set(TABLES)


@pytest.mark.parametrize("case", some(CASES, 4, "java43-groups", "sweep-39-controller"))
@pytest.mark.parametrize("text", SPEC)
def test_event_by_event_is_the_whole(text: str, case: str) -> None:
    """One statistic for every event, merged from the first to the last."""
    events = events_of(case)
    whole = fold(text, [])
    for event in events:
        whole.merge(fold(text, [event]))
    assert whole.result() == fold(text, events).result()


@pytest.mark.parametrize("text", SPEC)
@settings(max_examples=times(5, 25), deadline=None)
@given(data=st.data())
def test_parts_in_any_grouping_are_the_whole(text: str, data: Any) -> None:
    events = events_of(data.draw(st.sampled_from(CASES)))
    one, two = sorted(data.draw(st.tuples(*[st.integers(0, len(events))] * 2)))
    first, second, third = (fold(text, part) for part in (events[:one], events[one:two], events[two:]))
    if data.draw(st.booleans()):
        first.merge(second)
        first.merge(third)
    else:
        second.merge(third)
        first.merge(second)
    assert first.result() == fold(text, events).result()


@pytest.mark.parametrize("text", SPEC)
def test_a_merged_part_is_not_changed_later(text: str) -> None:
    """Feeding goes on in the whole without reaching into what was merged."""
    events = events_of("java43-groups")
    part = fold(text, events[:200])
    before = part.result()
    whole = fold(text, [])
    whole.merge(part)
    for event in events[200:]:
        whole.feed(event)
    assert part.result() == before
    assert whole.result() == fold(text, events).result()


@pytest.mark.parametrize("text", SPEC)
def test_it_can_be_sent_to_another_process_and_go_on_there(text: str) -> None:
    events = events_of("java43-kip848")
    sent = pickle.loads(pickle.dumps(fold(text, events[:150])))
    for event in events[150:]:
        sent.feed(event)
    assert sent.result() == fold(text, events).result()


@pytest.mark.parametrize("text", SPEC)
def test_rows_have_the_columns_of_their_table(text: str) -> None:
    table = TABLES[text.partition(",")[0]]
    names = [column.name for column in table.columns]
    rows = [row for case in CASES for row in fold(text, events_of(case)).result()]
    assert rows
    for row in rows:
        assert list(row) == names
        for column, value in zip(table.columns, table.row(row, PLAIN), strict=True):
            assert value is None or isinstance(value, _TYPES[column.type]), (column.name, value)


_TYPES: dict[str, type | tuple[type, ...]] = {"int16": int, "int32": int, "int64": int, "float64": float}
_TYPES |= {"bool": bool, "text": str, "texts": list, "int64s": list, "json": (list, dict)}


@pytest.mark.parametrize("text", SPEC)
def test_too_many_rows_are_counted_and_the_first_are_kept(text: str) -> None:
    events = events_of(case_of(text))
    few = fold(text, events, DEFAULTS._replace(rows=1))
    assert few.left_out > 0
    assert len(few.result()) == 1
    assert fold(text, events).left_out == 0
    other = fold(text, events, DEFAULTS._replace(rows=1))
    few.merge(other)
    assert few.left_out > other.left_out
