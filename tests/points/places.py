"""A capture → the same traffic as other capture points would have captured it."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from kdissect.capture.files import read_packets
from kdissect.capture.segments import SegmentReader
from kdissect.capture.writer import PcapngWriter
from kdissect.exchange import Exchange
from kdissect.model import Fault, Packet, Segment
from kdissect.present.columns import EXCHANGES
from kdissect.present.options import PLAIN
from kdissect.reading import read
from kdissect.session.conversation import Connection

MS = 1_000_000
CAPTURES = Path(__file__).parents[2] / "captures"
BASIC = CAPTURES / "basic-kafka43.pcapng"

DIFFERENT = (
    "number",
    "request_packet",
    "response_packet",
    "capture_point",
    "also_at",
    "between_ns",
    "faults",
)
"""Columns in which exchanges of several points differ from those of one alone: packets count over all files,
and requests pass the far point first."""


def packets_of(capture: Path) -> list[Packet]:
    """The packets of a capture."""
    return [item for item in read_packets([capture]) if isinstance(item, Packet)]


def elsewhere(
    packets: Iterable[Packet],
    brokers: Collection[int],
    *,
    away_ns: int = 0,
    ahead_ns: int = 0,
    drop: Callable[[Packet], bool] = lambda packet: False,
) -> list[Packet]:
    """The packets as they are captured where it takes ``away_ns`` more to the broker, by a clock that is
    ``ahead_ns`` ahead.

    :param brokers: ports of brokers.
    :param drop: which packets that point does not capture.
    """
    reader, found = SegmentReader(), []
    for packet in packets:
        segment = reader.feed(packet)
        to_broker = (
            isinstance(segment, Segment) and int.from_bytes(segment.destination[-2:], "big") in brokers
        )
        if not drop(packet):
            time_ns = packet.timestamp_ns + ahead_ns + (-away_ns if to_broker else away_ns)
            found.append(packet._replace(timestamp_ns=time_ns))
    return sorted(found, key=lambda packet: packet.timestamp_ns)


def some(seed: int, share: float) -> Callable[[Packet], bool]:
    """A share of the packets, by chance."""
    chance = random.Random(seed)
    return lambda packet: chance.random() < share


def written(path: Path, packets: Iterable[Packet]) -> str:
    """The packets in a file."""
    with path.open("wb") as file:
        writer = PcapngWriter(file)
        for packet in packets:
            writer.write(packet)
    return str(path)


def brokers_of(capture: Path) -> frozenset[int]:
    """The ports of its brokers."""
    return frozenset(int.from_bytes(each.broker_endpoint[-2:], "big") for each in read(capture))


class Told:
    """What is told of some files."""

    def __init__(self, *paths: str | Path) -> None:
        self.connections: list[Connection] = []
        self.faults: list[Fault] = []
        self.exchanges: list[Exchange] = list(
            read(paths, on_connection=self.connections.append, on_fault=self.faults.append)
        )

    def rows(self, *others: str) -> list[dict[str, str]]:
        """The rows of exchanges, without what several points make different, in the order of their ends."""
        left_out = {*DIFFERENT, *others}
        columns = [column for column in EXCHANGES.columns if column.name not in left_out]
        names = [column.name for column in columns]
        rows = [
            dict(zip(names, (str(column.value(each, PLAIN)) for column in columns), strict=True))
            for each in self.exchanges
        ]
        return sorted(rows, key=lambda row: list(row.values()))
