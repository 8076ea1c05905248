"""Captures with packets taken away: thinned, without their beginning, one direction only, cut, in another
order, by a clock that was set."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

from kdissect.analysis.fold import SECOND
from kdissect.capture.files import read_packets
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.model import Fault, Packet, Secrets
from tests.dissecting import dissect
from tests.shared import SHARED

Item = Packet | Secrets | Fault

WAYS = ("2 % lost, 1", "2 % lost, 2", "2 % lost, 3", "no first third", "requests only", "responses only")
SAME_BYTES = ("seen twice", "in another order")
"""What is captured so tells no less."""
CLOCKS = {
    "an hour back": -3_600,
    "half a minute back": -30,
    "an hour on": 3_600,
    "half a minute on": 30,
    "5 s on": 5,
    "2 s on": 2,
}
"""Seconds by which the clock of the capture is set in its middle."""
LESS = (*WAYS, "no middle", "first 300 bytes", *CLOCKS)
SNAP_LENGTH = 300


def captures(*cases: str) -> list[Path]:
    """The captures of incidents, the one nearest to the broker where there are two."""
    if SHARED is None:
        return []
    return [sorted((SHARED / "testdata" / "incidents" / case).glob("capture*"))[0] for case in cases]


@cache
def packets(path: Path) -> tuple[Item, ...]:
    return tuple(read_packets([path]))


def taken_away(path: Path, way: str) -> list[Event]:
    """What is left to be seen; ``whole`` takes nothing away."""
    items = packets(path)
    if way.startswith("2 %"):
        chance = random.Random(way)
        items = tuple(each for each in items if not isinstance(each, Packet) or chance.random() > 0.02)
    elif way == "no first third":
        items = items[len(items) // 3 :]
    elif way == "no middle":
        items = items[: len(items) // 3] + items[len(items) // 3 + len(items) // 20 :]
    elif way == "first 300 bytes":
        items = tuple(
            _like(each, each.data[:SNAP_LENGTH]) if isinstance(each, Packet) else each for each in items
        )
    elif way in CLOCKS:
        items = _set(items, CLOCKS[way])
    elif way == "seen twice":
        items = tuple(copy for each in items for copy in _copies(each))
    elif way == "in another order":
        items = _swapped(items)
    elif way != "whole":
        to_broker, ports = way == "requests only", ports_of(path)
        items = tuple(
            each for each in items if not isinstance(each, Packet) or (_port(each) in ports) == to_broker
        )
    return list(dissect(items))


@cache
def whole(path: Path) -> tuple[Event, ...]:
    """What all packets show."""
    return tuple(dissect(packets(path)))


@cache
def ports_of(path: Path) -> frozenset[int]:
    """The ports of the brokers."""
    brokers = {each.broker for each in whole(path) if isinstance(each, Exchange)}
    return frozenset(int(each.rpartition(":")[2]) for each in brokers)


def _port(packet: Packet) -> int:
    """Where a packet goes, by its TCP header after that of IPv4."""
    start = packet.data.find(b"\x45\x00") + 20
    return int.from_bytes(packet.data[start + 2 : start + 4], "big")


def _like(packet: Packet, data: bytes, later_ns: int = 0) -> Packet:
    """The same packet with other bytes, or later."""
    return Packet(
        packet.number,
        packet.timestamp_ns + later_ns,
        packet.link_type,
        data,
        packet.wire_length,
        packet.interface,
    )


def _set(items: tuple[Item, ...], seconds: int) -> tuple[Item, ...]:
    middle = len(items) // 2
    later = (
        _like(each, each.data, seconds * SECOND) if isinstance(each, Packet) else each
        for each in items[middle:]
    )
    return (*items[:middle], *later)


def _copies(item: Item) -> tuple[Item, ...]:
    """As two interfaces see a packet."""
    return (item, _like(item, item.data, 3_000)) if isinstance(item, Packet) else (item,)


def _swapped(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """One of a hundred packets after the next, as several queues of a network card give them."""
    chance, out = random.Random(1), list(items)
    for at in range(0, len(out) - 1, 2):
        if chance.random() < 0.02:
            out[at], out[at + 1] = out[at + 1], out[at]
    return tuple(out)
