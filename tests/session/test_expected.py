"""Which errors are routine: by their bounds, and with evidence only."""

from __future__ import annotations

from typing import Any

from kdissect.exchange import Exchange
from kdissect.model import Direction
from kdissect.session.pairing import Session
from tests.kafka import request, response
from tests.session.runs import completed, frame
from tests.tcp.segments import BROKER, CLIENT

S = 1_000_000_000
MS = 1_000_000


class Line:
    """A connection on which every request is answered; times are those of the answers."""

    def __init__(self, from_start: bool = True) -> None:
        self.session = Session(0, CLIENT, BROKER, from_start=from_start)
        self.correlation = 0

    def say(
        self, api: str, version: int, asked: dict[str, Any], answered: dict[str, Any], at_ns: int = 0
    ) -> Exchange:
        self.correlation += 1
        number = self.correlation
        self.session.feed(frame(request(api, version, number, **asked), packet=number), number)
        payload = response(api, version, number, **answered)
        answer = frame(payload, Direction.FROM_BROKER, number)._replace(first_ns=at_ns, last_ns=at_ns)
        (exchange,) = completed(self.session.feed(answer, number) or [])
        return exchange

    def beat(self, error: int, at_ns: int = 0, group: str = "g") -> str | None:
        asked = {"groupId": group, "generationId": 1, "memberId": "m"}
        return self.say("Heartbeat", 1, asked, {"throttleTimeMs": 0, "errorCode": error}, at_ns).error_class

    def join(self, error: int, member: str = "", at_ns: int = 0) -> str | None:
        asked = {"groupId": "g", "sessionTimeoutMs": 1, "rebalanceTimeoutMs": 1, "memberId": member}
        asked |= {"protocolType": "consumer", "protocols": []}
        answered = {"throttleTimeMs": 0, "errorCode": error, "generationId": 2, "protocolName": "range"}
        answered |= {"leader": "m", "memberId": "m", "members": []}
        return self.say("JoinGroup", 4, asked, answered, at_ns).error_class

    def fetch(self, error: int, at_ns: int = 0, session: int = 0, top: int = 0) -> str | None:
        asked: dict[str, Any] = {
            "replicaId": -1,
            "maxWaitMs": 1,
            "minBytes": 1,
            "maxBytes": 1,
            "isolationLevel": 0,
        }
        asked |= {"sessionId": session, "sessionEpoch": 1, "topics": [], "forgottenTopicsData": []}
        partition: dict[str, Any] = {
            "partitionIndex": 0,
            "errorCode": error,
            "highWatermark": 1,
            "lastStableOffset": 1,
        }
        partition |= {"logStartOffset": 0, "abortedTransactions": None, "recordsSizeInBytes": 0}
        topics = [{"topic": "orders", "partitions": [{**partition, "records": None}]}]
        answered = {"throttleTimeMs": 0, "errorCode": top, "sessionId": session, "responses": topics}
        return self.say("Fetch", 7, asked, answered, at_ns).error_class


def test_a_member_id_is_required_once() -> None:
    line = Line(from_start=False)
    assert line.join(79) == "routine"  # the exchange itself shows it: a member without an id gets one
    assert line.join(0, "m") is None
    assert line.join(79) == "routine"
    assert line.join(79) == "retriable"  # a client that does not take the id
    assert Line().join(79, member="m") == "retriable"


def test_a_rebalance_is_routine_until_its_time_is_over() -> None:
    line = Line()
    assert line.beat(0) is None
    assert [line.beat(27, at * S) for at in (10, 13, 310)] == ["routine"] * 3
    assert line.beat(27, 311 * S) == "retriable"
    assert line.join(0, "m", 312 * S) is None
    assert line.beat(27, 313 * S) == "routine"  # another one


def test_no_rebalance_has_room_for_a_storm_of_heartbeats() -> None:
    line = Line()
    assert [line.beat(27, at) for at in range(101)] == ["routine"] * 100 + ["retriable"]


def test_what_began_before_the_capture_is_not_called_routine() -> None:
    line = Line(from_start=False)
    assert line.beat(27, 1) == "retriable"
    assert line.beat(0, 2) is None
    assert line.beat(27, 3) == "routine"  # its beginning was seen


def test_what_follows_lost_bytes_is_not_called_routine() -> None:
    line = Line()
    assert line.beat(0, 1) is None
    line.session.gap(Direction.FROM_BROKER)
    assert line.beat(27, 2) == "retriable"


def test_a_coordinator_may_load_for_seconds() -> None:
    line = Line()
    assert [line.beat(14, at * S) for at in (0, 5)] == ["routine"] * 2
    assert line.beat(14, 5 * S + 1) == "retriable"
    assert line.beat(14, 6 * S, group="other") == "routine"  # a run of its own
    assert line.beat(0, 7 * S) is None
    assert line.beat(14, 8 * S) == "routine"


def test_a_leader_that_moved_is_asked_some_times() -> None:
    line = Line()
    assert line.fetch(6, 1) == "retriable"  # it never was the leader, as far as this connection shows
    assert line.fetch(0, 2) is None
    assert [line.fetch(6, at) for at in range(3, 9)] == ["routine"] * 5 + ["retriable"]
    assert line.fetch(0, 9) is None
    assert line.fetch(6, 10) == "routine"
    assert line.fetch(6, 10 + 2 * S + 1) == "retriable"


def test_a_fetch_session_is_forgotten_once() -> None:
    line = Line()
    assert line.fetch(0, 1, session=5) is None
    assert line.fetch(0, 2, session=5, top=70) == "routine"
    assert line.fetch(0, 3, session=5, top=70) == "retriable"
    assert line.fetch(0, 4, session=6, top=70) == "routine"


def test_concurrent_transactions_last_a_moment() -> None:
    line = Line()
    asked = {"transactionalId": "t", "producerId": 1, "producerEpoch": 0, "committed": True}
    told = [
        line.say("EndTxn", 1, asked, {"throttleTimeMs": 0, "errorCode": 51}, at_ns).error_class
        for at_ns in (0, 100 * MS, 101 * MS)
    ]
    assert told == ["routine", "routine", "retriable"]


def test_the_first_question_for_versions_may_be_too_new() -> None:
    line = Line()
    asked = {"clientSoftwareName": "c", "clientSoftwareVersion": "1"}
    answered = {"errorCode": 35, "apiKeys": [], "throttleTimeMs": 0}
    assert line.say("ApiVersions", 3, asked, answered).error_class == "routine"
    assert line.say("ApiVersions", 3, asked, answered).error_class == "fatal"
    assert Line(from_start=False).say("ApiVersions", 3, asked, answered).error_class == "fatal"


def create(line: Line, *topics: tuple[str, int]) -> str | None:
    answered = [{"name": name, "errorCode": code, "errorMessage": None} for name, code in topics]
    asked = {"topics": [], "timeoutMs": 1, "validateOnly": False}
    return line.say("CreateTopics", 2, asked, {"throttleTimeMs": 0, "topics": answered}).error_class


def test_kafkas_own_topics_may_be_there_already() -> None:
    assert create(Line(from_start=False), ("__consumer_offsets", 36)) == "routine"
    assert create(Line(), ("orders", 36)) == "fatal"
    assert create(Line(), ("__consumer_offsets", 36), ("orders", 36)) == "fatal"


def test_the_gravest_of_several_errors_counts() -> None:
    assert create(Line(), ("__consumer_offsets", 36), ("orders", 29)) == "fatal"
    line = Line()
    assert line.fetch(0, 1) is None
    assert line.fetch(6, 2, top=29) == "fatal"
