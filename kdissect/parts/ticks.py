"""The packets of a part that are later than all before them, and their times. They show when connections have
lingered long enough. Almost every packet is such a tick, so each tick takes only some bytes."""

from __future__ import annotations

import sys

from kdissect.dissect import BEFORE_ALL
from kdissect.parts.packed import PackedNumbers

_BEFORE_ALL = BEFORE_ALL
_STEP_BYTES = 5
"""A step has two numbers: packets since the last tick (one byte), and nanoseconds since it (four bytes,
lowest first)."""
_MOST_STEP, _MOST_LATER = 0xFF, 0xFFFF_FFFF
_RUN = 32
"""The most ticks that follow each whole number, and so the most steps of a search."""


class Ticks:
    """Ticks are added in order; then any can be found. It can be pickled."""

    def __init__(
        self,
        packets: PackedNumbers | None = None,
        times: PackedNumbers | None = None,
        places: PackedNumbers | None = None,
        steps: bytes = b"",
        latest_ns: int = _BEFORE_ALL,
    ) -> None:
        self._packets = packets or PackedNumbers()
        """The packet of the first tick of each run …"""
        self._times = times or PackedNumbers()
        """… its time …"""
        self._places = places or PackedNumbers()
        """… and where the steps to the ticks after it begin."""
        self._steps = bytearray(steps)
        self._size = len(steps)
        """How many bytes of ``_steps`` are used."""
        self._room = self._size
        """How many bytes ``_steps`` has."""
        self._left = 0
        """How many more ticks may follow in the run."""
        self._packet = 0
        """The latest packet …"""
        self.latest_ns = latest_ns
        """… and its time."""

    def __reduce__(
        self,
    ) -> tuple[type[Ticks], tuple[PackedNumbers, PackedNumbers, PackedNumbers, bytes, int]]:
        steps = bytes(memoryview(self._steps)[: self._size])
        return Ticks, (self._packets, self._times, self._places, steps, self.latest_ns)

    def add(self, packet: int, timestamp_ns: int) -> None:
        """Add a packet that is later than all before it."""
        step = packet - self._packet
        later = timestamp_ns - self.latest_ns  # compiled, it may overflow and become negative
        self._packet, self.latest_ns = packet, timestamp_ns
        if self._left == 0 or step < 0 or step > _MOST_STEP or later < 0 or later > _MOST_LATER:
            self._packets.add(packet)
            self._times.add(timestamp_ns)
            self._places.add(self._size)
            self._left = _RUN
            return
        at = self._size
        if at + _STEP_BYTES > self._room:
            self._steps.extend(bytes(4_096 + self._room))
            self._room = len(self._steps)
        raw = self._steps  # compiled: a C pointer to its bytes
        raw[at] = step
        raw[at + 1] = later & 0xFF
        raw[at + 2] = later >> 8 & 0xFF
        raw[at + 3] = later >> 16 & 0xFF
        raw[at + 4] = later >> 24
        self._size = at + _STEP_BYTES
        self._left -= 1

    def later_than(self, timestamp_ns: int) -> tuple[int, int] | None:
        """The first packet after a time, and the packet's time; None if no packet is later."""
        if timestamp_ns >= sys.maxsize:
            return None
        run, runs = self._times.place_of(timestamp_ns + 1), self._times.count()
        if run:
            at, packet, time_ns = self._places.at(run - 1), self._packets.at(run - 1), self._times.at(run - 1)
            end = self._places.at(run) if run < runs else self._size
            silent_ns = min(timestamp_ns - time_ns, _RUN * _MOST_LATER)
            steps = self._steps
            passed_ns = 0
            while at < end:
                packet += steps[at]
                later = steps[at + 4]
                passed_ns += later << 24 | steps[at + 3] << 16 | steps[at + 2] << 8 | steps[at + 1]
                if passed_ns > silent_ns:
                    return packet, time_ns + passed_ns
                at += _STEP_BYTES
        if run == runs:
            return None
        return self._packets.at(run), self._times.at(run)
