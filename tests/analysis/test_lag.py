"""How far groups are behind: what they committed, and where the log ends."""

from __future__ import annotations

import pytest

from kdissect.analysis.clusters import NameAt
from kdissect.analysis.fold import MILLISECOND, SECOND, Row
from kdissect.analysis.lag import Lag
from kdissect.analysis.lag_course import COMMIT, CommittedOffset, LagCourse, LagKey, whole_row
from kdissect.analysis.room import open_all
from kdissect.exchange import Exchange
from kdissect.limits import Limits
from tests.analysis.folds import fold, made
from tests.analysis.traffic import (
    TOPIC,
    asked_offsets,
    commit,
    end_transaction,
    fetch,
    produce,
    transaction_commit,
)


def only(rows: list[Row]) -> Row:
    (row,) = rows
    return row


def test_the_log_ends_at_the_newest_offset_that_any_answer_told() -> None:
    events = [commit((1, 2), 10)]
    row = only(fold("lag", events).result())
    assert (row["committed"], row["log_end"], row["lag"]) == (10, 10, 0)
    for event, end in (
        (produce((3, 4), 20, [1, 1]), 22),
        (fetch((5, 6), 10, [], 30), 30),
        (fetch((7, 8), 10, [], 25), 30),
        (listed((9, 10), -1, 40), 40),
        (listed((11, 12), -2, 50), 40),
    ):
        events.append(event)
        row = only(fold("lag", events).result())
        assert (row["log_end"], row["lag"]) == (end, end - 10)


def listed(at: tuple[int, int], timestamp: int, offset: int, client_id: str = "test") -> Exchange:
    asked = {"partitionIndex": 0, "currentLeaderEpoch": -1, "timestamp": timestamp}
    told = {"partitionIndex": 0, "errorCode": 0, "timestamp": -1, "offset": offset, "leaderEpoch": 0}
    return made(
        "ListOffsets",
        7,
        {"client_id": client_id, "replicaId": -1, "isolationLevel": 0}
        | {"topics": [{"name": TOPIC, "partitions": [asked]}]},
        {"throttleTimeMs": 0, "topics": [{"name": TOPIC, "partitions": [told]}]},
        (at[0] * MILLISECOND, at[1] * MILLISECOND),
    )


DELETED = ("deleted_from", "deleted_to", "deleted_for", "deleted_ns", "deleted_exchange")


@pytest.mark.parametrize(
    ("beginning", "later", "is_told"),
    [
        (50, [50], True),
        (50, [60], True),
        (11, [11], True),
        (50, [49], False),  # the client goes on with what it had read
        (50, [], False),  # perhaps it is a tool, and not one of the group
        (10, [60], False),  # all was read
        (0, [60], False),
    ],
)
def test_a_consumer_that_asks_where_the_log_begins_shows_what_was_deleted(
    beginning: int, later: list[int], is_told: bool
) -> None:
    """sarama and kafka-go ask, and then never fetch from an offset that is no more."""
    asked = listed((5, 6), -2, beginning)
    events = [asked_offsets((1, 2), 10), asked, *(commit((7, 8), offset) for offset in later)]
    row = only(fold("lag", events).result())
    told = 10, beginning, asked.client_id, asked.ended_ns, asked.number
    assert tuple(row[name] for name in DELETED) == (told if is_told else (None,) * 5)


def test_what_another_client_asks_about_the_log_does_not_count() -> None:
    asked = listed((5, 6), -2, 50, "exporter")
    row = only(fold("lag", [asked_offsets((1, 2), 10), asked, commit((7, 8), 60)]).result())
    assert row["deleted_to"] is None


def test_a_client_that_does_not_start_from_the_committed_offset_may_have_read_what_was_deleted() -> None:
    later = [listed((5, 6), -2, 50), commit((7, 8), 60)]
    for before in ([commit((1, 2), 10)], [asked_offsets((1, 2), 5), commit((3, 4), 10)]):
        assert only(fold("lag", [*before, *later]).result())["deleted_to"] is None


def test_a_beginning_of_the_log_that_several_parts_tell_counts_once() -> None:
    asked = asked_offsets((1, 2), 10)
    events = [asked, listed((3, 4), -2, 50), listed((5, 6), -2, 50), commit((7, 8), 60)]
    whole = fold("lag", events)
    first, second = fold("lag", events[:2]), fold("lag", events[2:])
    first.merge(second)
    assert first.result() == whole.result()
    assert only(whole.result())["deleted_ns"] == events[1].ended_ns


def test_a_refused_commit_is_none() -> None:
    assert fold("lag", [commit((1, 2), 10, error=25)]).result() == []
    row = only(fold("lag", [commit((1, 2), 10), commit((3, 4), 20, error=25)]).result())
    assert (row["committed"], row["commits"]) == (10, 1)


