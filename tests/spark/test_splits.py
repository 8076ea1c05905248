"""Parts of a capture file: together they hold its packets, wherever they are cut."""

from __future__ import annotations

import struct
import tracemalloc
from pathlib import Path
from random import Random

import pytest

from kdissect.capture.files import read_packets
from kdissect.capture.reader import Interface
from kdissect.capture.writer import PcapngWriter
from kdissect.limits import DEFAULTS
from kdissect.model import Packet
from kdissect.spark import splits
from kdissect.spark.splits import Part, PartReader, parts_of
from tests.spark.cuts import packets_of, pcap
from tests.spark.same import CAPTURES


def read(parts: list[Part]) -> list[tuple[int, bytes]]:
    found = []
    for part in parts:
        reader = PartReader(part, DEFAULTS)
        found += [(item.timestamp_ns, item.data) for item in reader if isinstance(item, Packet)]
        assert reader.is_sound
    return found


def whole(path: Path) -> list[tuple[int, bytes]]:
    return [(item.timestamp_ns, item.data) for item in read_packets([path]) if isinstance(item, Packet)]


@pytest.fixture(scope="module", params=["pcap", "pcapng"])
def large(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of a few megabytes."""
    packets = [packet for _ in range(40) for packet in packets_of(CAPTURES / "basic-kafka43.pcapng")]
    file = tmp_path_factory.mktemp("large") / f"large.{request.param}"
    if request.param == "pcap":
        file.write_bytes(pcap(packets))
        return file
    with file.open("wb") as opened:
        writer = PcapngWriter(opened, [Interface(1)])
        for packet in packets:
            writer.write(packet)
    return file


@pytest.mark.parametrize("size", [700_001, 1_300_000])
def test_parts_hold_all_packets(large: Path, size: int) -> None:
    parts = parts_of(str(large), large.stat().st_size, DEFAULTS, size)
    assert len(parts) >= 3
    assert read(parts) == whole(large)


def test_payload_that_is_a_capture_itself_does_not_mislead(tmp_path: Path) -> None:
    random = Random(1)
    inner = pcap(packets_of(CAPTURES / "errors.pcapng"))
    packets = packets_of(CAPTURES / "errors.pcapng")[:1]
    outer = []
    for at in range(600):
        start = random.randrange(24, len(inner) - 9_000)
        fakes = struct.pack("<IIII", 1_700_000_000, 5, 16, 16) * 50
        outer.append(packets[0]._replace(timestamp_ns=at, data=inner[start : start + 9_000] + fakes))
    file = tmp_path / "outer.pcap"
    file.write_bytes(pcap([each._replace(wire_length=len(each.data)) for each in outer]))
    parts = parts_of(str(file), file.stat().st_size, DEFAULTS, 400_000)
    assert len(parts) > 3
    assert read(parts) == whole(file)


def test_what_is_not_well_formed_is_told(tmp_path: Path) -> None:
    data = pcap(20 * packets_of(CAPTURES / "basic-kafka43.pcapng"))
    file = tmp_path / "two.pcap"
    file.write_bytes(
        data + data[:20] + struct.pack("<I", 113) + data[24:]
    )  # another file, of another link type
    size = file.stat().st_size
    parts = parts_of(str(file), size, DEFAULTS, size // 7)
    readers = [PartReader(part, DEFAULTS) for part in parts]
    for reader in readers:
        for _ in reader:
            pass
    assert not all(reader.is_sound for reader in readers)


def test_small_and_compressed_files_are_one_part(tmp_path: Path) -> None:
    file = tmp_path / "x.pcap.gz"
    file.write_bytes(b"\x1f\x8b" + bytes(100_000))
    assert parts_of(str(file), 100_002, DEFAULTS, 1_000) == [Part(str(file))]
    path = CAPTURES / "errors.pcapng"
    assert parts_of(str(path), path.stat().st_size, DEFAULTS) == [Part(str(path))]


def test_what_looks_like_many_short_records_takes_no_memory() -> None:
    """A payload of records of 17 bytes is followed to its end, and not kept."""
    fake = struct.pack("<IIII", 1, 1, 1, 1) + b"x"
    find = splits._chain(pcap([]), DEFAULTS._replace(packet_bytes=1_000))
    assert find is not None
    data = fake * 20_000
    tracemalloc.start()
    try:
        find(data, 0)
        assert tracemalloc.get_traced_memory()[1] < len(data) / 4
    finally:
        tracemalloc.stop()
