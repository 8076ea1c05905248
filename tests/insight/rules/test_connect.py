"""Rules on Kafka Connect: workers that come back with tasks of others, and workers that lag behind."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence

import pytest

from kdissect.analysis.rebalances import Rebalances, RebalanceSteps
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.insight.catalogue import RULES
from kdissect.insight.causes import linked
from kdissect.insight.finding import CERTAIN, NOTICE, WARNING, Finding, FindingSubject
from tests.analysis.folds import fold, made
from tests.insight.judged import CAPTURES, judged_file
from tests.insight.made import said

MS, S = 1_000_000, 1_000
Tasks = Sequence[tuple[str, tuple[int, ...]]]
IDS = ("connect-zombie", "connect-config-behind")


def _text(text: str) -> bytes:
    return len(text).to_bytes(2, "big") + text.encode()


def _tasks(held: Tasks) -> bytes:
    out = len(held).to_bytes(4, "big")
    for connector, tasks in held:
        out += _text(connector) + len(tasks).to_bytes(4, "big")
        out += b"".join(each.to_bytes(4, "big", signed=True) for each in tasks)
    return out


def assignment(held: Tasks, offset: int = 7) -> bytes:
    """What the leader gives a worker, version 1."""
    head = bytes((0, 1, 0, 0)) + _text("a") + _text("http://a:8083/") + offset.to_bytes(8, "big")
    return head + _tasks(held) + _tasks(()) + bytes(4)


class Worker:
    """A worker of Connect."""

    def __init__(self, name: str, port: int) -> None:
        self.name, self.port = name, port
        self.url = f"http://{name}:8083/"

    def _made(
        self, api: str, version: int, asked: object, answer: object, at: tuple[float, float]
    ) -> Exchange:
        assert isinstance(asked, dict)
        assert isinstance(answer, dict)
        times = round(at[0] * MS) or 1, round(at[1] * MS)
        out = made(api, version, {"client_id": self.name, **asked}, answer, times, self.port)
        out.client_endpoint = bytes((10, 0, 0, self.port % 250)) + self.port.to_bytes(2, "big")
        return out

    def join(
        self,
        at: float,
        told: float,
        generation: int,
        member: str,
        held: Tasks | None = None,
        offset: int = 7,
        roster: Sequence[str] = (),
    ) -> Exchange:
        """Join; the one with a roster leads."""
        state = b"\x00\x01" + _text(self.url) + offset.to_bytes(8, "big")
        blob = assignment(held) if held is not None else b""
        state += len(blob).to_bytes(4, "big") + blob if held is not None else b"\xff" * 4
        asked = {
            "groupId": "connect",
            "sessionTimeoutMs": 10_000,
            "rebalanceTimeoutMs": 60_000,
            "memberId": member,
            "groupInstanceId": None,
            "protocolType": "connect",
            "protocols": [{"name": "sessioned", "metadata": b64encode(state).decode()}],
        }
        answer = {
            "throttleTimeMs": 0,
            "errorCode": 0,
            "generationId": generation,
            "protocolName": "sessioned",
            "leader": member if roster else "a-1",
            "memberId": member,
            "members": [{"memberId": each, "groupInstanceId": None, "metadata": ""} for each in roster],
        }
        return self._made("JoinGroup", 5, asked, answer, (at, told))

    def sync(self, at: float, generation: int, member: str, given: dict[str, Tasks]) -> Exchange:
        """What the leader gives to all."""
        asked = {
            "groupId": "connect",
            "generationId": generation,
            "memberId": member,
            "groupInstanceId": None,
            "protocolType": "connect",
            "protocolName": "sessioned",
            "assignments": [
                {"memberId": each, "assignment": b64encode(assignment(held)).decode()}
                for each, held in given.items()
            ],
        }
        own = b64encode(assignment(given.get(member, ()))).decode()
        answer = {
            "throttleTimeMs": 0,
            "errorCode": 0,
            "protocolType": "connect",
            "protocolName": "sessioned",
            "assignment": own,
        }
        return self._made("SyncGroup", 5, asked, answer, (at, at + 1))


A, B = Worker("a", 5001), Worker("b", 5002)
BOTH: Tasks = (("sink", (-1, 0)), ("source", (0,)))


def found(id: str, events: Sequence[Event]) -> list[Finding]:
    rows = {each: fold(each.name, events).result() for each in (Rebalances, RebalanceSteps)}
    return said(id, rows)


def back(held: Tasks | None, worker: Worker = B, member: str = "b-2") -> list[Event]:
    """B is silent, A is given all, B comes back and says what it has."""
    return [
        A.join(0, 100, 1, "a-1", (), roster=("a-1", "b-1")),
        B.join(10, 100, 1, "b-1", ()),
        A.sync(110, 1, "a-1", {"a-1": (), "b-1": BOTH}),
        A.join(20 * S, 20 * S + 10, 2, "a-1", (), roster=("a-1",)),
        A.sync(20 * S + 20, 2, "a-1", {"a-1": BOTH}),
        A.join(40 * S, 40 * S + 50, 3, "a-1", BOTH, roster=("a-1", member)),
        worker.join(40 * S + 1, 40 * S + 50, 3, member, held),
        A.sync(40 * S + 60, 3, "a-1", {"a-1": BOTH, member: ()}),
    ]


def test_severities_are_those_of_the_catalogue() -> None:
    assert (RULES["connect-zombie"].severity, RULES["connect-zombie"].confidence) == (WARNING, CERTAIN)
    behind = RULES["connect-config-behind"]
    assert (behind.severity, behind.confidence) == (NOTICE, CERTAIN)


def test_a_worker_that_comes_back_with_tasks_of_another_is_told() -> None:
    (told,) = found("connect-zombie", back(BOTH))
    assert (told.subject.group, told.subject.client_id, told.measure) == ("connect", "b", 3)
    assert "3 connectors and tasks" in told.message
    (one,) = found("connect-zombie", back((("sink", (0,)),)))
    assert one.measure == 1


@pytest.mark.parametrize("held", [None, (), (("other", (0,)),)])
def test_a_worker_that_has_nothing_of_others_is_not(held: Tasks | None) -> None:
    assert not found("connect-zombie", back(held))


def test_a_worker_that_comes_back_under_another_id_has_what_was_its_own() -> None:
    assert not found("connect-zombie", back(BOTH, A, "a-2"))


def test_where_it_was_not_seen_who_was_given_what_nobody_is_accused() -> None:
    assert not found("connect-zombie", [each for each in back(BOTH) if _api(each) != "SyncGroup"])
    # Who the member is that was given them is not known: it may be the same worker.
    strange = [each for each in back(BOTH) if not (_api(each) == "JoinGroup" and _name(each) == "a")]
    assert not found("connect-zombie", strange)


def _api(event: Event) -> str | None:
    return event.api if isinstance(event, Exchange) else None


def _name(event: Event) -> str | None:
    return event.client_id if isinstance(event, Exchange) else None


def lagging(later_s: float, offset: int) -> list[Event]:
    first = [
        A.join(1, 100, 1, "a-1", (), 9, roster=("a-1",)),
        A.sync(110, 1, "a-1", {"a-1": ()}),
    ]
    at = later_s * S + 1
    second = [
        A.join(at + 1, at + 50, 2, "a-1", (), 9, roster=("a-1", "b-1")),
        B.join(at, at + 50, 2, "b-1", (), offset),
    ]
    return [*first, *second]


def test_a_worker_that_has_read_less_than_was_told_half_a_minute_ago_is_behind() -> None:
    (told,) = found("connect-config-behind", lagging(30, 8))
    assert (told.subject.client_id, told.subject.group, told.measure) == ("b", "connect", 30)
    assert not found("connect-config-behind", lagging(29.9, 8))
    assert not found("connect-config-behind", lagging(30, 9))
    assert not found("connect-config-behind", lagging(30, 10))


def test_consumers_have_no_such_trouble() -> None:
    for name in ("basic-kafka43.pcapng", "incidents/rolling-restart-static.pcapng.gz"):
        assert not [each for each in judged_file(CAPTURES / name).findings if each.id in IDS]


def test_a_worker_that_was_silent_is_why_it_comes_back_and_not_another() -> None:
    def finding(id: str, client_id: str) -> Finding:
        return Finding(id, WARNING, CERTAIN, "", FindingSubject(group="g", client_id=client_id), "")

    silent = [finding("session-timeout", each) for each in ("one", "two")]
    back = linked([*silent, finding("connect-zombie", "two")])[-1]
    assert back.because == silent[1].key
