"""Screens that are tested wait for less than a user's."""

from __future__ import annotations

import asyncio
import time

from tests.tui.snapshots import HASTE, _in_haste


def test_time_passes_faster_only_while_nobody_has_anything_to_do() -> None:
    real = time.monotonic

    async def waits_and_works() -> tuple[float, float, float]:
        with _in_haste():
            begin, begun = time.monotonic(), real()
            await asyncio.sleep(0.8)
            waited, took = time.monotonic() - begin, real() - begun
            begin, begun = time.monotonic(), real()
            time.sleep(0.1)  # as work does
            return waited, took, (time.monotonic() - begin) / (real() - begun)

    waited, took, pace = asyncio.run(waits_and_works())
    assert waited >= 0.8
    assert took >= 0.8 / HASTE
    assert took < waited
    assert 0.9 < pace < 1.1
    assert time.monotonic is real
