"""How much time rows take for their exchanges while they are drawn."""

from __future__ import annotations

import time

import pytest

from kdissect.feed import frame_time as module
from kdissect.feed.frame_time import FrameTime


class Clock:
    """A clock that goes on only as it is told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


def spend(frame_time: FrameTime, clock: Clock, seconds: float) -> None:
    with frame_time.spent():
        clock.now += seconds


def test_in_each_frame_there_is_only_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, frame_time, told = Clock(monkeypatch), FrameTime(), []
    frame_time.when_behind = lambda: told.append(clock.now)
    assert frame_time.is_left()
    spend(frame_time, clock, module.SPENT_SECONDS / 2)
    assert frame_time.is_left()
    spend(frame_time, clock, module.SPENT_SECONDS)
    assert not frame_time.is_left()
    assert not frame_time.is_left()
    assert told == [clock.now]  # once for all that wait
    clock.now += module.FRAME_SECONDS
    assert frame_time.is_left()


def test_rows_can_ask_to_be_drawn_again_once_in_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, frame_time, told = Clock(monkeypatch), FrameTime(), []
    frame_time.when_behind = lambda: told.append(clock.now)
    for _ in range(2):
        assert frame_time.is_left()
        frame_time.draw_again()
        frame_time.draw_again()
        clock.now += 2 * module.FRAME_SECONDS
    assert len(told) == 2
