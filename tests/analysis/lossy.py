"""Captures with packets taken away: thinned, without their beginning, one direction only."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

from kdissect.capture.files import read_packets
from kdissect.dissect import Event, dissect
from kdissect.exchange import Exchange
from kdissect.model import Fault, Packet, Secrets
from tests.shared import SHARED

Item = Packet | Secrets | Fault

WAYS = ("2 % lost, 1", "2 % lost, 2", "2 % lost, 3", "no first third", "requests only", "responses only")


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
