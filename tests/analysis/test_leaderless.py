"""How long a quorum had no leader, as the statistic ``quorum`` tells it."""

from __future__ import annotations

import pytest

from kdissect.analysis.fold import SECOND
from kdissect.analysis.quorum import Quorum
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS
from tests.analysis.folds import rows_of
from tests.analysis.quorums import NOT_LEADER, fetch, quorum_of, refused

LOST = (fetch(1), *refused(2, 7), fetch(9), fetch(10))


@pytest.mark.parametrize("cut", [None, *range(len(LOST) + 1)])
def test_without_a_leader_nobody_is_served(cut: int | None) -> None:
    row = quorum_of(*LOST, cut=cut)
    assert (row["leaderless_from_ns"], row["leaderless_ns"]) == (SECOND, 8 * SECOND)


def leaderless_s(*exchanges: Exchange) -> float:
    return float(quorum_of(*exchanges)["leaderless_ns"] / SECOND)


def test_a_silence_alone_does_not_show_that_there_is_no_leader() -> None:
    assert leaderless_s(fetch(1), fetch(9)) == 0
    assert leaderless_s(*refused(1, 7), fetch(9)) == 0
    assert leaderless_s(fetch(1), *refused(2, 8)) == 7


def test_a_node_that_restarts_and_asks_the_wrong_controller_first_lacked_no_leader() -> None:
    assert leaderless_s(fetch(1), *refused(61, 61), fetch(61.01)) < 1
    assert leaderless_s(fetch(1), *refused(61, 61, leader=1), fetch(61.01)) < 1
    restarts = [*refused(31, 31), *refused(61, 61), *refused(91, 91)]
    assert leaderless_s(fetch(1), *restarts, fetch(91.01)) < 1


def test_refusals_that_name_a_new_leader_show_that_there_is_one() -> None:
    assert leaderless_s(fetch(1), *refused(2, 9, leader=2, epoch=2)) == 0
    assert leaderless_s(fetch(1), *refused(2, 4), *refused(4.5, 9, leader=2, epoch=2)) == 3


def test_refusals_that_still_name_the_leader_that_is_gone_show_none() -> None:
    assert leaderless_s(fetch(1), fetch(1, node=2), *refused(2, 9, leader=1)) == 8


def test_one_node_that_cannot_reach_the_leader_does_not_show_that_there_is_none() -> None:
    alone = refused(2, 9, (3,), leader=1)
    assert leaderless_s(fetch(1), *alone) == 0
    assert leaderless_s(fetch(1), fetch(1, node=2), *alone) == 8, "others were served, and no longer are"
    assert leaderless_s(fetch(1, node=1), fetch(1, node=2), *alone) == 0, "it asked another leader before"
    assert leaderless_s(fetch(1), *alone[:4], *refused(4, 9, (3,))) == 5, "the controllers know of none"


@pytest.mark.parametrize("cut", [None, *range(15)])
def test_a_capture_may_begin_when_the_leader_is_gone_already(cut: int | None) -> None:
    row = quorum_of(*refused(2, 8, leader=1), fetch(9), cut=cut)
    assert (row["leaderless_from_ns"], row["leaderless_ns"]) == (2 * SECOND, 6 * SECOND)


def test_at_the_beginning_two_nodes_must_be_sent_to_a_leader_again_and_again() -> None:
    assert leaderless_s(*refused(2, 8)) == 0, "no leader is named: the quorum may just be starting"
    assert leaderless_s(*refused(2, 8, (3,), leader=1)) == 0, "it alone may be cut off"
    assert leaderless_s(*refused(2, 8, (3,), leader=1), *refused(4, 7, (2,), leader=1)) == 3
    restarts = [each for at_s in (2, 7, 12) for each in refused(at_s, at_s, leader=1)]
    assert leaderless_s(*restarts) == 0, "each asks once, and goes to the leader"


def test_while_one_node_is_served_there_is_a_leader() -> None:
    served = [fetch(each) for each in range(1, 10)]
    assert leaderless_s(*served, *refused(2, 9, (2, 4))) <= 1


def test_the_leader_of_another_cluster_is_none() -> None:
    served = [fetch(each, cluster="b") for each in range(1, 10)]
    assert leaderless_s(fetch(1), *refused(2, 9), *served) == 8
    asked = [fetch(each, cluster="b", error=NOT_LEADER, node=node) for each in range(2, 9) for node in (4, 5)]
    assert leaderless_s(*[fetch(each) for each in range(1, 10)], *asked) == 0


def test_a_quorum_of_which_too_much_is_told_is_not_judged() -> None:
    limits = DEFAULTS._replace(timeline_key_events=3)
    quorum = Quorum(limits)
    for each in (fetch(1), fetch(11), *refused(12, 12.5)):
        quorum.feed(each)
    assert quorum.result()[0]["leaderless_ns"] > 0
    for each in refused(13, 20):
        quorum.feed(each)
    assert quorum.result()[0]["leaderless_ns"] == 0


def test_a_real_quorum_whose_leader_dies_has_none_until_the_next() -> None:
    (length_ns,) = {row["leaderless_ns"] for row in rows_of("quorum", "cluster43-combined")}
    assert 1 < length_ns / SECOND < 4
