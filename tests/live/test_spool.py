"""Files that turn, are whole at any time, and survive a full disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from kdissect.capture.files import read_packets
from kdissect.capture.reader import Interface
from kdissect.live.disk_limit import FILES, LARGEST_FILE, SMALLEST_FILE, SpoolRoom, SpoolSize
from kdissect.live.journal import Begun, Complete, Entry, Lost
from kdissect.live.rotation import Bounds
from kdissect.live.sources import SourceCounts
from kdissect.live.spool import SECOND, Spool, cut_to_whole_blocks
from kdissect.model import Fault, Packet
from tests.live.fakes import BEGAN_NS, FakeClock


class Written:
    """A spool in a folder, and what is in it."""

    def __init__(
        self,
        folder: Path,
        bounds: Bounds = Bounds(),  # noqa: B008
        stop: Bounds = Bounds(),  # noqa: B008
        room: SpoolRoom | None = None,
    ) -> None:
        self.folder = folder
        self.clock = FakeClock()
        self.told: list[Entry] = []
        self.spool = Spool(str(folder / "out.pcapng"), bounds, self.clock, self.told.append, stop, room)
        self.spool.add(Interface(1, 262_144, "eth0"))

    def write(self, *datas: bytes) -> None:
        self.spool.write(0, [(self.clock.wall_ns(), len(data), data) for data in datas])

    @property
    def began(self) -> list[str]:
        return [entry.path for entry in self.told if isinstance(entry, Begun)]

    @property
    def lost(self) -> list[Lost]:
        """What was told of that."""
        return [entry for entry in self.told if isinstance(entry, Lost)]

    def files(self) -> list[list[bytes]]:
        """The data of the packets of each file, in the order of their names. None is damaged."""
        return [packets_of(path) for path in sorted(self.folder.iterdir())]


def packets_of(path: Path) -> list[bytes]:
    items = list(read_packets([path]))
    assert not [item for item in items if isinstance(item, Fault)]
    return [item.data for item in items if isinstance(item, Packet)]


def test_packets_come_back_with_time_and_lengths(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.spool.write(0, [(BEGAN_NS + 1, 99, b"abc"), (BEGAN_NS + 2, 3, b"")])
    written.spool.close()
    capture = read_packets([tmp_path / "out.pcapng"])
    packets = [item for item in capture if isinstance(item, Packet)]
    assert [(p.timestamp_ns, p.wire_length, p.data) for p in packets] == [
        (BEGAN_NS + 1, 99, b"abc"),
        (BEGAN_NS + 2, 3, b""),
    ]


def test_a_file_is_whole_after_every_block(tmp_path: Path) -> None:
    written = Written(tmp_path)
    for number in range(5):
        written.write(bytes(number), b"x")
        assert len(packets_of(tmp_path / "out.pcapng")) == 2 * (number + 1)


def test_a_file_ends_with_what_was_counted(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.write(b"a", b"b")
    written.spool.counts[0] = SourceCounts(9, 7)
    written.spool.close()
    capture = read_packets([tmp_path / "out.pcapng"])
    assert len(list(capture)) == 2
    (interface,) = capture.interfaces
    assert (interface.name, interface.received, interface.dropped) == ("eth0", 9, 7)


@pytest.mark.parametrize("bounds", [Bounds(packets=2), Bounds(bytes=200)])
def test_files_turn_by_packets_and_by_size(tmp_path: Path, bounds: Bounds) -> None:
    written = Written(tmp_path, bounds)
    for number in range(5):
        written.write(b"%d" % number * 60)
    written.spool.close()
    files = written.files()
    assert len(files) > 1
    assert [data[0] for file in files for data in file] == list(b"01234")
    assert len(written.began) == len(files) == written.spool.files


def test_files_turn_by_time_that_passes_not_by_the_time_of_day(tmp_path: Path) -> None:
    written = Written(tmp_path, Bounds(seconds=10))
    written.write(b"a")
    written.clock.step_ns = 3_600 * SECOND
    written.write(b"b")
    written.clock.passed = 10
    written.spool.tick()
    written.write(b"c")
    written.spool.close()
    assert written.files() == [[b"a", b"b"], [b"c"]]


def test_files_turn_at_each_interval_of_the_day(tmp_path: Path) -> None:
    written = Written(tmp_path, Bounds(interval=60))
    for passed in (0, 1, 41, 100):  # it began 20 seconds after a full minute
        written.clock.passed = passed
        written.write(b"%d" % passed)
    written.spool.close()
    assert written.files() == [[b"0", b"1"], [b"41"], [b"100"]]


def test_no_more_files_are_kept_than_asked_for(tmp_path: Path) -> None:
    written = Written(tmp_path, Bounds(packets=1, files=2))
    for number in range(6):
        written.write(b"%d" % number)
    written.spool.close()
    assert written.files() == [[b"4"], [b"5"]]


def test_a_file_that_cannot_be_removed_yet_is_removed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Written(tmp_path, Bounds(packets=1, files=2))
    unlink = os.unlink
    in_use = "out_00001"

    def refuse(path: str) -> None:
        if in_use in path:
            raise PermissionError(13, "It is being used by another process", path)
        unlink(path)

    monkeypatch.setattr("kdissect.live.spool.os.unlink", refuse)
    for number in range(4):
        written.write(b"%d" % number)
    assert written.files() == [[b"0"], [b"1"], [b"2"], [b"3"]]
    in_use = "nothing"
    written.spool.tick()
    written.spool.close()
    assert written.files() == [[b"2"], [b"3"]]


def test_no_empty_file_is_made_while_nothing_comes(tmp_path: Path) -> None:
    written = Written(tmp_path, Bounds(seconds=1))
    for passed in range(1, 9):
        written.clock.passed = passed
        written.spool.tick()
    assert written.spool.files == 1


def test_a_full_disk_loses_packets_and_counts_them_and_the_file_stays_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Written(tmp_path)
    written.write(b"before")
    room = 10
    write = os.write

    def writes_little(descriptor: int, data: bytes) -> int:
        nonlocal room
        if room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = write(descriptor, bytes(data[:room]))
        room -= done
        return done

    monkeypatch.setattr("kdissect.live.spool.os.write", writes_little)
    written.write(b"lost", b"lost too")
    written.write(b"lost as well")
    assert written.spool.lost == 3
    assert written.spool.failure is not None
    assert "No space left" in written.spool.failure
    assert packets_of(tmp_path / "out.pcapng") == [b"before"]
    monkeypatch.setattr("kdissect.live.spool.os.write", write)
    written.write(b"after")
    written.clock.passed += 2
    written.spool.tick()
    assert written.spool.failure is None
    written.spool.close()
    assert packets_of(tmp_path / "out.pcapng") == [b"before", b"after"]
    capture = read_packets([tmp_path / "out.pcapng"])
    list(capture)
    assert capture.interfaces[0].dropped == 3


def test_packets_that_are_lost_are_those_of_their_interface(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Written(tmp_path)
    other = written.spool.add(Interface(1, 262_144, "eth1"))

    def fails(_: int, __: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("kdissect.live.spool.os.write", fails)
        written.spool.write(other, [(BEGAN_NS, 1, b"a"), (BEGAN_NS, 1, b"b")])
    written.spool.close()
    capture = read_packets([tmp_path / "out.pcapng"])
    list(capture)
    assert [each.dropped for each in capture.interfaces] == [0, 2]
    assert written.spool.lost == 2


def test_a_full_disk_does_not_leave_a_file_for_each_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Written(tmp_path, Bounds(packets=1))
    written.write(b"a")

    def fails(_: int, __: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("kdissect.live.spool.os.write", fails)
        for passed in range(1, 5):
            written.clock.passed = passed
            written.write(b"b")
    written.write(b"c")
    written.spool.close()
    assert written.files() == [[b"a"], [b"c"]]
    assert written.spool.lost == 4


@pytest.mark.parametrize(
    ("bounds", "stop", "expected"),
    [
        (Bounds(), Bounds(packets=3), [[b"0", b"1", b"2"]]),
        (Bounds(packets=2), Bounds(packets=3), [[b"0", b"1"], [b"2"]]),
        (Bounds(packets=2), Bounds(files=2), [[b"0", b"1"], [b"2", b"3"]]),
        (Bounds(), Bounds(bytes=1), []),
    ],
)
def test_no_more_is_written_than_was_wanted(
    tmp_path: Path, bounds: Bounds, stop: Bounds, expected: list[list[bytes]]
) -> None:
    written = Written(tmp_path, bounds, stop)
    assert written.spool.is_complete == (not expected)
    written.write(*(b"%d" % number for number in range(9)))
    assert written.spool.is_complete
    written.write(b"more")
    written.spool.close()
    assert written.files() == (expected or [[]])
    assert written.spool.lost == 0


def test_it_ends_with_the_packet_that_reaches_the_bytes_wanted(tmp_path: Path) -> None:
    written = Written(tmp_path, stop=Bounds(bytes=1_000))
    written.write(*(b"x" * 100 for _ in range(50)))
    assert written.spool.is_complete
    assert 1_000 <= written.spool.bytes < 1_000 + 32 + 100


def test_an_interface_that_comes_later_is_in_this_file_and_in_the_next(tmp_path: Path) -> None:
    written = Written(tmp_path, Bounds(packets=2))
    written.write(b"a")
    number = written.spool.add(Interface(113, 96, "any"))
    written.spool.write(number, [(BEGAN_NS, 1, b"b")])
    written.spool.write(number, [(BEGAN_NS, 1, b"c")])
    written.spool.close()
    for path in sorted(tmp_path.iterdir()):
        capture = read_packets([path])
        last = [item for item in capture if isinstance(item, Packet)][-1]
        assert capture.interfaces[last.interface].name == "any"


def test_captures_are_for_their_owner_only(tmp_path: Path) -> None:
    Written(tmp_path)
    assert (tmp_path / "out.pcapng").stat().st_mode & 0o777 == 0o600


def test_a_half_written_block_can_be_taken_away_and_no_whole_one_is(tmp_path: Path) -> None:
    written = Written(tmp_path)
    path = tmp_path / "out.pcapng"
    written.write(b"a", b"bb")
    whole = path.read_bytes()
    written.write(b"ccc")
    longer = path.read_bytes()
    for size in range(len(whole), len(longer) + 1):
        path.write_bytes(longer[:size])
        taken = cut_to_whole_blocks(str(path))
        kept = longer if size == len(longer) else whole
        assert path.read_bytes() == kept
        assert taken == size - len(kept)


def none_decoded() -> int:
    return 0


class Disk:
    """A disk of some size, on which others take room too."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, size: int) -> None:
        self.size = size
        self.others = 0
        self._folder = folder
        monkeypatch.setattr("kdissect.live.disk_limit.disk_usage", self._usage)

    def _usage(self, _: str) -> SimpleNamespace:
        return SimpleNamespace(free=self.free)

    @property
    def free(self) -> int:
        own = sum(path.stat().st_size for path in self._folder.iterdir())
        return max(0, self.size - self.others - own)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Disk:
    return Disk(monkeypatch, tmp_path, 4 << 20)


