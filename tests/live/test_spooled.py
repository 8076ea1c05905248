"""The files of a capture process, read while it writes them."""

from __future__ import annotations

from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from kdissect.capture.blocks import statistics_block
from kdissect.capture.reader import Item
from kdissect.live.journal import Begun, Complete, Gone, JournalWriter, Lost
from kdissect.live.spooled import Spooled
from kdissect.model import Fault, Packet
from tests.capture.test_following import ETH0, capture_of, data_of
from tests.waiting import wait_until


class Spool:
    """A spool that is written by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.journal = JournalWriter(str(folder))

    def file(self, name: str, data: bytes, before: int = 0) -> Path:
        path = self.folder / name
        path.write_bytes(data)
        self.journal.append(Begun(str(path), before))
        return path


def test_a_spool_is_read_file_by_file_to_its_end(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    following = Spooled(str(tmp_path))
    first = spool.file("1", capture_of(1)[:-3])
    with first.open("ab") as file:
        file.write(capture_of(1)[-3:])
    assert isinstance(next(following), Packet)
    spool.file("2", capture_of(2, 3))
    spool.journal.close()
    assert data_of(list(following)) == [2, 3]
    following.close()


def test_files_are_removed_when_they_were_read_if_they_are_consumed(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    paths = [spool.file(str(number), capture_of(number)) for number in (1, 2, 3)]
    following = Spooled(str(tmp_path), consume=True)
    next(following)
    next(following)
    assert [path.exists() for path in paths] == [False, True, True]
    spool.journal.close()
    assert data_of(list(following)) == [3]
    assert not any(path.exists() for path in paths)
    following.close()


def test_a_file_that_was_given_up_before_it_was_read_is_told(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for number in (1, 2, 3):
        spool.file(str(number), capture_of(number), number - 1)
    (tmp_path / "2").unlink()
    spool.journal.close()
    following = Spooled(str(tmp_path), consume=True)
    items = list(following)
    assert [(item.number, int(item.data)) for item in items if isinstance(item, Packet)] == [(1, 1), (3, 3)]
    (fault,) = [item for item in items if isinstance(item, Fault)]
    assert fault.kind == "unreadable"
    assert "2: 1 packet not decoded: decoding is too slow" in fault.message
    following.close()


def test_what_was_lost_is_told_between_the_packets_and_what_has_vanished_at_the_end(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.file("1", capture_of(1, 2))
    spool.journal.append(Lost(1_234, 1, 1_000_000_000, 3_500_000_000, "out.pcapng: No space left on device"))
    spool.file("2", capture_of(3), 2)
    spool.journal.append(Gone("eth0", 3, 5_000_000_000))
    spool.journal.close()
    following = Spooled(str(tmp_path))
    items = list(following)
    following.close()
    faults = [item for item in items if isinstance(item, Fault)]
    assert [(each.layer, each.kind, each.packet) for each in faults] == [
        ("file", "packets-lost", 1),
        ("file", "interface-gone", 3),
    ]
    assert [each.message for each in faults] == [
        "1,234 packets lost from 1970-01-01T00:00:01.000000Z to 1970-01-01T00:00:03.500000Z (2.500 s): "
        "out.pcapng: No space left on device",
        "eth0 is gone; the capture has nothing of it from 1970-01-01T00:00:05.000000Z on",
    ]
    assert data_of([item for item in items if isinstance(item, Packet)]) == [1, 2, 3]


def test_a_loss_is_told_while_a_file_grows(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.file("1", capture_of(1))
    following = Spooled(str(tmp_path))
    assert isinstance(next(following), Packet)
    spool.journal.append(Lost(1, 1, 1, 1, "why"))
    assert isinstance(next(following), Fault)
    spool.journal.close()
    assert list(following) == []
    following.close()


def test_a_file_after_which_there_is_no_room_goes_when_it_was_read(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    path = spool.file("1", capture_of(1))
    following = Spooled(str(tmp_path), consume=True)
    assert isinstance(next(following), Packet)
    spool.journal.append(Complete())
    rest: list[Item] = []
    reading = Thread(target=lambda: rest.extend(following))
    reading.start()
    assert wait_until(lambda: not path.exists(), 10)
    spool.file("2", capture_of(2), 1)
    spool.journal.close()
    reading.join(10)
    assert data_of(rest) == [2]
    following.close()


def test_who_captures_is_told_of_what_was_read(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for number in (1, 2, 3):
        spool.file(str(number), capture_of(number), number - 1)
    following = Spooled(str(tmp_path), tells=True)
    for decoded in (0, 1, 2):
        next(following)
        assert spool.journal.decoded() == decoded
    spool.journal.close()
    assert list(following) == []
    assert (tmp_path / "1").exists()
    following.close()


def test_an_interface_has_the_counts_it_had_last(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.file("1", capture_of(1) + statistics_block(0, 5, 1, 10, 2, 8))
    spool.file("2", capture_of(2) + statistics_block(0, 9, 1, 30, 5, 25))
    spool.journal.close()
    following = Spooled(str(tmp_path))
    assert data_of(list(following)) == [1, 2]
    [interface] = following.interfaces
    assert interface._replace(section=(), counts=None) == ETH0._replace(received=30, dropped=5)
    following.close()


@pytest.mark.parametrize("suffix", [b"", b"garbage"])
def test_faults_have_the_numbers_of_the_whole_and_the_name_of_the_file(tmp_path: Path, suffix: bytes) -> None:
    spool = Spool(tmp_path)
    spool.file("1", capture_of(1))
    spool.file("2", b"no capture" + suffix)
    spool.file("3", capture_of(2)[:-2])
    spool.journal.close()
    following = Spooled(str(tmp_path))
    faults: list[Any] = [item for item in following if isinstance(item, Fault)]
    assert [fault.kind for fault in faults] == ["not-a-capture", "cut-short"]
    assert all(str(tmp_path) in fault.message for fault in faults)
    following.close()
