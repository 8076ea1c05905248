"""The packets a second of each interface, from the kernel's counters: no privilege is needed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

from kdissect.live import devices, libpcap
from kdissect.live.adapters import adapters

_COUNTERS = "/proc/net/dev"
_RECEIVED, _SENT = 1, 9
"""The positions of the packet counts in a line of ``/proc/net/dev``."""


class InterfaceRate(NamedTuple):
    """An interface, and its packets a second."""

    name: str
    state: str
    """``up`` or ``down``; empty if the system does not show it."""
    address: str | None = None
    """IPv4."""
    description: str = ""
    rate: float | None = None
    """Packets a second since the last look; None at the first look."""


def interfaces() -> list[InterfaceRate]:
    """The interfaces that can be captured from. On systems other than Linux they are empty without
    libpcap."""
    if sys.platform == "win32":
        return [InterfaceRate(each.name, "", each.address, each.description) for each in adapters()]
    if sys.platform != "linux":
        found = libpcap.devices() if libpcap.is_available() else ()
        return [InterfaceRate(name, "", description=description) for name, description in found]
    every = InterfaceRate(devices.ANY, "up", description="all of them at once")
    return [every, *(_interface(each) for each in devices.devices())]


def _interface(device: devices.Device) -> InterfaceRate:
    state, description = "up" if device.is_up else "down", "loopback" if device.is_loopback else ""
    return InterfaceRate(device.name, state, device.address, description)


def packet_counts() -> dict[str, int]:
    """The number of packets of each interface. A packet on loopback is both sent and received, and counts
    once."""
    try:
        with open(_COUNTERS, encoding="utf-8", errors="surrogateescape") as file:
            return counts_of(file.read())
    except OSError:  # another system
        return {}


def counts_of(text: str) -> dict[str, int]:
    """The number of packets of each interface, from the text of ``/proc/net/dev``."""
    found: dict[str, int] = {}
    for line in text.split("\n")[2:]:
        name, colon, rest = line.rpartition(":")
        words = rest.split()
        if colon:
            name = name.strip()
            sent = 0 if name == "lo" else int(words[_SENT])
            found[name] = int(words[_RECEIVED]) + sent
    return found


class Rates:
    """Measures the rates of all interfaces again and again.

    :param counts: returns the number of packets of each interface.
    """

    def __init__(
        self,
        listed: Callable[[], list[InterfaceRate]] = interfaces,
        counts: Callable[[], dict[str, int]] = packet_counts,
    ) -> None:
        self._listed = listed
        self._counts = counts
        self._before: dict[str, int] = {}
        self._at: float | None = None

    def look(self, now: float) -> list[InterfaceRate]:
        """The interfaces, with the rates since the last look.

        :param now: seconds of any clock.
        """
        counts = self._counts()
        counts[devices.ANY] = sum(counts.values())
        passed = 0.0 if self._at is None else now - self._at
        out = [each._replace(rate=self._rate(each.name, counts, passed)) for each in self._listed()]
        self._before, self._at = counts, now
        return out

    def _rate(self, name: str, counts: dict[str, int], passed: float) -> float | None:
        if passed <= 0 or name not in counts or name not in self._before:
            return None
        return max(0, counts[name] - self._before[name]) / passed
