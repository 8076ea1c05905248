"""What is slow among the rows of an index, against what the command line says of the exchanges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kdissect
from kdissect.analysis.histogram import Histogram
from kdissect.analysis.slow import ENOUGH, HANDFUL, LONGEST_NS, Slowness
from kdissect.filter.compiled import compile_filter
from kdissect.message import SASL_TOKEN
from kdissect.present.options import Options
from kdissect.protocol import apis
from kdissect.tui.feed.columns import FilterColumns
from kdissect.tui.feed.rows import HAS_TAKEN
from kdissect.tui.feed.slowness import NEVER, limits_of, slowness_of, why_nothing_is_slow
from kdissect.tui.filtering import Shown
from tests.cli.run import CAPTURES
from tests.tui.feeds import decoded, index_of, index_with

TEXTS = ["Fetch", "Produce", SASL_TOKEN]


def taking(api: int, times: range) -> list[dict[str, int]]:
    return [{"api": api, "taken_ns": ns, "flags": HAS_TAKEN} for ns in times]


def test_slow_is_what_takes_longer_than_nearly_all_of_its_api() -> None:
    few, tokens = taking(2, range(1, HANDFUL)), taking(3, range(1, 2 * ENOUGH))
    index = index_with([*few, *taking(1, range(1, 2 * ENOUGH + 1)), *tokens, {"api": 1}], TEXTS)
    assert limits_of(index, slowness_of(index)).tolist() == [NEVER, 2 * ENOUGH * 99 // 100, LONGEST_NS, NEVER]
    index = index_with(taking(2, range(1, ENOUGH)), TEXTS)
    assert limits_of(index, slowness_of(index)).tolist()[2] == 3 * ENOUGH // 2


def test_a_time_of_the_users_is_for_every_api_that_has_a_key() -> None:
    index = index_with([*taking(1, range(3)), *taking(2, range(3)), *taking(3, range(3))], TEXTS)
    assert limits_of(index, slowness_of(index, 5)).tolist() == [NEVER, 5, 5, NEVER]


@given(st.lists(st.integers(-(10**6), 10**12), max_size=3 * ENOUGH))
def test_the_limit_is_that_of_the_histogram(times: list[int]) -> None:
    histogram = Histogram()
    for time in times:
        histogram.add(time)
    index = index_with(({"api": 1, "taken_ns": ns, "flags": HAS_TAKEN} for ns in times), TEXTS)
    found, wanted = slowness_of(index).limit_ns(apis.api_key("Fetch")), LONGEST_NS
    if len(times) >= HANDFUL:
        wanted = min(LONGEST_NS, 3 * max(0, histogram.ceiling(50) or 0))
    if len(times) >= ENOUGH:
        wanted = histogram.ceiling(99) or 0
    assert found == wanted


def test_where_nothing_is_slow_it_is_said_why() -> None:
    index = index_with(taking(1, range(1, 4)), TEXTS)
    assert "3 times their median" in (why_nothing_is_slow(index, slowness_of(index)) or "")
    assert "longer than 1 ms" in (why_nothing_is_slow(index, slowness_of(index, 1_000_000)) or "")
    assert why_nothing_is_slow(index, slowness_of(index, 2)) is None


@pytest.mark.parametrize("slow_ms", [None, 2])
@pytest.mark.parametrize("name", ["basic-kafka43", "errors", "consumer-group-kip848"])
def test_the_screens_and_the_command_line_call_the_same_slow(name: str, slow_ms: int | None) -> None:
    path = CAPTURES / f"{name}.pcapng"
    told = Slowness(None if slow_ms is None else slow_ms * 1_000_000)
    exchanges = list(kdissect.read(path))
    for exchange in exchanges:
        told.feed(exchange)
    feed = decoded(path)
    index = index_of(feed)
    shown = Shown(index, feed, Options(), slow_ms=slow_ms)
    shown.push("slow")
    wanted = sorted(each.number for each in exchanges if told.is_slow(each))
    assert index.column("number")[shown.places].tolist() == wanted
    assert shown.progress is None
    feed.close()


def test_the_rows_answer_alone() -> None:
    index = index_with(taking(1, range(1, 2 * ENOUGH + 1)), TEXTS)
    slowness = slowness_of(index)
    found = FilterColumns(index, 0, len(index), slowness).masks(compile_filter("slow", slowness=slowness))
    assert found.certain is found.possible
    assert np.flatnonzero(found.certain).tolist() == [2 * ENOUGH - 2, 2 * ENOUGH - 1]
