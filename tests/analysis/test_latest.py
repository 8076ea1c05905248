"""What the latest exchange tells is known to all folds that are fed together."""

from __future__ import annotations

import pickle

from kdissect.analysis.labels import Labels
from kdissect.analysis.latest import Latest, share
from kdissect.exchange import Exchange
from kdissect.names import TopicNames
from tests.analysis.folds import made

TOPIC_ID, OTHER_ID = "ewUjRWHKRpegPyS-F2cjZA", "1cBZW0BvQAKdqDj1yV6z5A"


def exchange(at: int, **names: str) -> Exchange:
    """One that is over at a time, and knows these names of topic ids by then."""
    asked = {"groupId": "g", "generationId": 1, "memberId": "m"}
    found = made("Heartbeat", 0, asked, {"errorCode": 0}, (at, at + 1))
    known = TopicNames()
    for name, topic_id in names.items():
        known.learn(topic_id, name, 0)
    found.topic_names = known.up_to(0)
    return found


def named(labels: Labels, topic_id: str) -> str | None:
    labels.resolve_names()
    return labels.name(labels.topic(None, topic_id))


def test_those_that_share_it_know_what_one_of_them_saw() -> None:
    one, other = Latest(), Latest()
    labels = Labels(other)
    share([one, other])
    labels.topic(None, TOPIC_ID)
    one.see(exchange(5, orders=TOPIC_ID))
    assert other.ns == one.ns is not None
    assert named(labels, TOPIC_ID) == "orders"


def test_the_latest_time_stays_where_an_earlier_exchange_comes_later() -> None:
    latest = Latest()
    latest.see(exchange(5))
    before = latest.ns
    latest.see(exchange(3))
    assert latest.ns == before


def test_a_part_names_its_ids_before_the_names_of_a_later_part_count() -> None:
    """Each part may have been read elsewhere, and know other names."""
    mine, theirs = Latest(), Latest()
    first, second, later = Labels(mine), Labels(mine), Labels(theirs)
    for labels in (first, second):
        labels.topic(None, TOPIC_ID)
        labels.topic(None, OTHER_ID)
    mine.see(exchange(1, orders=TOPIC_ID))
    theirs.see(exchange(2, clicks=OTHER_ID))
    first.merge(later)
    second.merge(later)
    for labels in (first, second):
        assert (named(labels, TOPIC_ID), named(labels, OTHER_ID)) == ("orders", "clicks")


def test_it_is_still_shared_after_it_was_sent_elsewhere() -> None:
    one, other = Latest(), Latest()
    share([one, other])
    one, other = pickle.loads(pickle.dumps((one, other)))
    one.see(exchange(5))
    assert other.ns is not None