def roomy(tmp_path: Path, decoded: Callable[[], int] = none_decoded, **wanted: int) -> Written:
    return Written(tmp_path, room=SpoolRoom(str(tmp_path), SpoolSize(**wanted), decoded))


PIECE = b"x" * 1_000
MIB = 1 << 20


def put(written: Written, count: int) -> None:
    """Packets, one after another."""
    for _ in range(count):
        written.clock.passed += 0.01
        written.write(PIECE)


def bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def test_a_spool_takes_half_of_what_is_free_and_what_comes_then_is_lost_and_told(
    tmp_path: Path, disk: Disk
) -> None:
    written = roomy(tmp_path)
    put(written, 3_000)
    # Nothing that waits to be decoded has gone.
    assert 0.9 * 2 * MIB < bytes_in(tmp_path) <= 2 * MIB
    kept = sum(len(file) for file in written.files())
    assert kept == written.spool.packets
    assert written.spool.lost == 3_000 - kept
    assert written.lost == []  # it goes on
    written.spool.close()
    (lost,) = written.lost
    first = BEGAN_NS + round((kept + 1) * 0.01 * SECOND)
    assert lost[:3] == (3_000 - kept, kept, first)
    assert lost.last_ns == written.clock.wall_ns()
    assert "the spool is full (2.0 MiB)" in lost.why


