"""The benchmark of the screens in small, with bounds that a busy machine keeps too."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import pytest

import kdissect
from benchmarks.screens_figures import measure
from benchmarks.traffic import multiply
from kdissect.feed.decoder import Decoder
from tests.amount import times
from tests.feed.feeds import source_of

BOUNDS = {
    "key to frame, p50": 1_000,
    "columns: api == Fetch and latency > 5ms": 500,
    "columns: error": 500,
    "deep filter, first results": 60_000,
}
"""Milliseconds: ten times and more what they are where nobody else works."""


def test_traffic_is_that_of_the_captures_again_and_again(tmp_path: Path) -> None:
    path = tmp_path / "traffic.pcap"
    count = multiply(path, 1_000)
    exchanges = list(kdissect.read(path))
    assert len(exchanges) == count >= 1_000
    assert not any(exchange.faults for exchange in exchanges)
    assert len({exchange.client for exchange in exchanges}) > 100


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read as Linux tells it")
def test_the_screens_hold_their_figures(tmp_path: Path) -> None:
    path = tmp_path / "traffic.pcap"
    count = multiply(path, times(2_000, 20_000))
    decoder = Decoder(source_of(path))
    figures = {
        figure.name: figure
        for figure in asyncio.run(measure(decoder, time.time(), keys=times(20, 60), wait=200))
    }
    assert figures["exchanges"].value == count
    for name, bound in BOUNDS.items():
        assert figures[name].value < bound, figures[name]
    assert "memory of the screens" in figures
