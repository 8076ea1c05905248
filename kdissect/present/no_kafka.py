"""A capture without any exchange → the protocols in it, their ports, and what to do about it."""

from __future__ import annotations

from collections import Counter
from typing import Self

from kdissect.present.form import plural
from kdissect.present.sanitise import sanitise
from kdissect.present.tls import HOW_TO, NO_SECRET, why_dark
from kdissect.session.conversation import Connection

MOST_TOLD = 4
"""The most kinds of connections in the text; the most frequent come first."""
_NAMES = {
    "http": "HTTP",
    "unknown": "another protocol",
    "kafka": "presumed Kafka (-d), without a message",
    "tls": "TLS",
}
_EMPTY = "without a byte"


class NoKafka:
    """Counts connections by their protocol, and by the port of the end that seems to be the broker."""

    def __init__(self) -> None:
        self._found: Counter[tuple[str, str]] = Counter()
        """Connections by protocol and port."""
        self._dark: Counter[str] = Counter()
        """For TLS, why nothing is decoded."""

    def add(self, connection: Connection, why: str | None = None) -> None:
        """Count a connection.

        :param why: what :func:`~kdissect.present.tls.why_dark` gives for it, if that is known.
        """
        protocol = connection.protocol
        what = _NAMES.get(protocol, protocol)
        if protocol == "tls":
            self._dark[why_dark(connection) if why is None else why] += 1
        elif not connection.bytes_to_broker + connection.bytes_from_broker:
            what = _EMPTY
        self._found[what, connection.broker.rpartition(":")[2]] += 1

    def merge(self, later: Self) -> None:
        """Add the counts of later connections."""
        self._found.update(later._found)
        self._dark.update(later._dark)

    def text(self, packets: int) -> str:
        """The text of :meth:`lines`, as one line."""
        return "; ".join(self.lines(packets))

    def lines(self, packets: int) -> list[str]:
        """The protocols, the advice, and why TLS is not decrypted.

        :param packets: how many packets there were.
        """
        total = sum(self._found.values())
        if not packets:
            return ["no Kafka was found: there are no packets"]
        text = f"no Kafka was found: {plural(packets, 'packet')}"
        if not total:
            return [f"{text}, none of TCP"]
        told = [
            f"{count:,} {'' if what == _EMPTY else 'of '}{what} on port {port}"
            for (what, port), count in self._found.most_common(MOST_TOLD)
        ]
        if len(self._found) > MOST_TOLD:
            told.append("and others")
        out = [f"{text}, {plural(total, 'TCP connection')} ({', '.join(told)})"]
        port = self._likeliest()
        if port is not None:
            out.append(f"-d tcp.port=={port},kafka treats a port as Kafka")
        for why, count in self._dark.most_common(1):
            how = f"; {HOW_TO}" if why == NO_SECRET else ""
            out.append(f"nothing is decrypted of {plural(count, 'TLS connection')}: {sanitise(why)}{how}")
        return out

    def _likeliest(self) -> str | None:
        """The port that is most probably a broker's; None if all connections are known to be something
        else."""
        for (what, port), _ in self._found.most_common():
            if what in (_NAMES["unknown"], _EMPTY):
                return port
        return None
