"""The parts of the processor time of a key."""

from __future__ import annotations

import asyncio
import gc
import threading
import time

import pytest
from textual.app import App

from benchmarks.screens_spent import COLLECTION, REST, Spent


def work(seconds: float) -> None:
    """Take processor time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_work_inside_other_work_counts_once_and_all_parts_add_up() -> None:
    spent, began = Spent(), time.thread_time()
    before = spent.so_far()
    inner = spent.counted("inner", lambda: work(0.01))

    def outer() -> None:
        work(0.005)
        inner()

    spent.counted("outer", outer)()
    work(0.002)
    took = time.thread_time() - began
    parts = spent.so_far().after(before)
    assert next(iter(parts.seconds)) == "inner"
    assert 0.01 <= parts.seconds["inner"] < 0.02
    assert 0.005 <= parts.seconds["outer"] < 0.01
    assert parts.counts == {"inner": 1, "outer": 1}
    assert sum(parts.seconds.values()) == pytest.approx(took, abs=0.002)


def test_work_of_other_threads_is_no_part() -> None:
    spent = Spent()
    thread = threading.Thread(target=spent.counted("other", lambda: work(0.005)))
    thread.start()
    thread.join()
    assert "other" not in spent.so_far().counts


def test_frames_timers_and_collections_are_told_apart() -> None:
    class Ticking(App[None]):
        def on_mount(self) -> None:
            self.set_timer(0.01, self._ticked)

        def _ticked(self) -> None:
            gc.collect()
            self.refresh()

    async def run() -> None:
        async with Ticking().run_test() as pilot:
            await pilot.pause(0.1)

    spent = Spent()
    with spent.watching():
        asyncio.run(run())
    counts = spent.so_far().counts
    assert counts["timer ticked"] == 1
    assert counts["frames"] >= 1
    assert counts["layouts"] >= 1
    assert counts[COLLECTION] >= 1
    assert REST not in counts
    assert not any(callback == spent._collected for callback in gc.callbacks)
