"""Folds that remember what a message told: the rows are those of a fold that reads every message."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis import cluster_model, errors, metadata_log
from kdissect.analysis.cluster_model import ClusterModel
from kdissect.analysis.errors import Errors
from kdissect.analysis.exposure import Exposure
from kdissect.analysis.fold import MILLISECOND, SECOND
from kdissect.analysis.metadata_asked import MetadataAsked
from kdissect.analysis.offers import Offers
from kdissect.analysis.racks import Racks
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from tests.analysis.folds import events_of, fold, made, rows_of
from tests.analysis.traffic import fetch

CASES = ("cluster43-combined", "java43-errors", "zk39-ibp28", "sweep-39-controller")


def nothing(*_: Any) -> None:
    """The key of a message that is not remembered."""


def model_of(*events: Event, limits: Limits = DEFAULTS) -> ClusterModel:
    """The model of the clusters, from these events."""
    model = ClusterModel(limits)
    for event in events:
        model.feed(event)
    return model


@pytest.mark.parametrize("case", CASES)
def test_errors_are_those_without_a_memory(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    got = rows_of("errors", case)
    monkeypatch.setattr(errors, "_words", nothing)
    assert got == rows_of("errors", case)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("module", [cluster_model, metadata_log])
def test_clusters_are_those_without_a_memory(module: Any, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    got = model_of(*events_of(case)).history()
    monkeypatch.setattr(module, "_words", nothing)
    assert got == model_of(*events_of(case)).history()


def test_a_repeated_record_without_room_is_left_out_each_time() -> None:
    answer = next(
        each
        for each in events_of("cluster43-combined")
        if isinstance(each, Exchange) and each.api == "Fetch" and len(model_of(each)._log._records) > 1
    )
    limits = DEFAULTS._replace(timeline_events=1)
    left_out = [model_of(*[answer] * times, limits=limits)._log.left_out for times in (1, 2, 3)]
    assert left_out[0] > 0
    assert left_out == [left_out[0] * times for times in (1, 2, 3)]


@pytest.mark.parametrize(
    ("told", "is_covered"),
    [((10, 5, True), True), ((11, 1, False), True), ((9, 7, True), False), ((10, 4, True), False)],
)
def test_an_answer_is_read_again_if_it_came_earlier(told: tuple[int, int, bool], is_covered: bool) -> None:
    known = metadata_log._ReadAnswer([])
    assert not known.covers(*told)
    known.note(10, 5, True)
    assert known.covers(*told) is is_covered


def test_an_answer_is_read_again_if_only_the_repetition_counts() -> None:
    known = metadata_log._ReadAnswer([])
    known.note(10, 5, False)
    assert known.covers(11, 6, False)
    assert not known.covers(11, 6, True)
    known.note(11, 6, True)
    assert known.covers(10, 5, True)


def beat(at: int, is_fenced: bool, offset: int) -> Exchange:
    """A heartbeat of broker 1, which knows the log up to an offset."""
    asked = {"brokerId": 1, "brokerEpoch": 7, "currentMetadataOffset": offset}
    asked |= {"wantFence": False, "wantShutDown": False}
    answered = {"throttleTimeMs": 0, "errorCode": 0, "isCaughtUp": True, "isFenced": is_fenced}
    return made("BrokerHeartbeat", 0, asked, answered | {"shouldShutDown": False}, (at * SECOND, at * SECOND))


def test_heartbeats_with_other_offsets_say_the_same_of_their_broker() -> None:
    model = model_of(*(beat(at, at not in (3, 4), at) for at in range(1, 6)))
    told = [(said.fields, said.ns, said.last_ns) for *_, said in model._statements.of_kind("node")]
    assert told == [
        ((("fenced", True), ("epoch", 7)), SECOND, 2 * SECOND),
        ((("fenced", False), ("epoch", 7)), 3 * SECOND, 4 * SECOND),
        ((("fenced", True), ("epoch", 7)), 5 * SECOND, 5 * SECOND),
    ]


def test_each_offer_of_a_broker_has_its_row() -> None:
    offers = Offers()
    for at, highest in enumerate((3, 4, 4, 3), 1):
        keys = [{"apiKey": 18, "minVersion": 0, "maxVersion": highest}]
        offers.feed(made("ApiVersions", 0, {}, {"errorCode": 0, "apiKeys": keys}, (at, at)))
    assert [(row["offered"], row["exchanges"]) for row in offers.result()] == [
        ({"ApiVersions": [0, 3]}, [1, 4]),
        ({"ApiVersions": [0, 4]}, [2, 3]),
    ]


@pytest.mark.parametrize(
    ("version", "topics", "is_all"), [(0, ["t"], 0), (0, [], 1), (1, [], 0), (1, None, 1)]
)
def test_a_request_for_all_topics_names_none(version: int, topics: list[str] | None, is_all: int) -> None:
    named = None if topics is None else [{"name": each} for each in topics]
    asked = MetadataAsked()
    asked.feed(made("Metadata", version, {"topics": named}, None))
    (row,) = asked.result()
    assert (row["requests"], row["all_topics"]) == (1, is_all)


def test_the_first_fetches_of_a_consumer_are_its_evidence() -> None:
    racks = Racks()
    for at in range(1, 11):
        racks.feed(fetch((at, at + 0.5), 0, [(0, [1_000])]))
    (row,) = racks.result()
    assert (row["fetches"], len(row["exchanges"])) == (10, 8)
    assert (row["first_ns"], row["last_ns"]) == (MILLISECOND, 10 * MILLISECOND)


def test_a_secret_is_found_each_time_and_not_remembered() -> None:
    password = {
        "name": "alice",
        "mechanism": 1,
        "iterations": 4096,
        "salt": "c2FsdA==",
        "saltedPassword": "c2VjcmV0",
    }
    asked = {"deletions": [], "upsertions": [password]}
    answered = {"throttleTimeMs": 0, "results": [{"user": "alice", "errorCode": 0, "errorMessage": None}]}
    events = [
        made("AlterUserScramCredentials", 0, asked, answered, connection=connection) for connection in (0, 1)
    ]
    found = fold("exposure", events)
    assert isinstance(found, Exposure)
    assert [row["secrets"] for row in found.result()] == [["AlterUserScramCredentials"]] * 2
    assert len(found._clean) == 1, "the answer, which has no secret"
    assert "alice" not in repr(found._clean)


def test_refusals_of_long_requests_are_not_remembered() -> None:
    asked = {"groupsNames": [f"group-{number}" for number in range(2_000)]}
    answered = {"throttleTimeMs": 0, "results": [{"groupId": "group-0", "errorCode": 69}]}
    found = fold("errors", [made("DeleteGroups", 1, asked, answered) for _ in range(2)])
    assert isinstance(found, Errors)
    assert [row["count"] for row in found.result()] == [2]
    assert not found._known


def test_what_limits_cut_off_is_looked_at_again_without_them() -> None:
    secret = {"name": "plugin.password", "value": "x", "isSensitive": False}
    harmless = {"name": "a", "value": "x", "isSensitive": False}
    configs = [each | {"readOnly": False, "configSource": 1, "synonyms": []} for each in (harmless, secret)]
    result = {"errorCode": 0, "errorMessage": None, "resourceType": 2, "resourceName": "t"}
    answered = {"throttleTimeMs": 0, "results": [result | {"configs": configs}]}
    resource = {"resourceType": 2, "resourceName": "t", "configurationKeys": None}
    asked = {"resources": [resource], "includeSynonyms": False}
    less = DEFAULTS._replace(elements=1)
    exposure = Exposure()
    for limits in (less, DEFAULTS):
        exposure.feed(made("DescribeConfigs", 1, asked, answered, limits=limits))
    (row,) = exposure.result()
    assert row["readable_exchanges"] == [1]


def test_settings_that_nobody_hid_are_readable_on_each_connection() -> None:
    config = {
        "name": "plugin.password",
        "value": "x",
        "readOnly": False,
        "configSource": 1,
        "isSensitive": False,
    }
    result = {"errorCode": 0, "errorMessage": None, "resourceType": 2, "resourceName": "t"}
    answered = {"throttleTimeMs": 0, "results": [result | {"configs": [config | {"synonyms": []}]}]}
    resource = {"resourceType": 2, "resourceName": "t", "configurationKeys": None}
    asked = {"resources": [resource], "includeSynonyms": False}
    events = [made("DescribeConfigs", 1, asked, answered, (at, at), at) for at in (1, 2)]
    rows = fold("exposure", events).result()
    assert [(row["readable"], row["readable_exchanges"]) for row in rows] == [
        (["plugin.password"], [1]),
        (["plugin.password"], [2]),
    ]
