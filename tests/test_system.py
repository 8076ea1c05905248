"""Functions that systems provide in different ways. ``tests/live/test_windows.py`` tests those of Windows."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from kdissect import system


@pytest.mark.parametrize("can", [True, False], ids=["a loop that hears signals", "a loop that cannot"])
def test_a_loop_is_told_of_signals(can: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> list[signal.Signals]:
        loop, heard = asyncio.get_running_loop(), asyncio.Event()
        came: list[signal.Signals] = []

        def note(number: signal.Signals) -> None:
            came.append(number)
            heard.set()

        def refuse(*_: Any) -> None:
            raise NotImplementedError

        if not can:
            monkeypatch.setattr(loop, "add_signal_handler", refuse)
        system.call_at_signals(loop, [signal.SIGTERM], note)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(heard.wait(), 10)
        return came

    before = signal.getsignal(signal.SIGTERM)
    try:
        assert asyncio.run(run()) == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_bytes_at_a_place_are_read_and_written_and_the_position_stays() -> None:
    with system.temporary_file(".x") as file:
        descriptor = file.fileno()
        os.write(descriptor, b"0123456789")
        assert system.write_at(descriptor, b"xy", 2) == 2
        assert system.read_at(descriptor, 4, 1) == b"1xy4"
        assert os.lseek(descriptor, 0, os.SEEK_CUR) == 10


def test_a_named_file_can_be_opened_again_and_goes() -> None:
    with system.named_file(".x") as file:
        path = file.name
        file.write(b"abc")
        file.flush()
        with open(path, "rb") as again:
            assert again.read() == b"abc"
    assert not os.path.exists(path)


def test_a_lock_that_another_holds_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as first, path.open("w") as second:
        assert system.try_lock(first.fileno())
        assert not system.try_lock(second.fileno())
        first.close()
        assert system.try_lock(second.fileno())


def test_asking_whether_a_file_is_locked_leaves_it_free(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    with path.open("rb+") as first, path.open("rb+") as second:
        assert not system.is_locked(first.fileno())
        assert system.try_lock(second.fileno())
        assert system.is_locked(first.fileno())
