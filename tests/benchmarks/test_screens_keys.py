"""Keys on all screens: which are pressed, and the figures of several starts together."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from unittest import mock

import pytest

from benchmarks import screens_keys
from benchmarks.screens_figures import Answer
from benchmarks.screens_keys import Opened, Pressed, Run, figures_of, next_screen, run
from benchmarks.screens_spent import SpentTime
from benchmarks.traffic import multiply
from kdissect.feed.decoder import Decoder
from kdissect.settings.places import PAGE_KEYS
from tests.amount import times
from tests.feed.feeds import source_of


def pressed(count: int, waited: float, screens: int = 2) -> Pressed:
    """Some keys that all took the same time."""
    answer = Answer(
        waited, waited / 2, 0.001, 0.0, SpentTime({"frames": waited / 2}, {"frames": 1}), "Topics", "j"
    )
    opened = [Opened("topics", answer, 0.1)] if count else []
    return Pressed(opened, [answer] * count, 1, screens, count / 20)


def values(*runs: Run) -> dict[str, float]:
    """The figures of runs, the first of each name."""
    return {each.name.strip(): each.value for each in reversed(list(figures_of(runs)))}


def test_keys_of_all_starts_count_together() -> None:
    found = values(Run(1.0, pressed(297, 0.01), 5.0, None), Run(0.8, pressed(203, 0.04), 0.1, None))
    assert found["keys"] == 500
    assert found["keys that had nothing to change"] == 2
    assert found["keys per second"] == pytest.approx(20, abs=0.2)
    assert found["starts of the screens"] == 2
    assert found["start to first page"] == 1_000
    percents = [found[f"key on all screens while reading, {each}"] for each in ("p50", "p95", "p99", "max")]
    assert percents == pytest.approx([10, 40, 40, 40])
    assert found["slow: j on Topics"] == pytest.approx(40)


@pytest.mark.parametrize(
    ("count", "waited", "is_met"), [(500, 0.01, True), (499, 0.01, False), (500, 0.06, False)]
)
def test_too_few_keys_and_slow_keys_exceed_a_limit(count: int, waited: float, is_met: bool) -> None:
    figures = list(figures_of([Run(1.0, pressed(count, waited), 5.0, None)]))
    assert all(each.is_met for each in figures) == is_met


def test_the_next_start_goes_on_with_the_next_screen() -> None:
    runs = [Run(1.0, pressed(90, 0.01, 5), 0.1, None), Run(1.0, pressed(90, 0.01, 6), 0.1, None)]
    assert next_screen(runs) == 11


@pytest.mark.skipif(sys.platform != "linux", reason="the benchmark runs on Linux")
def test_every_screen_is_opened_and_answers_keys(tmp_path: Path) -> None:
    path = tmp_path / "traffic.pcap"
    multiply(path, 2_000)
    keys = screens_keys.KEYS[: times(1, 8)]
    with mock.patch.object(screens_keys, "LOOKED_AT_SECONDS", 0):
        found = asyncio.run(run(Decoder(source_of(path)), time.time(), 12, keys=keys, rounds=1, wait=200))
    assert found.after is not None
    assert {each.name for each in found.after.opened} >= {*PAGE_KEYS} - {"findings"}
    assert found.after.screens == len(PAGE_KEYS)
    assert found.after.keys
    assert [each.name for each in found.reading.opened][:1] in ([], [[*PAGE_KEYS][12 % len(PAGE_KEYS)]])