def test_what_was_decoded_goes_so_that_as_much_as_wanted_passes_through_a_small_disk(
    tmp_path: Path, disk: Disk
) -> None:
    written = roomy(tmp_path)
    for _ in range(10):
        put(written, 1_000)
        for path in written.began[:-1]:
            Path(path).unlink(missing_ok=True)
    assert (written.spool.lost, written.spool.packets) == (0, 10_000)
    assert bytes_in(tmp_path) <= 2 * MIB / FILES + len(PIECE) + 200


def test_a_file_that_nobody_can_follow_up_is_said_to_be_complete(tmp_path: Path, disk: Disk) -> None:
    written = roomy(tmp_path, most=100_000)  # not twice what a file has
    for turn in range(5):
        put(written, 100)
        assert isinstance(written.told[-1], Complete), turn
        for path in written.began:
            Path(path).unlink(missing_ok=True)
    assert written.spool.files == 2 * 5


def test_files_that_were_decoded_stay_until_their_room_is_needed(tmp_path: Path, disk: Disk) -> None:
    decoded = 0
    written = roomy(tmp_path, lambda: decoded, kept=1 * MIB)
    put(written, 1_500)
    assert bytes_in(tmp_path) > 1.5 * MIB * 0.9
    decoded = written.spool.files - 1
    put(written, 20)
    assert 0.8 * MIB < bytes_in(tmp_path) < 1.2 * MIB
    assert written.spool.lost == 0


