"""When a name became another topic's: what is noted of it, how much, and that parts merge."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kdissect.analysis.fold import MILLISECOND, SECOND
from kdissect.analysis.labels import Labels
from kdissect.analysis.latest import Latest
from kdissect.analysis.room import Room
from kdissect.analysis.topic_lives import SPAN_BYTES, TopicLives
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS
from tests.analysis.folds import fold, made
from tests.analysis.test_lag import ONE, OTHER, deleted, named
from tests.analysis.traffic import TOPIC, commit, produce


def lives(events: list[Exchange], **limits: int) -> TopicLives:
    found = TopicLives(Room(DEFAULTS._replace(**limits)))
    for event in events:
        found.take(event, Labels(Latest()))
    return found


def topic_id(number: int) -> str:
    return f"{number:021d}A"


def created(at: int) -> Exchange:
    """A CreateTopics to a broker that knows no ids."""
    told = {"throttleTimeMs": 0, "topics": [{"name": TOPIC, "errorCode": 0, "errorMessage": None}]}
    topic = {"name": TOPIC, "numPartitions": 1, "replicationFactor": 1, "assignments": [], "configs": []}
    asked = {"topics": [topic], "timeoutMs": 1, "validateOnly": False}
    return made("CreateTopics", 3, asked, told, (at * MILLISECOND, at * MILLISECOND))


MANY_IDS = [named(at, topic_id(at), f"topic{at % 4}") for at in range(1, 17)]
MANY_TIMES = [deleted(at * 10_000) for at in range(16)]


@pytest.mark.parametrize("events", [MANY_IDS, MANY_TIMES], ids=["ids", "times"])
@pytest.mark.parametrize("limits", [{"rows": 5}, {"fact_bytes": 5 * SPAN_BYTES}], ids=["rows", "room"])
def test_ids_and_times_of_all_names_have_one_limit(events: list[Exchange], limits: dict[str, int]) -> None:
    few = lives(events, **limits)
    assert few.left_out == 11
    merged = lives(events[:4], **limits)
    merged.merge(lives(events[4:], **limits))
    assert merged.left_out == 11
    for name in (TOPIC, *(f"topic{number}" for number in range(4))):
        assert merged.begun(name) == few.begun(name)


def test_what_is_told_often_is_one_beginning() -> None:
    times = [1_000, 1_000, 1_001, 2_000, 63_000, 66_000, 80_000]
    events = [(created if at == 2_000 else deleted)(at) for at in times]
    begun = [at * MILLISECOND for at in (2_000, 66_000, 80_000)]
    assert lives(events).begun(TOPIC) == begun
    for at in range(len(events)):
        merged = lives(events[:at])
        merged.merge(lives(events[at:]))
        assert merged.begun(TOPIC) == begun
    assert lives(events, rows=5).left_out == 0


def test_the_first_id_of_a_name_does_not_begin_it_anew() -> None:
    whole = lives([])
    assert whole.merge(lives([named(1, ONE)])) == []
    assert whole.merge(lives([named(2, ONE)])) == []
    assert whole.merge(lives([named(3, OTHER)])) == [TOPIC]
    assert whole.merge(lives([named(4, ONE)])) == []
    assert lives([]).merge(lives([named(1, ONE), named(2, OTHER)])) == [TOPIC]
    assert lives([]).merge(lives([deleted(1)])) == [TOPIC]


def test_an_id_that_is_told_again_is_of_another_cluster() -> None:
    told = [named(0, ONE), named(100_000, OTHER), named(200_000, ONE)]
    assert lives(told[:2]).begun(TOPIC) == [100 * SECOND]
    assert lives(told).begun(TOPIC) == []
    for at in range(3):
        merged = lives(told[:at])
        merged.merge(lives(told[at:]))
        assert merged.begun(TOPIC) == []


def test_lag_is_the_same_from_parts_where_a_topic_is_made_again_several_times() -> None:
    events: list[Exchange] = []
    for at in range(0, 40_000, 10_000):
        events += [produce((at + 10, at + 11), 400, [1] * 100), commit((at + 20, at + 21), 490)]
        events += [deleted(at + 1_000), deleted(at + 1_001), fetched_end(at + 1_002), created(at + 2_000)]
        events += [produce((at + 2_010, at + 2_011), 0, [1] * 3), commit((at + 2_020, at + 2_021), 1)]
    (row,) = fold("lag", events).result()
    assert (row["committed"], row["log_end"], row["lag"]) == (1, 3, 2)
    for one, two in pairwise(range(0, len(events), 3)):
        first, second, third = (fold("lag", part) for part in (events[:one], events[one:two], events[two:]))
        first.merge(second)
        first.merge(third)
        assert first.result() == [row]


def fetched_end(at: int) -> Exchange:
    """What was produced last to the topic that is being deleted."""
    return produce((at, at), 500, [1])
