"""Rules on what clients do over and over."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis.cluster import ClusterBrokers, ClusterChanges, ClusterTopics
from kdissect.analysis.connections import Connections
from kdissect.analysis.errors import Errors
from kdissect.analysis.fold import MILLISECOND, SECOND, Row
from kdissect.analysis.groups import Members
from kdissect.analysis.quorum import Quorum
from kdissect.analysis.repeats import Repeats
from kdissect.insight.catalogue import RULES
from kdissect.insight.causes import linked
from kdissect.insight.context import SLEPT, JudgingContext
from kdissect.insight.finding import CERTAIN, CRITICAL, LIKELY, NOTICE, WARNING, Finding, FindingSubject
from kdissect.insight.judge import judge
from kdissect.insight.words import span
from kdissect.model import Direction
from tests.analysis.folds import fold, frame
from tests.analysis.folds import made as answered
from tests.analysis.produced import batch, fetch
from tests.insight import made
from tests.insight.rules.shipped import found_in, of_rule

GRADES = {
    "retry-without-backoff": (CRITICAL, CERTAIN),
    "metadata-storm": (WARNING, CERTAIN),
    "unknown-topic-loop": (WARNING, CERTAIN),
    "fetch-spin": (WARNING, CERTAIN),
    "connection-churn": (WARNING, CERTAIN),
    "version-refused": (WARNING, CERTAIN),
    "too-many-in-flight": (NOTICE, LIKELY),
}


@pytest.mark.parametrize("id", GRADES)
def test_severities_are_those_of_the_catalogue(id: str) -> None:
    assert (RULES[id].severity, RULES[id].confidence) == GRADES[id]
    assert RULES[id].page.what
    assert RULES[id].page.do


def said(id: str, rows: list[Row]) -> list[Finding]:
    every = {need: rows if at == 0 else [] for at, need in enumerate(RULES[id].needs)}
    return judge({id: RULES[id]}, every, JudgingContext()).findings


def test_what_an_answer_says_where_the_capture_lacks_its_bytes_is_not_known() -> None:
    """A Fetch that is cut by the snap length may have brought records."""
    event = fetch(1, batch("a"), 1)
    assert event.response is not None
    event.response.frame = frame(Direction.FROM_BROKER, event.response.frame.payload[:20], 2)
    event.response.frame.size = 900
    assert not fold("repeats", [event]).result()


@pytest.mark.parametrize(("behind_ns", "at_once"), [(0, 3), (1, 1), (None, 3)])
def test_what_was_sent_before_the_answer_to_the_one_before_tries_nothing_again(
    behind_ns: int | None, at_once: int
) -> None:
    """After an interruption a broker gets all at once what a client had sent one by one."""
    asked = {"groupId": "g", "generationId": 1, "memberId": "m", "groupInstanceId": None}
    told = {"throttleTimeMs": 0, "errorCode": 16}
    events = [answered("Heartbeat", 4, asked, told, (at * MILLISECOND, SECOND)) for at in range(3)]
    for each in events[1:]:
        each.behind_ns = behind_ns
    (row,) = fold("repeats", events).result()
    assert (row["count"], row["at_once"]) == (3, at_once)


def repeat(**values: Any) -> Row:
    row: Row = dict.fromkeys(column.name for column in Repeats.columns)
    row |= {"connection": 1, "client": "10.0.0.1:5000", "client_id": "c", "replica_id": -1, "api": "Metadata"}
    row |= {"count": 1, "at_once": 1, "at_once_ns": 0, "soon": 1, "soon_ns": 0, "exchanges": [1]}
    return row | {"first_ns": 0, "last_ns": 0} | values


def test_a_loop_over_a_clock_that_was_set_is_none() -> None:
    rows = {Repeats: [repeat(error="UNKNOWN_TOPIC_OR_PARTITION", topic="t", count=9, last_ns=3_600 * SECOND)]}
    assert made.said("unknown-topic-loop", rows)
    wrong = ((SECOND, 3_599 * SECOND),)
    for context in (made.WHOLE._replace(silences=wrong), made.WHOLE._replace(set_back=wrong)):
        assert not made.said("unknown-topic-loop", rows, context=context)
        assert made.unjudged("unknown-topic-loop", rows, context=context) == [SLEPT]


@pytest.mark.parametrize(("lasted_ms", "severity"), [(999, NOTICE), (1_000, CRITICAL)])
def test_brokers_that_ask_a_controller_that_gives_up_do_so_for_a_moment(
    lasted_ms: int, severity: str
) -> None:
    refused = {"api": "Fetch", "error": "NOT_LEADER_OR_FOLLOWER", "topic": "__cluster_metadata"}
    row = repeat(**refused, count=40, at_once=40, at_once_ns=lasted_ms * MILLISECOND)
    (found,) = said("retry-without-backoff", [row])
    assert found.severity == severity
    (found,) = said("retry-without-backoff", [row | {"topic": "orders"}])
    assert found.severity == CRITICAL
    other = repeat(**{**refused, "topic": "orders"}, count=30, at_once=30, at_once_ns=900 * MILLISECOND)
    (found,) = said("retry-without-backoff", [row, other])
    assert found.severity == CRITICAL, "the worst of those that are more than a moment counts"
    assert found.subject.topic == ("orders" if severity == NOTICE else "__cluster_metadata")


@pytest.mark.parametrize(
    ("change", "fires"),
    [
        ({"error": "NOT_COORDINATOR", "at_once": 20, "at_once_ns": 100 * MILLISECOND}, True),
        ({"error": "NOT_COORDINATOR", "at_once": 19}, False),
        ({"at_once": 50, "at_once_ns": SECOND}, True),
        ({"at_once": 50, "at_once_ns": SECOND - 1}, False),
        ({"at_once": 49, "at_once_ns": SECOND}, False),
        ({"api": "ApiVersions", "at_once": 500, "at_once_ns": SECOND}, False),
        ({"api": "Fetch", "at_once": 500, "at_once_ns": SECOND}, False),
    ],
)
def test_a_loop_without_a_pause_is_told(change: dict[str, Any], fires: bool) -> None:
    assert bool(said("retry-without-backoff", [repeat(**{"api": "FindCoordinator", **change})])) == fires


@pytest.mark.parametrize(
    ("count", "seconds", "fires"),
    [
        (30, 10, True),
        (29, 10, False),
        (30, 15, False),
        (32, 15, True),
        (29, 30, False),
        (35, 31, True),
        (500, 9, False),
    ],
)
def test_a_storm_lasts_and_is_quick(count: int, seconds: int, fires: bool) -> None:
    row = repeat(count=count, last_ns=seconds * SECOND)
    assert bool(said("metadata-storm", [row])) == fires


@pytest.mark.parametrize(
    ("count", "halt_ns", "per_s", "unknown"),
    [
        (41, None, 2, []),
        (65, (5 * SECOND, 14 * SECOND), None, [SLEPT]),  # perhaps 7 s really passed
        (65, (5 * SECOND, 16 * SECOND), None, []),  # at most 9 s
        (400, (5 * SECOND, 9 * SECOND), 25, []),  # in 16 s
    ],
)
def test_while_the_clock_stood_still_no_storm_lasted(
    count: int, halt_ns: tuple[int, int] | None, per_s: int | None, unknown: list[str]
) -> None:
    rows = {Repeats: [repeat(count=count, last_ns=(count - 1) * 20 * SECOND // count)]}
    context = made.WHOLE._replace(halts=() if halt_ns is None else (halt_ns,))
    assert [round(each.measure or 0) for each in made.said("metadata-storm", rows, context=context)] == (
        [] if per_s is None else [per_s]
    )
    assert made.unjudged("metadata-storm", rows, context=context) == unknown


def test_a_storm_in_a_long_capture_is_the_longest_stretch_of_a_connection() -> None:
    row = repeat(count=200, last_ns=3_600 * SECOND, soon=150, soon_ns=15 * SECOND)
    (found,) = said("metadata-storm", [row])
    assert found.count == 150


def test_questions_of_several_connections_are_of_one_client() -> None:
    rows = [
        repeat(connection=number, client=f"10.0.0.1:{number}", count=10, first_ns=number * SECOND)
        | {"last_ns": number * SECOND + SECOND}
        for number in range(12)
    ]
    assert len(said("metadata-storm", rows)) == 1
    apart = [row | {"client": f"10.0.0.{number}:1"} for number, row in enumerate(rows)]
    assert not said("metadata-storm", apart)


@pytest.mark.parametrize(
    ("made_s", "ends"),
    [
        (3, "the new one lacks the partitions or the id that it wants. It was deleted."),
        (3.1, "which does not exist. It was deleted."),  # it may not be known everywhere
        (0.9, "which does not exist. It was deleted."),  # it was made before
    ],
)
def test_a_topic_that_was_made_again_is_there(made_s: float, ends: str) -> None:
    row = repeat(topic="t", error="UNKNOWN_TOPIC_OR_PARTITION", count=5, last_ns=5 * SECOND)
    changes = [
        made.row(ClusterChanges, what=what, topic="t", ns=round(at_s * SECOND))
        for what, at_s in (("topic-deleted", 1), ("topic-created", made_s))
    ]
    (found,) = made.said("unknown-topic-loop", {Repeats: [row], ClusterChanges: changes})
    assert found.message.endswith(ends)


@pytest.mark.parametrize(
    ("made_s", "last_s", "is_over"),
    [(5, 6, True), (5, 7, True), (5, 7.1, False), (0.9, 7, False), (60, 6, True)],
)
def test_a_topic_that_was_made_later_was_not_there_before(
    made_s: float, last_s: float, is_over: bool
) -> None:
    row = repeat(topic="t", error="UNKNOWN_TOPIC_OR_PARTITION", count=5, first_ns=SECOND)
    row["last_ns"] = round(last_s * SECOND)
    values = {"what": "topic-created", "topic": "t", "ns": round(made_s * SECOND), "by": "ops@10.0.0.3"}
    change = made.row(ClusterChanges, **values)
    (found,) = made.said("unknown-topic-loop", {Repeats: [row], ClusterChanges: [change]})
    ending = "which did not exist before it was created by ops@10.0.0.3."
    assert found.message.endswith(ending if is_over else "which does not exist.")
    if is_over:
        assert found.resolved_ns == change["ns"]


@pytest.mark.parametrize(
    ("topic", "group", "client", "count"),
    [
        ("words-again-repartition", "words", "10.0.0.1:5001", 0),
        ("words-counts-changelog", "words", "10.0.0.1:5001", 0),
        ("words-counts", "words", "10.0.0.1:5001", 1),
        ("words-again-repartition", "other", "10.0.0.1:5001", 1),
        ("words-again-repartition", "words", "10.0.0.2:5001", 1),
    ],
)
def test_a_streams_application_makes_its_own_topics(topic: str, group: str, client: str, count: int) -> None:
    row = repeat(topic=topic, error="UNKNOWN_TOPIC_OR_PARTITION", count=5, last_ns=5 * SECOND)
    member = made.row(Members, group=group, client_id="c", client=client, last_ns=90 * SECOND)
    change = made.row(ClusterChanges, what="topic-created", topic=topic, ns=5 * SECOND, by="a@10.0.0.1")
    facts: dict[Any, list[Row]] = {Repeats: [row], Members: [member]}
    assert len(made.said("unknown-topic-loop", {**facts, ClusterChanges: [change]})) == count
    assert len(made.said("unknown-topic-loop", facts)) == 1, "nobody made it"


def test_a_denied_request_that_is_tried_without_a_pause_is_explained() -> None:
    loop = repeat(api="InitProducerId", at_once=50, at_once_ns=2 * SECOND, last_ns=SECOND)
    denied = made.row(Errors, error="CLUSTER_AUTHORIZATION_FAILED", api="InitProducerId", count=50)
    denied |= {"client": "10.0.0.1", "client_id": "c", "first_ns": 0, "last_ns": SECOND, "principal": "app"}
    denied |= {"first_exchange": 1, "last_exchange": 9, "broker": "b:1"}
    rules = {id: RULES[id] for id in ("retry-without-backoff", "authorization-denied")}
    facts: dict[Any, list[Row]] = {need: [] for each in rules.values() for need in each.needs}
    facts |= {Repeats: [loop | {"error": "CLUSTER_AUTHORIZATION_FAILED"}], Errors: [denied]}
    found = {each.id: each for each in judge(rules, facts, made.WHOLE).findings}
    assert found["retry-without-backoff"].because == found["authorization-denied"].key


def test_a_quorum_without_a_leader_explains_who_asks_it_without_a_pause() -> None:
    loop = repeat(
        topic="__cluster_metadata", api="Fetch", at_once=50, at_once_ns=22 * SECOND, last_ns=21 * SECOND
    )
    alone = made.row(Quorum, node=1, epoch=1, leaderless_ns=9 * SECOND, leaderless_from_ns=20 * SECOND)
    ids = ("retry-without-backoff", "election-storm")
    facts: dict[type[Any], list[Row]] = {need: [] for id in ids for need in RULES[id].needs}
    facts |= {Repeats: [loop | {"error": "NOT_LEADER_OR_FOLLOWER"}], Quorum: [alone]}
    found = {each.id: each for each in judge({id: RULES[id] for id in ids}, facts, made.WHOLE).findings}
    assert found["retry-without-backoff"].because == found["election-storm"].key


@pytest.mark.parametrize(
    ("change", "fires"),
    [
        ({"count": 5, "last_ns": 5 * SECOND}, True),
        ({"count": 4, "last_ns": 5 * SECOND}, False),
        ({"count": 5, "last_ns": 5 * SECOND - 1}, False),
        ({"count": 5, "last_ns": 5 * SECOND, "replica_id": 2}, False),
        ({"count": 3, "error": "INVALID_TOPIC_EXCEPTION"}, True),
        ({"count": 2, "error": "INVALID_TOPIC_EXCEPTION"}, False),
        ({"count": 50, "last_ns": 5 * SECOND, "error": "NOT_LEADER_OR_FOLLOWER"}, False),
    ],
)
def test_a_topic_that_is_not_there_is_asked_for(change: dict[str, Any], fires: bool) -> None:
    row = repeat(**{"topic": "ordres", "error": "UNKNOWN_TOPIC_OR_PARTITION", **change})
    assert [each.subject.topic for each in said("unknown-topic-loop", [row])] == ["ordres"] * fires


@pytest.mark.parametrize(
    ("count", "last_s", "end_s", "facts", "fires"),
    [
        (10, 2, 7, {}, True),
        (9, 2, 7, {}, False),
        (10, 1, 7, {}, True),
        (10, 0.9, 7, {}, False),  # perhaps one request for ten partitions
        (10, 2, 6.9, {}, False),  # perhaps it is being made
        (10, 2, 7, {ClusterTopics: ["ordres"]}, False),
        (10, 2, 7, {ClusterTopics: ["orders"]}, True),
        (10, 2, 7, {ClusterChanges: ["ordres"]}, False),
    ],
)
def test_a_client_may_give_up_soon(
    count: int, last_s: float, end_s: float, facts: dict[type[Any], list[str]], fires: bool
) -> None:
    """As sarama does."""
    row = repeat(topic="ordres", error="UNKNOWN_TOPIC_OR_PARTITION", count=count)
    row["last_ns"] = round(last_s * SECOND)
    rows: dict[type[Any], list[Row]] = {Repeats: [row]}
    for need, topics in facts.items():
        more = {"what": "topic-created", "ns": 9} if need is ClusterChanges else {}
        rows[need] = [made.row(need, topic=topic, **more) for topic in topics]
    context = made.WHOLE._replace(first_ns=0, last_ns=round(end_s * SECOND))
    assert bool(made.said("unknown-topic-loop", rows, context=context)) == fires


@pytest.mark.parametrize(
    ("member", "asked", "topics", "waited_s"),
    [
        ({}, {}, [], 5.5),
        ({"last_ns": 6 * SECOND - 1}, {}, [], None),
        ({"last_ns": 6 * SECOND}, {}, [], 5.0),
        ({}, {"count": 4}, [], 5.5),
        ({}, {}, ["ordres"], None),
        ({}, {}, ["orders"], 5.5),
        ({"subscribed": ["orders"]}, {}, [], None),
        ({"subscribed": []}, {}, [], None),
        ({"client_id": "other"}, {}, [], None),
        ({"client": "10.0.0.2:9"}, {}, [], None),
        ({"client": None}, {}, [], None),
        ({}, {"error": "INVALID_TOPIC_EXCEPTION"}, [], None),
        ({}, {"error": "NOT_LEADER_OR_FOLLOWER"}, [], None),
    ],
)
def test_a_member_of_a_group_may_wait_without_asking_again(
    member: dict[str, Any], asked: dict[str, Any], topics: list[str], waited_s: float | None
) -> None:
    """As kafka-go does."""
    known = {"group": "g", "client_id": "c", "client": "10.0.0.1:5001", "subscribed": ["ordres", "orders"]}
    row = repeat(topic="ordres", error="UNKNOWN_TOPIC_OR_PARTITION", last_ns=SECOND) | asked
    rows: dict[type[Any], list[Row]] = {
        Repeats: [row],
        Members: [made.row(Members, **{**known, "last_ns": round(6.5 * SECOND), **member})],
        ClusterTopics: [made.row(ClusterTopics, topic=topic) for topic in topics],
    }
    found = made.said("unknown-topic-loop", rows)
    assert len(found) == (waited_s is not None)
    for each in found:
        assert (each.severity, each.confidence) == (NOTICE, CERTAIN)
        times = "once" if row["count"] == 1 else "4 times"
        assert each.message == (
            "The client is in group g to read topic ordres, which does not exist. It asked for it "
            f"{times}, and then waited {span(round((waited_s or 0) * SECOND))} without asking again."
        )


def test_a_member_that_asks_in_a_loop_is_told_once() -> None:
    known = {"group": "g", "client_id": "c", "client": "10.0.0.1:5001", "subscribed": ["ordres"]}
    row = repeat(topic="ordres", error="UNKNOWN_TOPIC_OR_PARTITION", count=9, last_ns=9 * SECOND)
    member = made.row(Members, **known, last_ns=90 * SECOND)
    (found,) = made.said("unknown-topic-loop", {Repeats: [row], Members: [member]})
    assert found.severity == WARNING


def test_what_to_do_about_a_deleted_topic_is_not_to_correct_its_name() -> None:
    row = repeat(topic="t", error="UNKNOWN_TOPIC_OR_PARTITION", count=5, last_ns=5 * SECOND)
    gone = made.row(ClusterChanges, what="topic-deleted", topic="t", ns=SECOND)
    (found,) = made.said("unknown-topic-loop", {Repeats: [row], ClusterChanges: [gone]})
    assert found.cause.startswith("Somebody deleted the topic")
    assert found.fix.startswith("Stop the client, or take the topic out of what it reads")
    (found,) = made.said("unknown-topic-loop", {Repeats: [row]})
    assert found.fix.startswith("Correct the name")


def test_why_a_topic_is_not_there_is_told() -> None:
    row = repeat(topic="t", error="UNKNOWN_TOPIC_OR_PARTITION", count=5, last_ns=5 * SECOND)
    values = {"error": "INVALID_REPLICATION_FACTOR", "api": "CreateTopics", "topic": "t"}
    gone = {"what": "topic-deleted", "topic": "t", "ns": SECOND, "by": "ops@10.0.0.3"}

    def message(unmade: dict[str, Any], deleted: dict[str, Any]) -> str:
        facts = {
            Repeats: [row],
            Errors: [made.row(Errors, **{**values, **unmade})],
            ClusterChanges: [made.row(ClusterChanges, **{**gone, **deleted})],
        }
        (found,) = made.said("unknown-topic-loop", facts)
        return found.message

    other = {"topic": "other"}
    assert message({}, other).endswith(
        "does not exist. The cluster cannot make it (INVALID_REPLICATION_FACTOR)."
    )
    assert message(other, {}).endswith("does not exist. It was deleted by ops@10.0.0.3.")
    assert message(other, {"by": None}).endswith("does not exist. It was deleted.")
    # Of another cluster than the client asks, which has a topic of this name, too.
    elsewhere = made.row(ClusterBrokers, cluster_id="k", node_id=1, host="10.0.0.1", port=9092)
    facts = {Repeats: [{**row, "broker": "10.0.0.1:9092"}], ClusterBrokers: [elsewhere]}
    for cluster_id, is_told in (("k", True), ("other", False)):
        deleted = made.row(ClusterChanges, **gone, cluster_id=cluster_id)
        (found,) = made.said("unknown-topic-loop", {**facts, ClusterChanges: [deleted]})
        assert ("It was deleted" in found.message) == is_told
    for more in (other, {"error": "TOPIC_ALREADY_EXISTS"}, {"api": "Metadata"}):
        assert message(more, {"ns": 5 * SECOND + 1}).endswith("does not exist.")


@pytest.mark.parametrize(("count", "fires"), [(101, True), (99, False)])
def test_a_consumer_spins(count: int, fires: bool) -> None:
    row = repeat(api="Fetch", soon=count, soon_ns=5 * SECOND)
    assert bool(said("fetch-spin", [row])) == fires
    assert not said("fetch-spin", [row | {"replica_id": 1}])
    assert not said("fetch-spin", [row | {"soon_ns": 4 * SECOND}])


def connection(number: int, life_s: float, requests: int = 3, every_s: float = 1) -> Row:
    row: Row = dict.fromkeys(column.name for column in Connections.columns)
    start = int(number * every_s * SECOND)
    row |= {"connection": number, "client": f"10.0.0.1:{number}", "client_id": "c", "protocol": "kafka"}
    row |= {"end": "fin", "requests": requests, "first_ns": start, "last_ns": start + int(life_s * SECOND)}
    return row


def test_connections_that_live_short_are_churn() -> None:
    short = [connection(number, 0.1) for number in range(30)]
    (found,) = said("connection-churn", short)
    assert (found.subject.client_id, found.count) == ("c", 30)
    assert not said("connection-churn", short[:29])
    assert not said("connection-churn", [connection(number, 0.1, every_s=2.1) for number in range(30)])
    assert not said("connection-churn", [connection(number, 5, 6) for number in range(30)])
    assert said("connection-churn", [connection(number, 5, 5) for number in range(30)])
    assert not said("connection-churn", [row | {"end": "open"} for row in short])
    assert not said("connection-churn", [row | {"client_id": None} for row in short])


def test_a_refused_version_is_told_but_not_when_versions_are_asked_for() -> None:
    assert said("version-refused", [repeat(api="OffsetFetch", error="UNSUPPORTED_VERSION")])
    assert not said("version-refused", [repeat(api="ApiVersions", error="UNSUPPORTED_VERSION")])


@pytest.mark.parametrize(("most", "fires"), [(50, True), (49, False), (None, False)])
def test_very_many_requests_in_flight_are_told(most: int | None, fires: bool) -> None:
    assert bool(said("too-many-in-flight", [connection(1, 1) | {"in_flight_max": most}])) == fires


@pytest.mark.parametrize(
    ("case", "id", "subjects"),
    [
        ("metadata-storm", "metadata-storm", {("curious", None)}),
        ("unknown-topic", "unknown-topic-loop", {("seeker", "ordres"), ("hopeful", "ordres")}),
        ("connection-churn", "connection-churn", {("webhook", None)}),
    ],
)
def test_loops_of_real_clients_are_found(case: str, id: str, subjects: set[tuple[str, str | None]]) -> None:
    found = of_rule(case, id)
    assert {(each.subject.client_id, each.subject.topic) for each in found} == subjects
    assert all(each.because is None for each in found)


@pytest.mark.parametrize("case", ["healthy", "lag-grows", "poison-pill", "rolling-restart-dynamic"])
def test_other_captures_have_none(case: str) -> None:
    assert not [each for each in found_in(case) if each.id in GRADES]


def at_once(id: str, **subject: Any) -> Finding:
    """A finding of a rule that lasted from the first to the second second."""
    every: dict[str, Any] = {"severity": WARNING, "confidence": LIKELY, "category": "loops", "message": "m"}
    return Finding(id, subject=FindingSubject(**subject), first_ns=SECOND, last_ns=2 * SECOND, **every)


WHO = {"client_id": "c", "client": "10.0.0.1"}


@pytest.mark.parametrize(
    ("effect", "cause", "other"),
    [
        # What a client's own finding explains, no broker explains.
        (at_once("metadata-storm", **WHO), at_once("authorization-denied", **WHO), at_once("leader-moved")),
        (at_once("small-fetches", **WHO), at_once("fetch-spin", **WHO), at_once("fetch-spin", client_id="d")),
        (at_once("fetch-spin", **WHO), at_once("under-min-isr", topic="t"), at_once("leader-moved")),
    ],
)
def test_what_explains_a_loop(effect: Finding, cause: Finding, other: Finding) -> None:
    found = {each.id: each for each in linked([other, cause, effect]) if each is not other}
    assert found[effect.id].because == cause.key
