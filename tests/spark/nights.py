"""A week of a cluster of three brokers, made of captures of the project: the files that each night finds.

Each broker has a capture point, with a file for each hour. At each rotation something is going on, so that
connections continue in the next file and in the next night. What happens to the files:

- the file of the hour in which a night's run takes place is half there, and whole the night after
- the second file of broker 2 repeats the end of its first in night 1
- two files of broker 1 overlap in night 5, each with some of the packets of a while
- a file of broker 1 is lost in night 3
- a file of broker 3 of night 2 comes in night 4
- broker 2 has another address and another folder from night 4 on
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from kdissect.capture.files import read_packets
from kdissect.capture.segments import SegmentReader
from kdissect.dissect import Dissector, Event
from kdissect.model import Packet, Segment
from kdissect.present.arrow import RowBatches
from kdissect.present.options import PLAIN
from kdissect.present.sources import sources_of
from kdissect.spark.tables import POINT, full_table
from tests.points.places import brokers_of
from tests.spark.cuts import packets_of, pcap
from tests.spark.same import CAPTURES, in_order

NIGHTS = 7
TABLES = ("exchanges", "records", "batches", "connections", "faults")
RULE = r"broker-(\d)"
"""Tells capture points apart, whatever the folder of a broker is called."""
POINTS = ("1", "2", "3")
LATE = "3"
"""The point of the late file. It is read after later packets, so that its rows have other numbers."""

_HOUR = 3_600_000_000_000
_DAY = 24 * _HOUR
_BEGIN = 1_800_000_000_000_000_000 // _DAY * _DAY
_CLUSTER = CAPTURES / "incidents" / "healthy-cluster-idle.pcapng.gz"
_TALKS = {
    0: (("1", "basic-kafka43.pcapng"), ("3", "errors.pcapng")),
    1: (("2", "transactions-kafka39.pcapng"),),
    2: (("3", "consumer-group-kip848.pcapng"),),
    3: (("1", "share-group-kafka43.pcapng"),),
    4: (("2", "broker-0.9.pcap"),),
    5: (("1", "basic-kafka43.pcapng"), ("3", "sasl-scram.pcapng")),
    6: (("2", "incidents/latency-by-linger.pcapng.gz"), ("1", "incidents/client-0.10.2-on-4.3.pcapng.gz")),
}
"""By night, what clients do at which broker."""
_RENAMED = 4
"""The first night of the new name."""
_REPEATED = 20
"""Packets that two files have."""
_ADDRESSES = slice(26, 34)
"""Of an Ethernet packet, those of IPv4: source and destination."""


class Week:
    """The files of some nights."""

    def __init__(self, folder: Path, nights: int = NIGHTS) -> None:
        """:param folder: the files will be there, in folders of brokers."""
        self.folder = folder
        self.nights = nights
        self._night = -1
        self._files = _files(nights)

    def __iter__(self) -> Iterator[int]:
        """Each night, once its files are there."""
        for night in range(self.nights):
            self._arrive(night)
            yield night

    def _arrive(self, night: int) -> None:
        for (point, hour), packets in self._files.items():
            came = 4 if (point, hour) == (LATE, 2 * 24 + 21) else hour // 24
            data = pcap(packets)
            if night == came - 1 and hour % 24 == 0:  # it is written just now
                self._write(self._path(point, hour), data[: len(data) // 2 + 7], time.time() + 86_400)
            elif night == came and (point, hour) != ("1", 3 * 24 + 23):
                self._write(self._path(point, hour), data, time.time() - 86_400)

    def _path(self, point: str, hour: int) -> Path:
        is_renamed = point == "2" and hour >= 24 * _RENAMED + 1
        name = f"broker-{point}-renamed" if is_renamed else f"broker-{point}"
        return self.folder / name / f"day-{hour // 24}-{hour % 24:02}.pcap"

    def _write(self, path: Path, data: bytes, modified: float) -> None:
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(data)
        os.utime(path, (modified, modified))

    def paths(self, point: str | None = None) -> list[Path]:
        """The files that are there, of one capture point or of all."""
        return sorted(self.folder.glob(f"broker-{point or ''}*/*.pcap"))

    def events(self, point: str) -> Iterator[Event]:
        """What one reading of all files of a capture point finds, without what is still open at their end."""
        dissector = Dissector()
        for item in read_packets(self.paths(point)):
            yield from dissector.feed(item)

    def expected(self) -> dict[str, list[str]]:
        """The rows of each table after one reading, as :func:`plain` gives them."""
        made = Made()
        for point in POINTS:
            for event in self.events(point):
                made.add(point, event)
        return made.rows()


class Made:
    """The rows that events of several capture points bring."""

    def __init__(self) -> None:
        self._tables = [(name, point) for name in TABLES for point in POINTS]
        self._rows = {key: RowBatches(full_table(key[0], False, False), PLAIN) for key in self._tables}
        self._found: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}

    def add(self, point: str, event: Event) -> None:
        """Take in an event."""
        for name in TABLES:
            for source in sources_of(name, event, PLAIN):
                self._keep(name, point, self._rows[name, point].add(source))

    def rows(self) -> dict[str, list[str]]:
        """The rows of each table, as :func:`plain` gives them."""
        for name, point in self._tables:
            self._keep(name, point, self._rows[name, point].take())
        return {name: plain(name, rows) for name, rows in self._found.items()}

    def _keep(self, name: str, point: str, batch: pa.RecordBatch | None) -> None:
        if batch is not None:
            self._found[name] += [{**row, POINT: point} for row in batch.to_pylist()]


_NUMBERS = ("number", "connection", "exchange", "packet", "request_packet", "response_packet")


def plain(name: str, rows: Iterable[dict[str, Any]]) -> list[str]:
    """Rows without what a layout adds, and without the numbers of the point whose numbers differ."""
    columns = [POINT, *(column.name for column in full_table(name, False, False).columns)]
    found = []
    for row in rows:
        kept = {column: row[column] for column in dict.fromkeys(columns)}
        if kept.get("kind") == "late-file":
            continue
        if row[POINT] == LATE:
            kept = {column: value for column, value in kept.items() if column not in _NUMBERS}
        found.append(kept)
    return in_order(found)


def _files(nights: int) -> dict[tuple[str, int], list[Packet]]:
    """By capture point and hour since the begin, the packets of the file."""
    found: dict[str, list[Packet]] = {point: [] for point in POINTS}
    whole = packets_of(_CLUSTER)
    ports = sorted(brokers_of(_CLUSTER))
    moments = [night * _DAY + hour * _HOUR for night in range(NIGHTS) for hour in (23, 24)]
    for packet, at in zip(whole, _placed(whole, moments), strict=True):
        place = min(_ports_of(packet) & set(ports), default=ports[0])
        found[POINTS[ports.index(place) % 3]].append(packet._replace(timestamp_ns=at))
    for night, talks in _TALKS.items():
        for point, name in talks:
            packets = packets_of(CAPTURES / name)
            if point == "2" and night >= _RENAMED:
                packets = _readdressed(packets)
            moments = [night * _DAY + 23 * _HOUR, (night + 1) * _DAY]
            times = _placed(packets, moments)
            found[point] += [
                packet._replace(timestamp_ns=at) for packet, at in zip(packets, times, strict=True)
            ]
    alone = packets_of(CAPTURES / "errors.pcapng")
    late = 2 * _DAY + 21 * _HOUR + _HOUR // 2 + _BEGIN - alone[0].timestamp_ns
    found[LATE] += [packet._replace(timestamp_ns=packet.timestamp_ns + late) for packet in alone]
    files: dict[tuple[str, int], list[Packet]] = {}
    for point, packets in found.items():
        for packet in sorted(packets, key=lambda packet: packet.timestamp_ns):
            files.setdefault((point, (packet.timestamp_ns - _BEGIN) // _HOUR), []).append(packet)
    _overlap(files)
    return {key: packets for key, packets in files.items() if key[1] < 24 * nights}


def _overlap(files: dict[tuple[str, int], list[Packet]]) -> None:
    first, second = files["2", 24 + 22], files["2", 24 + 23]
    second[:0] = first[-_REPEATED:]
    first, second = files["1", 5 * 24 + 22], files["1", 5 * 24 + 23]
    both = [*first[-40:], *second[:40]]
    first[-40:] = [packet for at, packet in enumerate(both) if at // 5 % 2 == 0]
    second[:40] = [packet for at, packet in enumerate(both) if at // 5 % 2]


def _placed(packets: Sequence[Packet], moments: Sequence[int]) -> list[int]:
    """Times of packets, of which each moment has its share around it."""
    out = []
    for at, moment in enumerate(moments):
        start, end = (len(packets) * each // len(moments) for each in (at, at + 1))
        middle = packets[(start + end) // 2].timestamp_ns
        out += [packet.timestamp_ns - middle + moment + _BEGIN for packet in packets[start:end]]
    return out


def _ports_of(packet: Packet) -> set[int]:
    segment = SegmentReader().feed(packet)
    if not isinstance(segment, Segment):
        return set()
    return {int.from_bytes(end[-2:], "big") for end in (segment.source, segment.destination)}


def _readdressed(packets: Iterable[Packet]) -> list[Packet]:
    """The same traffic of brokers and clients that have other addresses."""
    out = []
    for packet in packets:
        data = bytearray(packet.data)
        if data[12:14] == b"\x08\x00":
            data[_ADDRESSES] = data[_ADDRESSES].replace(b"\x7f\x00\x00\x01", b"\x0a\x00\x00\x02")
        out.append(packet._replace(data=bytes(data)))
    return out
