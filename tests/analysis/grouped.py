"""Members of a classic group and what they say, made by hand: times in milliseconds."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kdissect.exchange import Exchange
from tests.analysis.folds import made

MS = 1_000_000
SESSION_MS, POLL_MS = 10_000, 20_000


def _text(name: str) -> bytes:
    return len(name).to_bytes(2, "big") + name.encode()


Owned = Sequence[tuple[str, tuple[int, ...]]]


def subscription(topics: Sequence[str], owned: Owned = ()) -> str:
    """What a consumer tells its leader, version 1."""
    blob = (1).to_bytes(2, "big") + _count(topics) + b"".join(map(_text, topics)) + b"\xff" * 4
    return b64encode(blob + _partitions(owned)).decode()


def _count(items: Sequence[object]) -> bytes:
    return len(items).to_bytes(4, "big")


def _partitions(held: Owned) -> bytes:
    out = _count(held)
    for topic, partitions in held:
        out += _text(topic) + _count(partitions) + b"".join(each.to_bytes(4, "big") for each in partitions)
    return out


def worker(url: str, config_offset: int) -> str:
    """What a worker of Connect tells its leader, version 0: its address, and how far it has read the
    configurations."""
    return b64encode(bytes(2) + _text(url) + config_offset.to_bytes(8, "big", signed=True)).decode()


def assignment(topic: str, *partitions: int) -> str:
    """What a leader gives a consumer, version 0."""
    return b64encode(bytes(2) + _partitions([(topic, partitions)]) + b"\xff" * 4).decode()


@dataclass
class Client:
    """A client of its own connection."""

    name: str
    port: int
    instance: str | None = None
    topics: tuple[str, ...] = ("orders",)
    group: str = "g"

    def _made(self, api: str, version: int, asked: Any, answer: Any, at: tuple[float, float]) -> Exchange:
        times = round(at[0] * MS) or 1, round(at[1] * MS)
        asked = {"client_id": self.name, **asked}
        out = made(api, version, asked, answer, times, self.port)
        out.client_endpoint = bytes((10, 0, 0, 9)) + self.port.to_bytes(2, "big")
        if answer is None:
            out.missing = "capture ended"
        return out

    def join(
        self,
        at: float,
        told: float | None,
        generation: int = -1,
        member: str = "",
        asks_as: str | None = None,
        roster: tuple[str, ...] = (),
        error: int = 0,
        leader: str = "",
        assignor: str = "range",
        owned: Owned = (),
        metadata: str | None = None,
    ) -> Exchange:
        """A JoinGroup (v5: no reasons). ``roster`` is given to the leader. Of a consumer, unless ``metadata``
        stands there."""
        asked = {
            "groupId": self.group,
            "sessionTimeoutMs": SESSION_MS,
            "rebalanceTimeoutMs": POLL_MS,
            "memberId": member if asks_as is None else asks_as,
            "groupInstanceId": self.instance,
            "protocolType": "connect" if metadata else "consumer",
            "protocols": [{"name": assignor, "metadata": metadata or subscription(self.topics, owned)}],
        }
        members = [
            {"memberId": each, "groupInstanceId": None, "metadata": metadata or subscription(self.topics)}
            for each in roster
        ]
        answer = {
            "throttleTimeMs": 0,
            "errorCode": error,
            "generationId": generation,
            "protocolName": assignor if not error else "",
            "leader": leader or (member if roster else "other"),
            "memberId": member,
            "members": members,
        }
        return self._made("JoinGroup", 5, asked, None if told is None else answer, (at, told or at))

    def enter(
        self, at: float, told: float, generation: int, member: str, roster: tuple[str, ...] = ()
    ) -> list[Any]:
        """Join as a new member: it is told its id first (KIP-394)."""
        first = self.join(at, at + 1, member=member, asks_as="", error=79)
        return [first, self.join(at + 2, told, generation, member, roster=roster)]

    def sync(
        self, at: float, generation: int, member: str, given: dict[str, tuple[int, ...]] | None = None
    ) -> Exchange:
        """A SyncGroup; ``given`` makes it the leader's. A member gets its own, or nothing that is told."""
        assigned = [
            {"memberId": name, "assignment": assignment("orders", *held)}
            for name, held in (given or {}).items()
        ]
        asked = {
            "groupId": self.group,
            "generationId": generation,
            "memberId": member,
            "groupInstanceId": self.instance,
            "assignments": assigned,
        }
        own = assignment("orders", *(given or {}).get(member, ()))
        answer = {"throttleTimeMs": 0, "errorCode": 0, "assignment": own}
        return self._made("SyncGroup", 3, asked, answer, (at, at + 1))

    def beat(self, at: float, generation: int, member: str, error: int = 0) -> Exchange:
        """A Heartbeat."""
        asked = {
            "groupId": self.group,
            "generationId": generation,
            "memberId": member,
            "groupInstanceId": self.instance,
        }
        return self._made("Heartbeat", 3, asked, {"throttleTimeMs": 0, "errorCode": error}, (at, at + 1))

    def beats(
        self, first: float, last: float, generation: int, member: str, every: float = 3_000
    ) -> list[Exchange]:
        """Heartbeats from one time to another."""
        count = int((last - first) // every) + 1
        return [self.beat(first + each * every, generation, member) for each in range(count)]

    def leave(self, at: float, member: str) -> Exchange:
        """A LeaveGroup (v1: without a reason)."""
        answer = {"throttleTimeMs": 0, "errorCode": 0}
        return self._made("LeaveGroup", 1, {"groupId": self.group, "memberId": member}, answer, (at, at + 1))

    def fetch(self, at: float) -> Exchange:
        """A Fetch."""
        asked = {
            "replicaId": -1,
            "maxWaitMs": 500,
            "minBytes": 1,
            "maxBytes": 1,
            "isolationLevel": 0,
            "topics": [],
        }
        return self._made("Fetch", 4, asked, {"throttleTimeMs": 0, "responses": []}, (at, at + 1))
