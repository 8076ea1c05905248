"""Files that grow while they are read."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from threading import Thread, Timer

from hypothesis import given
from hypothesis import strategies as st

from kdissect.capture.files import read_packets
from kdissect.capture.following import PAUSE, FollowedFiles, Following, Growing
from kdissect.capture.reader import Interface, Item
from kdissect.capture.writer import PcapngWriter
from kdissect.model import Fault, Packet
from tests.cli.run import CAPTURES

ETH0 = Interface(1, 0, "eth0")


def capture_of(*numbers: int, interface: Interface = ETH0) -> bytes:
    """A pcapng file with packets of these times, which are their data, too."""
    file = io.BytesIO()
    writer = PcapngWriter(file, [interface])
    for number in numbers:
        writer.write(Packet(number, number, interface.link_type, b"%d" % number, 9, 0, ()))
    return file.getvalue()


def stopped(following: Following) -> list[Item]:
    """All that is there."""
    following.stop()
    items = list(following)
    following.close()
    return items


def data_of(items: list[Item]) -> list[int]:
    assert not [item for item in items if isinstance(item, Fault)]
    return [int(item.data) for item in items if isinstance(item, Packet)]


def test_a_file_that_grows_is_read_as_it_grows(tmp_path: Path) -> None:
    whole = (CAPTURES / "basic-kafka43.pcapng").read_bytes()
    path = tmp_path / "growing"
    path.write_bytes(whole[:1_000])
    following = FollowedFiles((str(path),))
    found: list[Item] = []
    reading = Thread(target=lambda: found.extend(following))
    reading.start()
    with path.open("ab", buffering=0) as file:
        for at in range(1_000, len(whole), 9_999):
            file.write(whole[at : at + 9_999])
    following.stop()
    reading.join(20)
    assert not reading.is_alive()
    assert found == list(read_packets([CAPTURES / "basic-kafka43.pcapng"]))
    following.close()


@given(st.integers(0, 200))
def test_the_file_is_read_to_what_was_written_before_it_was_complete(at: int) -> None:
    # The writer ends between our look at the end of the file and our question.
    read, write = os.pipe()
    os.close(read)
    os.close(write)
    data = capture_of(1, 2, 3)
    path = Path(f"/proc/self/fd/{(descriptor := os.memfd_create('growing'))}")
    os.write(descriptor, data[:at])
    growing = Growing(str(path), lambda: bool(os.pwrite(descriptor, data[at:], at)) or at == len(data))
    pieces = b""
    while piece := growing.read1():
        pieces += piece
    assert pieces == data
    growing.close()
    os.close(descriptor)


def test_pauses_are_told_to_who_asks_for_them(tmp_path: Path) -> None:
    data = capture_of(1, 2)
    path = tmp_path / "growing"
    path.write_bytes(data[:-5])
    following = FollowedFiles((str(path),))
    items = following.with_pauses()
    first, second = next(items), next(items)
    assert (isinstance(first, Packet), second, next(items)) == (True, None, None)
    with path.open("ab") as file:
        file.write(data[-5:])
    third = next(items)
    assert isinstance(third, Packet)
    assert (third.number, next(items)) == (2, None)
    assert stopped(following) == []


def test_who_does_not_ask_for_pauses_is_given_none(tmp_path: Path) -> None:
    path = tmp_path / "growing"
    path.write_bytes(capture_of(1))
    following = FollowedFiles((str(path),))
    Timer(3 * PAUSE, following.stop).start()
    assert data_of(list(following)) == [1]
    following.close()


def test_a_half_record_at_the_end_is_no_damage_while_more_may_come_and_is_told_at_the_end(
    tmp_path: Path,
) -> None:
    data = capture_of(1, 2)
    path = tmp_path / "torn"
    path.write_bytes(data[:-5])
    following = FollowedFiles((str(path),))
    first = next(following)
    assert isinstance(first, Packet)
    rest = stopped(following)
    assert [item.kind for item in rest if isinstance(item, Fault)] == ["cut-short"]


def test_the_files_of_a_folder_go_by_their_first_packets_and_count_on(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(capture_of(1, 2))
    (tmp_path / "a10").write_bytes(capture_of(5))
    (tmp_path / "a9").write_bytes(capture_of(3, 4))
    (tmp_path / ".hidden").write_bytes(capture_of(9))
    following = FollowedFiles((str(tmp_path),))
    items = stopped(following)
    assert data_of(items) == [1, 2, 3, 4, 5]
    assert [item.number for item in items if isinstance(item, Packet)] == [1, 2, 3, 4, 5]
    assert [each._replace(section=()) for each in following.interfaces] == [ETH0]


def test_files_that_appear_are_read_and_those_before_are_complete_then(tmp_path: Path) -> None:
    (tmp_path / "1").write_bytes(capture_of(1, 2)[:-4])
    following = FollowedFiles((str(tmp_path),))
    items: Iterator[Item] = iter(following)
    assert isinstance(next(items), Packet)
    (tmp_path / "1").write_bytes(capture_of(1, 2))
    (tmp_path / "2").write_bytes(capture_of(3))
    assert [item.number for item in (next(items), next(items)) if isinstance(item, Packet)] == [2, 3]
    assert stopped(following) == []


def test_a_name_that_is_used_again_is_another_file(tmp_path: Path) -> None:
    path = tmp_path / "ring"
    path.write_bytes(capture_of(1))
    following = FollowedFiles((str(path),))
    assert isinstance(next(following), Packet)
    (tmp_path / "new").write_bytes(capture_of(2))
    (tmp_path / "new").replace(path)
    assert data_of(stopped(following)) == [2]


def test_what_is_no_capture_is_left_out_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "1").write_bytes(capture_of(1))
    assert data_of(stopped(FollowedFiles((str(tmp_path),)))) == [1]


def test_what_is_named_and_is_no_capture_is_told_once_and_the_others_are_followed(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("hello, this is not a capture")
    (tmp_path / "1").write_bytes(capture_of(1))
    (tmp_path / "empty").touch()
    following = FollowedFiles(tuple(str(tmp_path / name) for name in ("1", "notes", "empty")))
    told = next(following)
    assert isinstance(told, Fault)
    assert (told.kind, "notes: is not a capture" in told.message) == ("not-a-capture", True)
    assert isinstance(next(following), Packet)
    (tmp_path / "empty").write_bytes(capture_of(2))
    assert data_of(stopped(following)) == [2]
