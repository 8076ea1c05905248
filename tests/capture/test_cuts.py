from __future__ import annotations

import gzip
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from kdissect.capture.cuts import Cuts, FilePart, PartPackets, ReadCuts
from kdissect.capture.files import read_packets
from kdissect.capture.reader import Item, first_time, one_by_one
from kdissect.capture.runs import PacketRun
from kdissect.capture.writer import PcapngWriter
from kdissect.faults import fault
from kdissect.limits import DEFAULTS
from kdissect.model import CaptureError, Packet
from tests.cli.run import CAPTURES

FILES = ("basic-kafka43.pcapng", "broker-0.9.pcap", "loss.pcapng", "midstream.pcapng")


def parts_of(path: Path, size: int, most: int | None = None) -> list[FilePart]:
    """All parts of a file, what is not cut at the end."""
    cuts = Cuts(str(path))
    out = []
    while (part := cuts.next(size, most)) is not None:
        out.append(part)
    out.append(cuts.rest())
    cuts.close()
    return out


def items_of(parts: Sequence[FilePart]) -> list[Item]:
    return [item for part in parts for item in PartPackets(part)]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("size", [1, 3_000, 1 << 30])
def test_the_parts_of_a_file_hold_what_the_file_holds(name: str, size: int) -> None:
    parts = parts_of(CAPTURES / name, size)
    assert items_of(parts) == list(read_packets([CAPTURES / name]))
    assert [part.before for part in parts[1:]] == [part.before + part.packets for part in parts[:-1]]
    assert all(part.end == after.start for part, after in pairwise(parts))


def test_a_part_has_as_many_packets_as_are_wanted() -> None:
    parts = parts_of(CAPTURES / "errors.pcapng", 1 << 30, 10)
    assert {part.packets for part in parts[:-2]} == {10}


@pytest.mark.parametrize("name", ["broker-0.9.pcap", "errors.pcapng"])
def test_the_walk_ends_before_damage_and_the_reader_tells_it(name: str, tmp_path: Path) -> None:
    data = bytearray((CAPTURES / name).read_bytes())
    whole = parts_of(CAPTURES / name, 2_000)
    at = whole[3].start
    for damage in (bytes(16), b"\xff" * 16):
        path = tmp_path / f"damaged-{name}"
        path.write_bytes(data[:at] + damage + data[at + 16 :])
        parts = parts_of(path, 2_000)
        assert parts[:3] == [each._replace(path=str(path)) for each in whole[:3]]
        assert parts[-1].start == at
        assert items_of(parts) == list(read_packets([path]))


def test_a_file_that_breaks_off_is_cut_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / "short.pcap"
    path.write_bytes((CAPTURES / "broker-0.9.pcap").read_bytes()[:-5])
    assert items_of(parts_of(path, 4_000)) == list(read_packets([path]))


def test_files_behind_one_another_are_cut_up_to_the_second(tmp_path: Path) -> None:
    path = tmp_path / "two.pcap"
    path.write_bytes(2 * (CAPTURES / "broker-0.9.pcap").read_bytes())
    assert items_of(parts_of(path, 4_000)) == list(read_packets([path]))
    path = tmp_path / "two.pcapng"
    path.write_bytes(2 * (CAPTURES / "errors.pcapng").read_bytes())
    assert items_of(parts_of(path, 4_000)) == list(read_packets([path]))


def test_what_is_not_an_ordinary_file_is_read_as_one(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap.gz"
    path.write_bytes(gzip.compress((CAPTURES / "broker-0.9.pcap").read_bytes()))
    empty = tmp_path / "empty.pcap"
    empty.touch()
    for each in (path, empty, tmp_path, tmp_path / "absent"):
        with pytest.raises(CaptureError):
            Cuts(str(each))


@pytest.mark.parametrize("name", ["broker-0.9.pcap", "errors.pcapng"])
def test_a_file_that_somebody_cuts_while_it_is_walked_over_ends_there(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes((CAPTURES / name).read_bytes())
    cuts = Cuts(str(path))
    first = cuts.next(20_000)
    assert first is not None
    with open(path, "r+b") as file:
        file.truncate(5_000)  # less than was walked over; mapped memory would end the process
    assert cuts.next(1 << 30) is None
    assert cuts.is_over
    assert items_of([first, cuts.rest()])  # what is left of it, and a fault for the packet that broke off
    cuts.close()


def test_a_block_that_is_longer_than_what_is_read_at_a_time_is_passed(tmp_path: Path) -> None:
    packets = [each for each in read_packets([CAPTURES / "errors.pcapng"]) if isinstance(each, Packet)]
    long = packets[5]._replace(data=bytes(3 << 20), wire_length=3 << 20)
    path = tmp_path / "long.pcapng"
    with open(path, "wb") as file:
        writer = PcapngWriter(file, [])
        for each in (*packets[:5], long, *packets[6:]):
            writer.write(each)
    parts = parts_of(path, 1 << 30)
    assert items_of(parts) == list(read_packets([path]))
    assert parts[0].packets == len(packets)


def test_what_was_read_is_cut_between_packets_and_around_what_is_none() -> None:
    items = list(read_packets([CAPTURES / "errors.pcapng"]))
    odd = fault("unreadable", "something")
    items[30:30] = [odd, odd]
    for blocks in ([items], [[each] for each in items], [items[:7], [], items[7:40], items[40:]]):
        cuts = ReadCuts(iter(blocks), 1 << 20)
        found = []
        while (part := cuts.next(3_000)) is not None:
            found.append(part)
        assert [item for part in found for item in part.items] == items
        assert [part.items for part in found if not part.is_plain] == [[odd], [odd]]
        assert len(found) > 6
        assert not cuts.rest()


@pytest.mark.parametrize("name", ["broker-0.9.pcap"])
def test_what_was_read_in_runs_is_cut_between_them_and_can_be_gone_through_again(name: str) -> None:
    path = CAPTURES / name
    items = list(read_packets([path]))
    first = next(each for each in items if isinstance(each, Packet))
    runs = list(PartPackets(Cuts(str(path)).rest()).in_runs())
    assert any(isinstance(each, PacketRun) for block in runs for each in block)
    assert next(filter(None, map(first_time, runs))) == first.timestamp_ns
    odd = fault("unreadable", "something")
    cuts = ReadCuts(iter([[odd], *runs, [odd]]), path.stat().st_size)
    found = []
    while (part := cuts.next(3_000)) is not None:
        found.append(part)
    for _ in range(2):
        again = [one_by_one(some) for part in found for some in part.in_runs(DEFAULTS)]
        assert [item for some in again for item in some] == [odd, *items, odd]


def test_what_was_read_and_is_in_no_part_is_given_back() -> None:
    items = list(read_packets([CAPTURES / "errors.pcapng"]))
    cuts = ReadCuts(iter([items]), 1 << 20)
    first = cuts.next(3_000)
    assert first is not None
    assert [*first.items, *cuts.rest()] == items