@pytest.mark.parametrize(("committed", "offset"), [(True, 20), (False, 10)])
def test_a_commit_in_a_transaction_counts_from_its_end_on(committed: bool, offset: int) -> None:
    events = [commit((1, 2), 10), transaction_commit((3, 4), 20)]
    assert only(fold("lag", events).result())["committed"] == 10
    events.append(end_transaction((5, 6), committed))
    assert only(fold("lag", events).result())["committed"] == offset


def test_a_transaction_goes_back_behind_a_commit_that_came_before_its_end() -> None:
    events = [transaction_commit((1, 2), 5), commit((3, 4), 10), end_transaction((5, 6), True)]
    row = only(fold("lag", events).result())
    assert (row["rewinds"], row["rewound_from"], row["rewound_to"]) == (1, 10, 5)
    assert row["rewind_exchange"] == MILLISECOND, "the one that names the offset"
    assert row["rewound_ns"] == 6 * MILLISECOND, "when it counted"


def test_the_answer_to_a_group_that_asks_tells_what_is_committed() -> None:
    for offset, committed in ((7, 7), (-1, None)):
        assert only(fold("lag", [asked_offsets((1, 2), offset)]).result())["committed"] == committed


def test_an_answer_that_there_is_none_after_a_commit_is_a_loss() -> None:
    row = only(
        fold("lag", [asked_offsets((1, 2), -1), commit((3, 4), 10), asked_offsets((7, 9), -1)]).result()
    )
    assert (row["lost_from"], row["lost_after_ns"]) == (10, 5 * MILLISECOND)
    assert (row["lost_ns"], row["lost_exchange"]) == (9 * MILLISECOND, 7 * MILLISECOND)
    for events in (
        [asked_offsets((1, 2), -1), commit((3, 4), 10), asked_offsets((7, 9), 10)],
        [asked_offsets((1, 2), 10), asked_offsets((7, 9), -1)],  # it was told only
        [commit((3, 4), 10, error=25), asked_offsets((7, 9), -1)],
    ):
        assert only(fold("lag", events).result())["lost_ns"] is None


def test_a_commit_after_a_loss_does_not_go_back() -> None:
    for events, rewinds in (
        ([commit((1, 2), 10), asked_offsets((3, 4), -1), commit((5, 6), 3)], 0),
        ([commit((1, 2), 10), asked_offsets((3, 4), 10), commit((5, 6), 3)], 1),
        ([commit((1, 2), 10), asked_offsets((3, 4), -1), commit((5, 6), 8), commit((7, 8), 3)], 1),
    ):
        assert only(fold("lag", events).result())["rewinds"] == rewinds


def test_growing_lag_has_a_trend_and_its_largest_is_between_commits() -> None:
    events = []
    for second in range(20):
        events.append(produce((second * 1_000, second * 1_000 + 5), second * 100, [1] * 100))
        events.append(commit((second * 1_000 + 10, second * 1_000 + 15), second * 40))
    row = only(fold("lag", events).result())
    assert row["lag"] == 2_000 - 19 * 40
    assert row["lag_max"] == 2_000 - 18 * 40, "just before the last commit"
    assert row["lag_per_s"] == pytest.approx(60)
    assert row["points"] == 20
    series = fold("lag,1s", events).result()
    assert [row["ns"] for row in series] == [(second + 1) * SECOND for second in range(20)]
    assert series[0]["lag"] == 100
    assert series[-1]["lag"] == row["lag"]


def named(at: int, topic_id: str, name: str = TOPIC) -> Exchange:
    """A Metadata that tells a topic with its id."""
    partition: Row = {"errorCode": 0, "partitionIndex": 0, "leaderId": 1, "leaderEpoch": 0}
    partition |= {"replicaNodes": [1], "isrNodes": [1], "offlineReplicas": []}
    topic = {"errorCode": 0, "name": name, "topicId": topic_id, "isInternal": False}
    topic |= {"partitions": [partition], "topicAuthorizedOperations": -1}
    told: Row = {"throttleTimeMs": 0, "brokers": [], "clusterId": "c", "controllerId": 1, "topics": [topic]}
    asked = {"topics": None, "allowAutoTopicCreation": False, "includeTopicAuthorizedOperations": False}
    return made("Metadata", 12, asked, told, (at * MILLISECOND, at * MILLISECOND))


def deleted(at: int, error: int = 0) -> Exchange:
    """A DeleteTopics to a broker that knows no ids."""
    told = {"throttleTimeMs": 0, "responses": [{"name": TOPIC, "errorCode": error}]}
    asked = {"topicNames": [TOPIC], "timeoutMs": 1}
    return made("DeleteTopics", 3, asked, told, (at * MILLISECOND, at * MILLISECOND))


ONE, OTHER = "AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAw"