def test_the_room_follows_what_is_free(tmp_path: Path, disk: Disk) -> None:
    written = roomy(tmp_path, most=3 * MIB)
    put(written, 1_000)
    disk.others = int(2.5 * MIB)
    put(written, 1_000)
    assert written.spool.lost > 0
    assert bytes_in(tmp_path) <= 1.5 * MIB
    disk.others = 0
    before = written.spool.lost
    written.clock.passed += 1
    put(written, 1_000)
    assert written.spool.lost == before
    assert len(written.lost) == 1


@pytest.mark.parametrize(
    ("most", "size", "expected"),
    [(None, 1 << 40, LARGEST_FILE), (None, 1 * MIB, SMALLEST_FILE), (80_000_000, 1 << 40, 10_000_000)],
)
def test_a_file_is_as_long_as_the_room_allows(
    tmp_path: Path, disk: Disk, most: int | None, size: int, expected: int
) -> None:
    disk.size = size
    room = SpoolRoom(str(tmp_path), SpoolSize(most), none_decoded)
    room.look(0, 0)
    assert room.file_bytes == expected


def test_losses_in_quick_succession_are_one_and_others_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Written(tmp_path)

    def fails(_: int, __: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for at in (0, 0.5, 10):
        written.clock.passed = at
        with monkeypatch.context() as patch:
            patch.setattr("kdissect.live.spool.os.write", fails)
            written.write(b"lost")
        written.write(b"written")
    written.spool.close()
    why = f"{tmp_path}/out.pcapng: No space left on device"
    assert written.lost == [
        Lost(2, 0, BEGAN_NS, BEGAN_NS + SECOND // 2, why),
        Lost(1, 2, BEGAN_NS + 10 * SECOND, BEGAN_NS + 10 * SECOND, why),
    ]


def test_a_file_that_cannot_be_told_of_is_not_begun(tmp_path: Path) -> None:
    written = Written(tmp_path, Bounds(packets=1))
    tell = written.spool._report

    def fails(_: Entry) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "journal")

    written.write(b"a")
    written.spool._report = fails
    written.write(b"lost")
    assert len(list(tmp_path.iterdir())) == 1
    written.spool._report = tell
    written.write(b"b")
    written.spool.close()
    assert written.files() == [[b"a"], [b"b"]]
    assert [lost.packets for lost in written.lost] == [1]
