"""The message while a capture shows no Kafka traffic."""

from __future__ import annotations

from kdissect.live.journal import Status
from kdissect.live.probing import Probe
from kdissect.wording import plural

SILENCE_SECONDS = 8.0
"""The message comes after this time."""


class Silence:
    """Gives the message once. Close it as soon as it is not needed: the probe's sockets cost time for each
    packet.

    :param capture_filter: the filter of the capture; None if another program captured the packets.
    :param probe: sees packets that the filter drops.
    """

    def __init__(self, capture_filter: str | None, probe: Probe | None) -> None:
        self._filter = capture_filter
        self._probe = probe

    def message(self, status: Status) -> str:
        """The message: what arrived, and which ports have Kafka traffic."""
        if status.received:
            of = "" if self._filter is None else f" of {self._filter}"
            said = f"{plural(status.received, 'packet')}{of} so far, none with Kafka"
        elif self._filter is None:
            said = "no packet has come so far"
        else:
            said = f"no packet has matched {self._filter} so far"
        if self._probe is None:
            return said
        ports = self._probe.ports()
        self._probe = None
        if not ports:
            return f"{said}; kdissect saw no Kafka on other ports either"
        others = ", ".join(map(str, ports))
        return (
            f"{said}; there is Kafka on {'port' if len(ports) == 1 else 'ports'} {others}: -f 'tcp port "
            f"{ports[0]}'"
        )

    def close(self) -> None:
        """Close the probe: no message is needed any more."""
        if self._probe is not None:
            self._probe.close()
            self._probe = None
