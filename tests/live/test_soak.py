"""A part of the soak (:mod:`tests.live.soak`), in which connections last: those that are over are
remembered for a minute, and would grow in number all the time."""

from __future__ import annotations

import pytest

from tests.amount import times
from tests.live.machine import Look
from tests.live.requires import requires_namespaces
from tests.live.soak import GROWTH_BYTES, MIB, Watched, soak

pytest.importorskip("scapy")
pytest.importorskip("prometheus_client")


@requires_namespaces
def test_memory_stays_flat_and_nothing_is_lost() -> None:
    seconds = times(12, 30)
    soaked = soak(seconds=seconds, rate=400, churn=0.01)
    assert list(soaked.wrongs()) == []
    assert soaked.sent > 300 * seconds
    assert soaked.largest_spool < 100 * MIB


@pytest.mark.parametrize(
    ("memory", "descriptors", "words"),
    [(0, 0, None), (300, 0, "its memory has grown by"), (0, 1, "more files open")],
)
def test_what_leaks_is_found(memory: int, descriptors: int, words: str | None) -> None:
    # 400 exchanges a second for a minute, each of which leaves something; an exchange itself is larger.
    watched = Watched("decoder", 0)
    watched.looks = [Look(30 * MIB + memory * 400 * at, 20 + descriptors * at, 0.1 * at) for at in range(60)]
    found = list(watched.wrongs(20_000))
    if words is None:
        assert found == []
    else:
        assert len(found) == 1
        assert words in found[0]


def test_the_screens_may_keep_a_row_for_each_exchange_and_no_more() -> None:
    assert GROWTH_BYTES < 200 * 20_000
    for kept, is_wrong in ((100, False), (600, True)):
        watched = Watched("screens", 0, 200)
        watched.looks = [Look(60 * MIB + kept * 400 * at, 20, 0.1 * at) for at in range(60)]
        assert bool(list(watched.wrongs(24_000))) == is_wrong
