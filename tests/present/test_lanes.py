"""Parts of response times as a bar and in words."""

from __future__ import annotations

import pytest

from kdissect.analysis.catalogue import STATISTICS
from kdissect.analysis.fold import MILLISECOND, Row
from kdissect.present.lanes import CELLS, PARTS, bar, in_words


def row(**parts_ms: int) -> Row:
    empty = dict.fromkeys(each.name for each in STATISTICS["latency"].columns)
    return {**empty, **{f"{name}_sum_ns": ms * MILLISECOND for name, ms in parts_ms.items()}}


def test_a_bar_has_the_parts_in_the_order_of_time_each_as_long_as_it_took() -> None:
    text = bar(row(request_transfer=10, behind=20, served=30, broker=20, wait=10))
    signs = [each.sign for each in PARTS if each.sign in text]
    assert [text.count(sign) for sign in signs] == [4, 8, 4, 8]
    assert text == "".join(sign * text.count(sign) for sign in signs)


@pytest.mark.parametrize("parts", [{"behind": 1, "served": 999, "broker": 999}, {"served": 7, "broker": 2}])
def test_it_is_full_whatever_the_parts(parts: dict[str, int]) -> None:
    assert len(bar(row(**parts))) == CELLS
    assert len(bar(row(**parts), 13)) == 13


def test_what_is_not_known_is_said_and_has_no_bar() -> None:
    assert (bar(None), bar(row())) == ("", "")
    assert "not known" in in_words(row())


def test_words_begin_with_the_largest() -> None:
    text = in_words(row(behind=300, served=100, broker=100, think=5_000))
    assert text.startswith(
        "400 ms in all:   ▒\u00a0waiting behind another request 300 ms (75 %)   █\u00a0the broker worked"
    )
    assert "the client between answer and request 5.00 s" in text
