"""Rules on quotas."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis.fold import Row
from kdissect.analysis.pace import Pace
from kdissect.insight.catalogue import RULES
from kdissect.insight.finding import WARNING
from tests.insight.judged import CAPTURES, judged_file
from tests.insight.made import MS, T0, S, check_pages, said_by, zeros
from tests.shared import requires_shared, shared

IDS = ("throttled", "throttle-ignored")


def pace(**values: Any) -> tuple[type[Pace], Row]:
    made = {"broker": "b:1", "client": "c", "client_id": "app", "api": "Produce", "throttled_max_ns": 9 * MS}
    made |= {"throttled_first_ns": T0, "throttled_last_ns": T0 + S, "quota_bytes_per_s": None}
    return Pace, zeros(Pace, **{**made, **values})


def test_each_has_its_page() -> None:
    check_pages("quotas")
    assert {each.id for each in RULES.values() if each.category == "quotas"} == set(IDS)


@pytest.mark.parametrize("name", ["basic-kafka43.pcapng", "consumer-group-kip848.pcapng"])
def test_healthy_captures_have_none(name: str) -> None:
    assert not [each for each in judged_file(CAPTURES / name).findings if each.id in IDS]


def test_who_is_told_to_wait_often_or_long_is_throttled() -> None:
    ((found,),) = said_by(IDS, pace(throttled_count=5, throttled_sum_ns=5 * MS)).values()
    assert (found.severity, found.subject.client_id, found.count) == (WARNING, "app", 5)
    assert not said_by(IDS, pace(throttled_count=4, throttled_sum_ns=S - 1))
    assert said_by(IDS, pace(throttled_count=1, throttled_sum_ns=S))


def test_what_is_asked_tells_which_quota_it_is() -> None:
    names = {"producer_byte_rate", "consumer_byte_rate", "controller_mutation_rate", "request_percentage"}

    def which(*apis: str, most_ns: int = 2 * S) -> set[str]:
        made = {"throttled_count": 9, "throttled_sum_ns": 2 * S, "throttled_max_ns": most_ns}
        ((found,),) = said_by(IDS, *(pace(api=api, **made) for api in apis)).values()
        return {name for name in names if name in found.message}

    assert which("Produce") == {"producer_byte_rate"}
    assert which("Fetch") == {"consumer_byte_rate"}
    assert which("Fetch", "Produce") == {"consumer_byte_rate", "producer_byte_rate"}
    assert which("CreateTopics", "DeleteTopics") == {"controller_mutation_rate"}
    assert which("CreateTopics", "Fetch") == {"controller_mutation_rate", "consumer_byte_rate"}
    assert which("Heartbeat", "Fetch") == {"request_percentage"}
    assert which("Produce", most_ns=S) == {"request_percentage"}  # the longest that it tells
    assert which("Produce", most_ns=S - 1) == {"request_percentage", "producer_byte_rate"}


def test_only_writes_and_reads_can_be_over_a_quota_of_bytes() -> None:
    def message(*apis: str) -> str:
        made = {"throttled_count": 9, "throttled_sum_ns": S, "throttled_max_ns": S // 2}
        ((found,),) = said_by(IDS, *(pace(api=api, **made) for api in apis)).values()
        return found.message

    assert message("ListOffsets", "Heartbeat").endswith("the brokers' time (request_percentage).")
    assert message("ListOffsets", "Fetch").endswith("(request_percentage), and perhaps for bytes.")


def test_the_filter_shows_all_answers_that_tell_the_client_to_wait() -> None:
    def filter_of(**waits: int) -> str:
        rows = (pace(api=api, throttled_count=9, throttled_sum_ns=s * S) for api, s in waits.items())
        ((found,),) = said_by(IDS, *rows).values()
        return found.filter

    fetch, commit = (f"{api}.response.throttleTimeMs > 0" for api in ("Fetch", "OffsetCommit"))
    assert filter_of(Fetch=2) == f'client_id == "app" and {fetch}'
    assert filter_of(OffsetCommit=2, Fetch=3) == f'client_id == "app" and ({fetch} or {commit})'


def test_a_quota_that_does_not_show_is_not_told() -> None:
    made = {"throttled_count": 9, "throttled_sum_ns": 9 * S, "throttled_max_ns": 2 * S, "api": "Fetch"}

    def message(quota: float | None) -> str:
        row = pace(**made, throttled_bytes_per_s=8.0, quota_bytes_per_s=quota)
        ((found,),) = said_by(IDS, row).values()
        return found.message

    assert message(20_000.0).endswith("it moves 8 bytes/s, and its quota is probably about 20,000 bytes/s.")
    assert message(None).endswith("(consumer_byte_rate); it moves 8 bytes/s.")


def test_who_asks_too_early_five_times_does_not_heed_it() -> None:
    ((found,),) = said_by(IDS, pace(broken_count=5, broken_exchanges=[1, 2])).values()
    assert (found.id, found.count, found.exchanges) == ("throttle-ignored", 5, (1, 2))
    assert not said_by(IDS, pace(broken_count=4))


@requires_shared
def test_the_client_over_its_quota_is_told_and_the_other_is_not() -> None:
    findings = judged_file(shared("testdata/incidents/producer-quota/capture.pcapng.gz")).findings
    found = {each.id: each for each in findings if each.category in ("quotas", "latency", "network")}
    assert found.keys() == {"throttled", "head-of-line"}
    assert found["throttled"].subject.client_id == "log-shipper"
    assert found["throttled"].measure == pytest.approx(57.5, abs=0.5)
    assert "15,0" in found["throttled"].message or "14,9" in found["throttled"].message
    assert found["head-of-line"].because == found["throttled"].key
