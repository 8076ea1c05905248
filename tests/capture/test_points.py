"""Which files are of which capture point."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kdissect.capture.points import find_points
from kdissect.capture.reader import Points
from kdissect.capture.tails import TAIL_BYTES, last_time
from kdissect.model import Packet
from tests.capture.build import pcap, record
from tests.points.places import BASIC, MS, brokers_of, elsewhere, packets_of, written

PACKETS = packets_of(BASIC)
BROKERS = brokers_of(BASIC)


def far(path: Path, away_ns: int = 5 * MS, ahead_ns: int = 0) -> str:
    return written(path, elsewhere(PACKETS, BROKERS, away_ns=away_ns, ahead_ns=ahead_ns))


def grouped(points: Points | None) -> set[frozenset[str]]:
    """The names of the files of each point."""
    assert points is not None
    found: dict[int, set[str]] = {}
    for path, at in points.of_path.items():
        found.setdefault(at, set()).add(Path(path).name)
    return {frozenset(each) for each in found.values()}


def test_two_points_are_named_by_their_files(tmp_path: Path) -> None:
    points = find_points([BASIC, far(tmp_path / "far.client.pcapng")])
    assert points is not None
    assert sorted(points.names) == ["basic-kafka43", "far.client"]


def test_points_of_one_name_are_named_by_their_folders(tmp_path: Path) -> None:
    (tmp_path / "client").mkdir()
    (tmp_path / "broker").mkdir()
    paths = [
        far(tmp_path / name / "x.pcapng", away_ns=at * MS) for at, name in enumerate(("broker", "client"))
    ]
    points = find_points(paths)
    assert points is not None
    assert sorted(points.names) == ["broker/x", "client/x"]


@pytest.mark.parametrize("ahead_ms", [0, 1, 900, -900])
def test_the_clocks_are_compared(ahead_ms: int, tmp_path: Path) -> None:
    points = find_points([BASIC, far(tmp_path / "far.pcapng", ahead_ns=ahead_ms * MS)])
    assert points is not None
    ahead = dict(zip(points.names, points.ahead_ns, strict=True))
    assert ahead["far"] - ahead["basic-kafka43"] == ahead_ms * MS


def test_one_file_twice_is_one_point(tmp_path: Path) -> None:
    copy = written(tmp_path / "copy.pcapng", PACKETS)
    assert find_points([BASIC, copy]) is None
    assert find_points([BASIC, BASIC]) is None


def test_rotated_files_are_one_point(tmp_path: Path) -> None:
    paths = [written(tmp_path / f"x{at}.pcapng", PACKETS[at * 100 : (at + 1) * 100]) for at in range(4)]
    assert find_points(paths) is None


def test_files_of_one_point_may_overlap(tmp_path: Path) -> None:
    first = written(tmp_path / "a.pcapng", PACKETS[:200])
    second = written(tmp_path / "b.pcapng", PACKETS[100:])
    assert find_points([first, second]) is None


def test_directions_that_were_captured_apart_are_one_point(tmp_path: Path) -> None:
    def to_broker(packet: Packet) -> bool:
        # A packet that lies later where it is farther from the broker is the broker's.
        (moved,) = elsewhere([packet], BROKERS, away_ns=1)
        return moved.timestamp_ns < packet.timestamp_ns

    there = written(tmp_path / "there.pcapng", filter(to_broker, PACKETS))
    back = written(tmp_path / "back.pcapng", (each for each in PACKETS if not to_broker(each)))
    assert find_points([there, back]) is None


def test_other_traffic_at_the_same_time_is_no_other_point(tmp_path: Path) -> None:
    ports = sorted({each.data[34:36] for each in PACKETS})
    one = written(tmp_path / "one.pcapng", (each for each in PACKETS if each.data[34:36] == ports[0]))
    other = written(tmp_path / "other.pcapng", (each for each in PACKETS if each.data[34:36] != ports[0]))
    assert find_points([one, other]) is None


def test_rotated_files_of_two_points(tmp_path: Path) -> None:
    moved = elsewhere(PACKETS, BROKERS, away_ns=5 * MS)
    paths = []
    for name, packets, size in (("near", PACKETS, 90), ("far", moved, 130)):
        for at in range(0, len(packets), size):
            paths.append(written(tmp_path / f"{name}_{at:04}.pcapng", packets[at : at + size]))
    expected = {frozenset(Path(each).name for each in paths if name in each) for name in ("near", "far")}
    assert grouped(find_points(paths)) == expected
    assert grouped(find_points(reversed(paths))) == expected


def test_compressed_files_count(tmp_path: Path) -> None:
    path = tmp_path / "far.pcapng.gz"
    path.write_bytes(gzip.compress(Path(far(tmp_path / "far.pcapng")).read_bytes()))
    points = find_points([BASIC, path])
    assert points is not None
    assert sorted(points.names) == ["basic-kafka43", "far"]


def test_what_cannot_be_read_is_told_by_who_reads_it(tmp_path: Path) -> None:
    (tmp_path / "none.pcap").write_bytes(b"no capture")
    assert find_points([BASIC, tmp_path / "none.pcap", far(tmp_path / "far.pcapng")]) is not None
    assert find_points([tmp_path / "none.pcap", tmp_path / "absent.pcap"]) is None
    assert find_points([BASIC]) is None
    assert find_points([BASIC, "-"]) is None


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_the_end_of_a_long_file_is_told_by_its_tail(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"long.{form}"
    data = bytes(range(256)) * 4
    if form == "pcap":
        path.write_bytes(pcap([record(data, 1_700_000_000 + at) for at in range(900)]))
    else:
        packets = (Packet(at, (1_700_000_000 + at) * 10**9, 1, data, len(data)) for at in range(900))
        written(path, packets)
    assert path.stat().st_size > 2 * TAIL_BYTES
    assert last_time(str(path)) == packets_of(path)[-1].timestamp_ns == 1_700_000_899 * 10**9
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 1)
    assert last_time(str(path)) is None


def test_a_short_or_absent_file_has_no_tail(tmp_path: Path) -> None:
    assert last_time(str(BASIC)) is None
    assert last_time(str(tmp_path / "absent")) is None