@pytest.mark.parametrize(
    ("before", "anew"), [([named(0, ONE)], named(1_000, OTHER)), ([], deleted(1_000))], ids=["ids", "none"]
)
def test_a_topic_that_was_made_again_begins_anew(before: list[Exchange], anew: Exchange) -> None:
    first = [*before, produce((10, 11), 400, [1] * 100), commit((20, 21), 490), commit((22, 23), 480), anew]
    row = only(fold("lag", first).result())
    assert (row["committed"], row["log_end"], row["lag"]) == (480, 500, 20), "nobody reads the new one yet"
    second = [*first, commit((1_020, 1_021), 1), produce((1_022, 1_023), 0, [1] * 3)]
    row = only(fold("lag", second).result())
    assert (row["committed"], row["log_end"], row["lag"], row["lag_max"]) == (1, 3, 2, 2)
    assert (row["commits"], row["rewinds"], row["rewound_from"]) == (3, 1, 490), "the one of the first topic"
    third = [*second, commit((1_030, 1_031), 0)]
    row = only(fold("lag", third).result())
    assert (row["rewinds"], row["rewound_from"], row["rewound_to"]) == (2, 1, 0), "and one of the second"
    assert [(row["ns"] // SECOND, row["lag"]) for row in fold("lag,1s", third).result()] == [(1, 20), (2, 3)]
    for at in range(len(third)):
        early, late = fold("lag", third[:at]), fold("lag", third[at:])
        early.merge(late)
        assert early.result() == [row]


def test_a_new_topic_takes_the_room_of_the_former_one() -> None:
    lag = Lag(Limits(rows=1))
    open_all([lag.room])
    for base in (400, 0, 0):
        lag.feed(produce((10, 11), base, [1]))
        lag.feed(deleted(20))
    assert not lag.room.exceeded


def test_a_position_in_the_former_topic_is_not_committed_in_the_new_one() -> None:
    events = [named(0, ONE), produce((10, 11), 400, [1] * 100), commit((20, 21), 490), named(1_000, OTHER)]
    events += [commit((1_010, 1_011), 500)]
    assert only(fold("lag", events).result())["committed"] == 500, "nothing else is known of the new one"
    events += [produce((1_020, 1_021), 0, [1] * 3), commit((1_030, 1_031), 2)]
    row = only(fold("lag", events).result())
    assert (row["committed"], row["log_end"], row["lag"], row["rewinds"]) == (2, 3, 1, 0)
    later = [*events, produce((1_040, 1_041), 3, [1] * 700), commit((1_050, 1_051), 600)]
    row = only(fold("lag", later).result())
    assert (row["committed"], row["log_end"], row["lag"]) == (600, 703, 103)


@pytest.mark.parametrize(
    "event",
    [named(1_000, ONE), named(1_000, OTHER, "other"), deleted(1_000, error=3)],
    ids=["same", "other name", "refused"],
)
def test_a_topic_that_stays_does_not_begin_anew(event: Exchange) -> None:
    events = [named(0, ONE), produce((10, 11), 400, [1] * 100), commit((20, 21), 490), event]
    row = only(fold("lag", [*events, commit((1_020, 1_021), 1)]).result())
    assert (row["committed"], row["log_end"], row["lag"], row["rewinds"]) == (1, 500, 499, 1)


def test_topics_of_two_clusters_are_not_taken_for_one_made_again() -> None:
    told = [named(second * 1_000, (ONE, OTHER)[second % 2]) for second in range(20)]
    row = only(fold("lag", [*told, commit((2_500, 2_501), 490), commit((2_600, 2_601), 10)]).result())
    assert (row["commits"], row["rewinds"]) == (2, 1)


def test_a_commit_that_goes_back_is_a_rewind() -> None:
    row = only(fold("lag", [commit((1, 2), 10), commit((3, 4), 4), commit((5, 6), 6)]).result())
    assert (row["rewinds"], row["rewound_from"], row["rewound_to"], row["rewound_by"]) == (1, 10, 4, "test")
    assert row["rewind_exchange"] == 3 * MILLISECOND


def test_a_commit_that_came_before_is_no_step_back_though_the_clock_was_set_back() -> None:
    later, earlier = commit((1, 2), 10), commit((3, 4), 4)
    later.number, earlier.number = 8, 7
    assert only(fold("lag", [earlier, later]).result())["rewinds"] == 0


@pytest.mark.parametrize(("client_id", "rewinds"), [("test", 0), ("other", 1)])
def test_numbers_tell_the_order_of_one_client_only(client_id: str, rewinds: int) -> None:
    """Exchanges of a connection whose beginning is missing get their numbers late."""
    first = CommittedOffset(1, 20, COMMIT, "test", 500, 500, counts=True)
    course = LagCourse([first, CommittedOffset(2, 10, COMMIT, client_id, 400, 400, counts=True)])
    assert whole_row(LagKey(NameAt("readers", ""), TOPIC, 0), course, [course])["rewinds"] == rewinds
