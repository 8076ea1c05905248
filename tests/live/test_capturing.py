"""The loop of the capture process, with sources and clocks of our own."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import closing
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pytest

from kdissect.capture.reader import Interface
from kdissect.live.capturing import Capturer
from kdissect.live.journal import Entry, Gone, JournalReader, JournalWriter, Lost, Status, status_of
from kdissect.live.rotation import Bounds
from kdissect.live.sources import PacketSource
from kdissect.live.spool import SECOND, Spool
from kdissect.live.waiting import InTurns, WayToWait, waiting_for
from tests.live.fakes import BEGAN_NS, FakeClock, FakeSource
from tests.live.test_spool import packets_of


class Capturing:
    """A capture in a folder."""

    def __init__(self, folder: Path, *sources: FakeSource, stop: Bounds = Bounds()) -> None:  # noqa: B008
        self.folder = folder
        self.path = folder / "out.pcapng"
        self.clock = FakeClock()
        journal = JournalWriter(str(folder))
        spool = Spool(str(self.path), Bounds(), self.clock, journal.append, stop)
        self.capturer = Capturer(sources, spool, journal, stop.seconds, self.clock)

    def step(self, passed: float = 1) -> str | None:
        self.clock.passed += passed
        return self.capturer.step()

    @property
    def status(self) -> Status:
        found = status_of(str(self.folder))
        assert found is not None
        return found


def test_what_comes_is_written_and_counted(tmp_path: Path) -> None:
    one, other = FakeSource("eth0"), FakeSource("eth1")
    capturing = Capturing(tmp_path, one, other)
    one.put(b"a", b"b")
    other.put(b"c")
    one.put(b"d")
    assert capturing.step() is None
    assert packets_of(capturing.path) == [b"a", b"b", b"d", b"c"]
    status = capturing.status
    assert (status.received, status.written, status.dropped, status.files, status.fill) == (4, 4, 0, 1, 0.25)
    assert status.notes == ()


def test_drops_are_told_once_and_counted_always(tmp_path: Path) -> None:
    source = FakeSource()
    capturing = Capturing(tmp_path, source)
    for dropped in (0, 3, 10):
        source.dropped = dropped
        capturing.step()
    assert capturing.status.dropped == 10
    assert capturing.status.notes == ("the system drops packets: 3 so far, the ring was full",)


@pytest.mark.parametrize(("step", "words"), [(3_600, "forward by 3,600.0 s"), (-90, "back by 90.0 s")])
def test_a_clock_that_is_set_is_told_once(tmp_path: Path, step: int, words: str) -> None:
    capturing = Capturing(tmp_path, FakeSource())
    capturing.step()
    capturing.clock.step_ns = step * SECOND
    capturing.step()
    capturing.step()
    assert capturing.status.notes == (
        f"the clock was set {words}; times before and after cannot be compared",
    )


def test_a_full_disk_is_told_when_it_begins_and_when_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = FakeSource()
    capturing = Capturing(tmp_path, source)

    def fails(_: int, __: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("kdissect.live.spool.os.write", fails)
        source.put(b"lost", b"lost too")
        capturing.step()
        capturing.step(0.5)
    assert [note.split(": ", 1)[1] for note in capturing.status.notes] == [
        "No space left on device: packets are lost until it can be written again"
    ]
    source.put(b"a")
    capturing.step(0.3)
    assert len(capturing.status.notes) == 1  # it may be full again at once
    capturing.step(2)
    assert list(capturing.status.notes)[1:] == ["writing goes on; 2 packets lost"]
    assert (capturing.status.lost, capturing.status.written) == (2, 1)
    entries = entries_of(tmp_path)
    assert entries[1:] == [Lost(2, 0, BEGAN_NS, BEGAN_NS, f"{capturing.path}: No space left on device")]


def entries_of(folder: Path) -> list[Entry]:
    with closing(JournalReader(str(folder))) as journal:
        return list(iter(journal.next_entry, None))


def test_an_interface_that_has_vanished_is_in_the_journal_and_one_that_ended_is_not(tmp_path: Path) -> None:
    one, other = FakeSource("eth0"), FakeSource("eth1")
    capturing = Capturing(tmp_path, one, other)
    one.put(b"a")
    one.is_ended = one.is_gone = other.is_ended = True
    assert capturing.step() == "nothing is left to capture from"
    assert entries_of(tmp_path)[1:] == [Gone("eth0", 1, capturing.clock.wall_ns())]


def test_trouble_with_an_interface_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    one, other = FakeSource("eth0"), FakeSource("eth1")
    capturing = Capturing(tmp_path, one, other)
    one.troubles.append("eth0 is gone")
    one.is_ended = True
    assert capturing.step() is None
    other.put(b"x")
    assert capturing.step() is None
    assert packets_of(capturing.path) == [b"x"]
    assert capturing.status.notes == ("eth0 is gone",)
    other.is_ended = True
    assert capturing.step() == "nothing is left to capture from"


@pytest.mark.parametrize(
    "stop", [Bounds(packets=3), Bounds(seconds=2), Bounds(bytes=300)], ids=["packets", "seconds", "bytes"]
)
def test_a_limit_ends_it(tmp_path: Path, stop: Bounds) -> None:
    source = FakeSource()
    capturing = Capturing(tmp_path, source, stop=stop)
    source.put(b"a")
    assert capturing.step() is None
    source.put(b"b" * 60, b"c" * 60)
    assert capturing.step() == "a limit of -a is reached"


def test_what_has_come_is_written_before_the_end(tmp_path: Path) -> None:
    source = FakeSource()
    capturing = Capturing(tmp_path, source)
    source.put(b"last")
    journal = JournalReader(str(tmp_path))
    assert not journal.is_over()
    capturing.capturer.finish("stopped")
    assert journal.is_over()
    journal.close()
    assert packets_of(capturing.path) == [b"last"]
    assert capturing.status.reason == "stopped"
    assert source.is_stopped
    assert source.is_closed


@pytest.mark.parametrize("way", [waiting_for, lambda control, _: InTurns(control)], ids=["own", "in turns"])
def test_it_ends_when_the_pipe_to_who_started_it_is_shut(
    tmp_path: Path, way: Callable[[Any, list[PacketSource]], WayToWait]
) -> None:
    source = FakeSource()
    capturing = Capturing(tmp_path, source)
    source.put(b"a")
    ours, theirs = Pipe()
    ours.close()
    with theirs:
        capturing.capturer.run(way(theirs, [source]))
    assert packets_of(capturing.path) == [b"a"]
    assert capturing.status.reason == "stopped"


@pytest.mark.parametrize("way", [waiting_for, lambda control, _: InTurns(control)], ids=["own", "in turns"])
def test_a_source_that_is_over_is_not_waited_for(
    tmp_path: Path, way: Callable[[Any, list[PacketSource]], WayToWait]
) -> None:
    one, other = FakeSource("eth0"), FakeSource("eth1")
    capturing = Capturing(tmp_path, one, other, stop=Bounds(packets=1))
    one.is_ended = True
    other.put(b"x")
    ours, theirs = Pipe()
    with ours, theirs:
        capturing.capturer.run(way(theirs, [one, other]))
    assert packets_of(capturing.path) == [b"x"]
    assert capturing.status.reason == "a limit of -a is reached"


def test_windows_says_by_an_error_that_a_pipe_is_shut() -> None:
    class Shut:
        def poll(self, _: float) -> bool:
            raise BrokenPipeError(109, "The pipe has been ended")

    pipe: Any = Shut()
    assert InTurns(pipe).wait(1)


def test_an_interface_of_a_stream_may_come_later(tmp_path: Path) -> None:
    source = FakeSource()
    capturing = Capturing(tmp_path, source)
    source.put(b"a")
    capturing.step()
    source.interfaces.append(Interface(113, 0, "other"))
    source.put(b"b", interface=1)
    capturing.step()
    assert packets_of(capturing.path) == [b"a", b"b"]


def test_a_defect_is_told_in_the_status(tmp_path: Path) -> None:
    capturing = Capturing(tmp_path, FakeSource())
    capturing.step()
    capturing.capturer.give_up("a defect")
    assert (capturing.status.reason, capturing.status.notes) == ("a defect", ("a defect",))
