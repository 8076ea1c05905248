"""What goes on on the interfaces, as the kernel counts it for anybody who asks: no privilege is needed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

from kdissect.live import devices, libpcap
from kdissect.live.adapters import adapters

_COUNTERS = "/proc/net/dev"
_RECEIVED, _SENT = 1, 9
"""Where the packets stand in a line of it."""


class InterfaceRate(NamedTuple):
    """An interface, and what goes on on it."""

    name: str
    state: str
    """``up`` or ``down``; empty where the system does not tell."""
    address: str | None = None
    """IPv4."""
    description: str = ""
    rate: float | None = None
    """Packets a second since the look before; None at the first."""


def interfaces() -> list[InterfaceRate]:
    """What can be captured from; none on a system that is not Linux, without libpcap."""
    if sys.platform == "win32":
        return [InterfaceRate(each.name, "", each.address, each.description) for each in adapters()]
    if sys.platform != "linux":
        found = libpcap.devices() if libpcap.is_there() else ()
        return [InterfaceRate(name, "", description=description) for name, description in found]
    every = InterfaceRate(devices.ANY, "up", description="all of them at once")
    return [every, *(_interface(each) for each in devices.devices())]


def _interface(device: devices.Device) -> InterfaceRate:
    state, description = "up" if device.is_up else "down", "loopback" if device.is_loopback else ""
    return InterfaceRate(device.name, state, device.address, description)


def packet_counts() -> dict[str, int]:
    """How many packets each interface has seen. What goes through loopback is sent and received, and counts
    once."""
    try:
        with open(_COUNTERS, encoding="utf-8", errors="surrogateescape") as file:
            return counts_of(file.read())
    except OSError:  # another system
        return {}


def counts_of(text: str) -> dict[str, int]:
    """The same of the text of ``/proc/net/dev``."""
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
    """Looks at all interfaces, again and again.

    :param counts: gives what was counted of each.
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
        """The interfaces, with what went on since the look before.

        :param now: seconds, since whenever.
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
