"""What explains what: links between findings."""

from __future__ import annotations

import pytest

from kdissect.analysis.fold import SECOND
from kdissect.insight.catalogue import RULES
from kdissect.insight.causes import Cause, linked
from kdissect.insight.finding import CERTAIN, NOTICE, Finding, FindingSubject, key_of

KNOWN = (Cause("broker-gone", "controller-moved", within_s=60),)


def found(id: str, node: int, at_s: int, because: str | None = None) -> Finding:
    subject = FindingSubject(broker=str(node))
    ns = at_s * SECOND
    words = "Something happened."
    return Finding(id, NOTICE, CERTAIN, "brokers", subject, words, because=because, first_ns=ns, last_ns=ns)


@pytest.mark.parametrize(
    ("gone_s", "is_cause"), [(10, True), (70, True), (130, True), (9, False), (131, False)]
)
def test_a_cause_that_a_rule_names_must_have_been_there_in_time(gone_s: int, is_cause: bool) -> None:
    gone = found("broker-gone", 1, gone_s)
    moved = found("controller-moved", 2, 70, key_of("broker-gone", FindingSubject(broker="1")))
    _, told = linked([gone, moved], KNOWN)
    assert told.because == (gone.key if is_cause else None)


@pytest.mark.parametrize(("at_s", "is_cause"), [(340, True), (341, False)])
def test_what_only_a_rule_can_tell_counts_where_it_tells_it(at_s: int, is_cause: bool) -> None:
    known = (*KNOWN, Cause("broker-gone", "controller-moved", within_s=330, is_named=True))
    gone = found("broker-gone", 1, 10)
    for because in (gone.key, None):
        _, told = linked([gone, found("controller-moved", 2, at_s, because)], known)
        assert bool(told.because) == (is_cause and because is not None)


@pytest.mark.parametrize(
    ("cause", "effect"),
    [
        ("broker-gone", "heartbeat-late"),  # the last heartbeat came before it was gone
        ("broker-stalled", "too-many-in-flight"),
        ("streams-status", "rebalance-storm"),
        ("stuck-offset", "member-id-churn"),
        ("under-min-isr", "lso-lag"),
    ],
)
def test_these_go_together_where_both_are_there_at_one_time(cause: str, effect: str) -> None:
    def because(from_s: int, to_s: int) -> str | None:
        one = found(cause, 1, 70)
        other = found(effect, 1, from_s).changed(last_ns=to_s * SECOND)
        _, told = linked([one, other])
        return told.because

    assert {cause, effect} <= RULES.keys()  # whose modules say what explains what
    assert because(60, 80) == found(cause, 1, 70).key
    assert because(60, 69) is None


def test_of_several_causes_the_one_of_the_same_time_counts() -> None:
    known = (Cause("broker-gone", "metadata-storm"),)
    first, second = found("broker-gone", 1, 10), found("broker-gone", 2, 70)
    storm = found("metadata-storm", 9, 70)
    for causes in ([first, second], [second, first]):
        assert linked([*causes, storm], known)[-1].because == second.key
    long = storm.changed(first_ns=5 * SECOND)
    assert linked([first, second, long], known)[-1].because == first.key
    assert linked([first, storm], known)[-1].because == first.key, "there is no other"


@pytest.mark.parametrize(("at_s", "is_cause"), [(9, False), (10, True), (11, False)])
def test_some_causes_and_effects_are_of_one_time(at_s: int, is_cause: bool) -> None:
    known = (Cause("broker-gone", "heartbeat-gap", at_once=True),)
    gone = found("broker-gone", 1, 10)
    assert bool(linked([gone, found("heartbeat-gap", 2, at_s)], known)[-1].because) == is_cause


def test_a_broker_that_is_gone_explains_no_heartbeats_long_before_it_went() -> None:
    gap, gone = found("heartbeat-gap", 2, 10), found("broker-gone", 1, 70)
    assert [each.because for each in linked([gap, gone])] == [None, None]
    assert linked([gap.changed(last_ns=70 * SECOND), gone])[0].because == gone.key


@pytest.mark.parametrize(
    ("one", "other", "is_cause"),
    [("a", "a", True), ("a", "b", False), (None, "a", False), (None, None, False)],
)
def test_some_must_both_name_the_same(one: str | None, other: str | None, is_cause: bool) -> None:
    known = (Cause("member-id-churn", "connection-churn", at_once=True, same=("client_id",)),)
    churn, effect = (
        found(id, 1, 70).changed(subject=FindingSubject(client_id=client_id))
        for id, client_id in (("member-id-churn", one), ("connection-churn", other))
    )
    _, told = linked([churn, effect], known)
    assert (told.because is not None) == is_cause


def test_what_only_one_of_them_names_does_not_part_them() -> None:
    known = (Cause("streams-status", "rebalance-storm", shares=("group", "client_id"), at_once=True),)
    status, storm = (
        found(id, 1, 70).changed(subject=subject)
        for id, subject in (
            ("streams-status", FindingSubject(group="orders", client_id="app")),
            ("rebalance-storm", FindingSubject(group="orders")),
        )
    )
    _, told = linked([status, storm], known)
    assert told.because == status.key
    _, told = linked([status, storm.changed(subject=FindingSubject(group="other"))], known)
    assert told.because is None


@pytest.mark.parametrize(("cluster", "is_cause"), [("a", True), ("b", False), (None, True)])
def test_no_finding_explains_one_of_another_cluster(cluster: str | None, is_cause: bool) -> None:
    relation = Cause("partition-lags", "consumer-falling-behind", shares=("group",))
    named = FindingSubject(group="g", cluster_id="a"), FindingSubject(group="g", cluster_id=cluster)
    cause, effect = (
        found(id, 1, 1).changed(subject=subject)
        for id, subject in zip((relation.cause, relation.effect), named, strict=True)
    )
    (_, told) = linked([cause, effect], [relation])
    assert told.because == (cause.key if is_cause else None)


def test_a_cause_that_a_rule_names_is_one_of_its_own_cluster() -> None:
    subject = FindingSubject(group="g", cluster_id="a")
    cause = found("partition-lags", 1, 1).changed(subject=subject)
    because = key_of("partition-lags", FindingSubject(group="g"))
    effect = found("consumer-falling-behind", 1, 1).changed(subject=subject, because=because)
    assert linked([cause, effect], [])[1].because == cause.key
    other = effect.changed(subject=subject._replace(cluster_id="b"))
    assert linked([cause, other], [])[1].because is None
