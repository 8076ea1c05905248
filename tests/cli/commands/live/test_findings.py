"""Findings while a capture goes on: triggers and metrics."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.capture.files import read_packets
from kdissect.cli.commands.live.conditions import Conditions
from kdissect.cli.commands.live.findings import EVERY_SECONDS, LiveFindings
from kdissect.cli.errors import Wrong
from kdissect.dissect import Event
from kdissect.insight.finding import Finding, FindingSubject
from kdissect.insight.judge import Judge
from kdissect.limits import DEFAULTS
from kdissect.live.journal import Status
from kdissect.live.metrics import Metrics
from kdissect.present.options import PLAIN
from tests.cli.run import CAPTURES
from tests.dissecting import dissect


def finding(id: str, resolved_ns: int | None = None) -> Finding:
    return Finding(id, "critical", "certain", "made", FindingSubject(), "…", resolved_ns=resolved_ns)


@pytest.fixture(scope="module")
def events() -> list[Event]:
    return list(dissect(iter(read_packets([CAPTURES / "basic-kafka43.pcapng"]))))


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_it_judges_every_second_and_tells_what_is_new(events: list[Event]) -> None:
    clock, asked = Clock(), 0
    now = [finding("a")]

    def judged(_: Judge) -> list[Finding]:
        nonlocal asked
        asked += 1
        return now

    live = LiveFindings(DEFAULTS, judged, clock)
    assert list(live.feed(events[0])) == []
    clock.seconds = EVERY_SECONDS
    assert [each.id for each in live.feed(events[1])] == ["a"]
    assert live.is_new
    assert list(live.feed(events[2])) == []
    assert not live.is_new
    assert asked == 1
    clock.seconds = 2 * EVERY_SECONDS
    assert list(live.feed(events[3])) == []
    now = [finding("a", 5)]
    clock.seconds = 3 * EVERY_SECONDS
    assert list(live.feed(events[4])) == []
    now = [finding("a"), finding("b")]
    clock.seconds = 4 * EVERY_SECONDS
    assert [each.id for each in live.feed(events[5])] == ["a", "b"]


def test_judging_takes_a_small_share_of_the_time(events: list[Event]) -> None:
    clock = Clock()

    def judged(_: Judge) -> list[Finding]:
        clock.seconds += 1
        return []

    live = LiveFindings(DEFAULTS, judged, clock)
    clock.seconds = 1
    list(live.feed(events[0]))
    clock.seconds = 21
    list(live.feed(events[1]))
    assert not live.is_new
    clock.seconds = 22
    list(live.feed(events[2]))
    assert live.is_new


def conditions(trigger: str) -> Conditions:
    given: dict[str, Any] = {
        "start_on": None,
        "stop_on": None,
        "trigger": trigger,
        "before": "30s",
        "after": "10s",
        "packets_to": "x.pcapng",
        "prometheus": None,
    }
    return Conditions(given, PLAIN)


def test_a_trigger_takes_findings_alone() -> None:
    assert conditions('finding.severity == critical and not finding == "mid-*"').has_trigger
    with pytest.raises(Wrong, match=r"may use only finding and finding\.severity"):
        conditions("finding.severity == critical and api == Fetch")


def test_metrics_count_findings_that_are_not_over() -> None:
    pytest.importorskip("prometheus_client")
    metrics = Metrics(Status)

    def value(id: str) -> float | None:
        return metrics.registry.get_sample_value("kdissect_findings", {"id": id, "severity": "critical"})

    metrics.know([finding("a"), finding("b"), finding("b", 5)])
    assert (value("a"), value("b"), value("c")) == (1, 1, None)
    metrics.know([finding("b", 5)])
    assert (value("a"), value("b")) == (0, 0)
