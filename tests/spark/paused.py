"""A capture of a broker that is slow for a moment, and stands still for another one."""

from __future__ import annotations

from collections import Counter
from struct import pack
from typing import Any

from kdissect.analysis.fold import MILLISECOND
from kdissect.model import ACK, PSH, SYN, Packet
from tests.capture.build import DESTINATION4, SOURCE4, ethernet, ipv4
from tests.kafka import framed, request, response
from tests.spark.cuts import pcap

BROKER_PORT = 9_092
_ASKED: dict[str, Any] = {"groupId": "g", "generationId": 1, "memberId": "m"}


def paused() -> bytes:
    """Heartbeats of three connections: 90 that take a millisecond, three that take 150 in one second, and
    two that wait for two seconds and are answered together."""
    usual = [(100 + 10 * at, 1, 0) for at in range(90)]
    slow = [(5_000 + 200 * at, 150, 0) for at in range(3)]
    together = [(8_000, 2_000, 1), (8_190, 1_810, 2)]
    beats = sorted([*usual, *slow, *together])
    messages: list[tuple[int, int, bool, bytes]] = []
    for correlation, (at_ms, took_ms, connection) in enumerate(beats, 1):
        asked = framed(request("Heartbeat", 0, correlation, **_ASKED))
        answer = framed(response("Heartbeat", 0, correlation, errorCode=0))
        messages += [(at_ms, connection, True, asked), (at_ms + took_ms, connection, False, answer)]
    sent: Counter[tuple[int, bool]] = Counter()
    packets = []
    for at_ms, connection, is_request, payload in sorted(messages, key=lambda each: each[:2]):
        port = 40_000 + connection
        if is_request and not sent[connection, True]:
            sent[connection, True] = sent[connection, False] = 1
            packets.append(_packet(at_ms - 1, port, BROKER_PORT, 0, 0, b"", SYN))
            packets.append(_packet(at_ms - 1, BROKER_PORT, port, 0, 1, b"", SYN | ACK))
        here, there = sent[connection, is_request], sent[connection, not is_request]
        ports = (port, BROKER_PORT) if is_request else (BROKER_PORT, port)
        packets.append(_packet(at_ms, *ports, here, there, payload))
        sent[connection, is_request] += len(payload)
    return pcap(packets)


def _packet(
    at_ms: int, source: int, destination: int, seq: int, ack: int, payload: bytes, flags: int = ACK | PSH
) -> Packet:
    head = pack(">HHIIBBHHH", source, destination, seq, ack, 5 << 4, flags, 512, 0, 0)
    data = ethernet(ipv4(head + payload))
    if source == BROKER_PORT:
        data = data.replace(SOURCE4 + DESTINATION4, DESTINATION4 + SOURCE4, 1)
    return Packet(1, at_ms * MILLISECOND, 1, data, len(data))
