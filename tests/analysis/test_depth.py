"""Requests in flight, against a plain count over all pairs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.analysis import counters
from kdissect.analysis.counters import Depth
from kdissect.tcp import packed

Times = list[tuple[int, int]]


@st.composite
def answered_in_order(draw: st.DrawFn) -> Times:
    """Requests and responses of one connection, as brokers answer: in the order of the requests."""
    asked = sorted(draw(st.lists(st.integers(0, 60), max_size=30)))
    out: Times = []
    last = 0
    for at in asked:
        last = max(last, at) + draw(st.integers(0, 10))
        out.append((at, last))
    return out


def depth_of(times: Times, limit: int = 1024) -> Depth:
    found = Depth(limit=limit)
    for asked, answered in times:
        found.add(asked, answered)
    return found


def plainly(times: Times) -> list[int]:
    return [1 + sum(answered > asked for _, answered in times[:at]) for at, (asked, _) in enumerate(times)]


@given(answered_in_order())
def test_it_is_what_a_count_over_all_pairs_gives(times: Times) -> None:
    found, depths = depth_of(times), plainly(times)
    assert (found.count, found.total, found.deepest) == (len(depths), sum(depths), max(depths, default=0))
    assert found.mean == (sum(depths) / len(depths) if depths else None)


@given(answered_in_order())
def test_merged_at_every_point_it_is_the_whole(times: Times) -> None:
    whole = depth_of(times)
    for at in range(len(times) + 1):
        found = depth_of(times[:at])
        found.merge(depth_of(times[at:]))
        assert found == whole


def test_times_that_make_no_sense_cost_no_memory() -> None:
    found = depth_of([(at, 10**18 + at) for at in range(1000)], limit=10)
    assert found.deepest == 11
    assert len(found.waiting) == len(found.head) == 10


def test_connections_are_counted_in_several_threads_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a number is packed, another thread packs one of its own. In the compiled form none can."""
    plain = packed.put
    is_nested = False

    def interrupted(raw: bytearray, at: int, value: int) -> None:
        nonlocal is_nested
        plain(raw, at, value)
        if not is_nested:
            is_nested = True
            depth_of([(900, 999)])
            is_nested = False

    monkeypatch.setattr(counters, "put", interrupted)
    found = depth_of([(1, 5), (2, 6), (3, 7)])
    assert found.waiting == [5, 6, 7]
    assert found.head == [(1, 1), (2, 2), (3, 3)]
