"""Captures of real brokers and clients, with the logs of these brokers and clients.

``tests/data/lab/<case>/`` has the capture, the broker's request log (JSON, or text from brokers before 2.8),
and the records as the clients saw them. ``case.json`` has ports, counts and the actions.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from kdissect.capture.files import read_packets
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.model import Fault, Packet, Secrets
from kdissect.session.conversation import Connection
from tests.dissecting import dissect

DATA = Path(__file__).parent / "data"
LAB = DATA / "lab"


class Dissected(NamedTuple):
    """The result of kdissect for a capture."""

    exchanges: list[Exchange]
    """The exchanges, by number."""
    connections: list[Connection]
    faults: list[Fault]
    """The faults outside of exchanges."""


def dissected(items: Iterable[Packet | Secrets | Fault]) -> Dissected:
    """Run the pipeline over packets, and sort the events."""
    return sorted_out(dissect(items))


def sorted_out(events: Iterable[Event]) -> Dissected:
    """Exchanges, connections and faults, separately."""
    out = Dissected([], [], [])
    for event in events:
        if isinstance(event, Exchange):
            out.exchanges.append(event)
        elif isinstance(event, Connection):
            out.connections.append(event)
        else:
            out.faults.append(event)
    out.exchanges.sort(key=lambda exchange: exchange.number)
    return out


class Case(NamedTuple):
    """One case of the lab."""

    name: str

    @property
    def folder(self) -> Path:
        return LAB / self.name

    @property
    def capture(self) -> Path:
        """The compressed packets."""
        (path,) = self.folder.glob("capture.pcap*")
        return path

    @property
    def is_tls(self) -> bool:
        return (self.folder / "keys.log").exists()

    def info(self) -> dict[str, Any]:
        """``case.json``."""
        found: dict[str, Any] = json.loads((self.folder / "case.json").read_text())
        return found

    def packets(self) -> Iterator[Packet | Secrets | Fault]:
        return iter(read_packets([self.capture]))

    def log(self) -> Iterator[dict[str, Any]]:
        """The broker's request log in JSON, one entry for each request, in the order of completion."""
        return _rows(self.folder / "oracle.ndjson.gz")

    def text_log(self) -> Iterator[str]:
        """The request log of a broker that writes text."""
        with gzip.open(self.folder / "oracle-text.log.gz", "rt", encoding="utf-8", newline="\n") as lines:
            yield from lines

    def payloads(self) -> Iterator[dict[str, Any]]:
        """The records that a producer sent or a consumer received."""
        return _rows(self.folder / "payloads.ndjson.gz")


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        for line in lines:
            yield json.loads(line)


def with_file(name: str) -> list[str]:
    """The names of the cases that have this file."""
    return sorted(path.parent.name for path in LAB.glob(f"*/{name}"))


CASES = with_file("case.json")
TLS_CASES = with_file("keys.log")
CLEAR_CASES = [name for name in CASES if name not in TLS_CASES]


@cache
def dissected_case(name: str) -> Dissected:
    """A case's capture, dissected once for all tests, which must not change it."""
    return dissected(Case(name).packets())
