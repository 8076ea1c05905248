"""What counts as a difference between two captures."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.profile import Profile, stem
from kdissect.insight.context import JudgingContext
from kdissect.insight.diff import are_events_different, differences
from kdissect.insight.difference import BETTER, Difference
from kdissect.insight.finding import Finding, FindingSubject
from kdissect.insight.judge import CaptureReport, NotJudged
from kdissect.present.diffs import summary
from tests.insight.made import row


def report(rows: tuple[Row, ...] = (), findings: tuple[Finding, ...] = (), **more: Any) -> CaptureReport:
    context = JudgingContext(0, 100 * SECOND, exchanges=1_000)
    tables = {"profile": list(rows), **more.pop("tables", {})}
    return CaptureReport(list(findings), more.pop("not_judged", []), context, tables)


def measured(value: float | None, low: float | None = None, high: float | None = None, **more: Any) -> Row:
    """A broker time of 200 exchanges."""
    given = {
        "subject": "Produce",
        "kind": "percentile",
        "unit": "ns",
        "what": "broker time p50",
        "count": 200,
        **more,
    }
    return row(Profile, area="api", value=value, low=low, high=high, **given)


def told(before: CaptureReport, after: CaptureReport) -> list[Difference]:
    return [each for each in differences(before, after) if each.significant]


MS = 1_000_000.0


@pytest.mark.parametrize(
    ("before", "after", "verdicts"),
    [
        ((5 * MS, 4 * MS, 6 * MS), (9 * MS, 8 * MS, 10 * MS), ["worse"]),
        ((9 * MS, 8 * MS, 10 * MS), (5 * MS, 4 * MS, 6 * MS), ["better"]),
        ((5 * MS, 4 * MS, 7 * MS), (9 * MS, 6 * MS, 10 * MS), []),  # the margins meet
        ((9 * MS, 8.9 * MS, 9.1 * MS), (10.5 * MS, 10.4 * MS, 10.6 * MS), []),  # less than a fifth
        ((0.2 * MS, 0.1 * MS, 0.3 * MS), (0.9 * MS, 0.8 * MS, 1 * MS), []),  # less than a millisecond
        ((5 * MS, None, None), (50 * MS, None, None), []),  # nobody knows how far chance goes
    ],
)
def test_a_time_changed_where_chance_cannot_explain_it(
    before: tuple[float, ...], after: tuple[float, ...], verdicts: list[str]
) -> None:
    found = told(report((measured(*before),)), report((measured(*after),)))
    assert [each.verdict for each in found] == verdicts


def test_few_exchanges_say_nothing() -> None:
    few = measured(9 * MS, 8 * MS, 10 * MS, count=49)
    assert not told(report((measured(5 * MS, 4 * MS, 6 * MS),)), report((few,)))


def test_a_rate_must_differ_over_the_whole_capture_too() -> None:
    """The same requests in a shorter time are no change if the capture had as many."""
    quick = {"kind": "rate", "unit": "requests/s", "what": "requests", "total": 1_000, "count": 1_000}
    before, after = measured(20, 19, 21, **quick), measured(40, 39, 41, **quick)
    assert not told(report((before,)), report((after,)))
    twice = {**quick, "total": 2_000, "count": 2_000}
    (found,) = told(report((before,)), report((measured(40, 39, 41, **twice),)))
    assert (found.verdict, found.ratio, found.delta_text) == ("changed", 2.0, "2.0 times")


def error(total: int, count: int, what: str, area: str = "api") -> Row:
    value = total / count
    bounds = {"low": max(0.0, value - 0.05), "high": value + 0.05}
    return row(
        Profile,
        area=area,
        subject="x",
        what=what,
        kind="share",
        count=count,
        total=total,
        value=value,
        **bounds,
    )


def test_an_error_that_was_not_there() -> None:
    before = report((error(0, 100, "errors"),))
    after = report((error(20, 100, "errors"), error(20, 100, "error NOT_LEADER_OR_FOLLOWER")))
    (found,) = told(before, after)  # once, by its name
    assert (found.what, found.before, found.after) == ("error NOT_LEADER_OR_FOLLOWER", 0.0, 0.2)
    assert (found.verdict, found.delta_text) == ("worse", "new: 20 times in 100")
    (gone,) = told(after, before)
    assert gone.verdict == "better"


def test_a_fatal_error_need_not_come_often() -> None:
    before = report((error(0, 3, "errors", "client"),))
    fatal = error(1, 3, "fatal error TOPIC_AUTHORIZATION_FAILED", "client")
    (found,) = told(before, report((error(1, 3, "errors", "client"), fatal)))
    assert found.verdict == "worse"


def test_versions_and_codecs_that_changed() -> None:
    def used(what: str, area: str) -> Row:
        return error(50, 50, what, area)

    before = report((used("Produce v9", "client"), used("Fetch v12", "client"), used("codec none", "topic")))
    after = report((used("Produce v13", "client"), used("Fetch v12", "client"), used("codec zstd", "topic")))
    found = {each.what: each.delta_text for each in told(before, after)}
    assert found == {"versions": "Produce v9 → v13", "codecs": "codec none → zstd"}


def test_who_came_and_who_went() -> None:
    before, after = report((measured(5, subject="Produce"),)), report((measured(5, subject="Fetch"),))
    found = {each.subject: each.verdict for each in told(before, after)}
    assert found == {"Produce": "only-before", "Fetch": "only-after"}


def test_who_is_on_one_side_only_is_told_whole_and_counts_once() -> None:
    """What there is nothing to compare with is told, but neither counts as a change nor as compared."""
    rows = (
        measured(5 * MS),
        measured(20, what="requests", kind="rate", unit="requests/s", total=1_000),
        measured(None, what="too short for a rate", kind="rate", unit="requests/s"),
        {**error(3, 200, "errors"), "subject": "Produce"},
    )
    both = (measured(7 * MS, subject="Fetch"),)
    found = differences(report((*rows, *both)), report(both))
    known = {each.what: each for each in found if each.subject == "Produce"}
    assert {what: each.before for what, each in known.items()} == {
        "seen": 200.0,
        "broker time p50": 5 * MS,
        "requests": 20,
        "errors": 0.015,
    }
    assert {(each.after, each.verdict) for each in known.values()} == {(None, "only-before")}
    assert [each.what for each in known.values() if each.significant] == ["seen"]
    assert summary(found).startswith("compared 2 values: 1 only in BEFORE")


def test_versions_codecs_and_software_of_one_side() -> None:
    def used(what: str, area: str) -> Row:
        return error(50, 50, what, area)

    rows = used("Produce v9", "client"), used("Fetch v12", "client"), used("codec lz4", "topic")
    clients = [{"client_id": "x", "software": "librdkafka", "software_version": "2.6.1"}]
    found = differences(report(), report(rows, tables={"clients": clients}))
    told = {each.what: (each.delta_text, each.members) for each in found if each.members[1]}
    assert told == {
        "versions": ("Fetch v12, Produce v9", ("", "Fetch v12, Produce v9")),
        "software": ("librdkafka 2.6.1", ("", "librdkafka 2.6.1")),
        "codecs": ("lz4", ("", "lz4")),
    }


def finding(severity: str = "warning", measure: float = 4.0, **subject: Any) -> Finding:
    return Finding(
        "rebalance-long",
        severity,
        "certain",
        "groups",
        FindingSubject(**subject),
        "It took long.",
        measure=measure,
        unit="s",
    )


def test_findings_new_gone_grown_and_shrunk() -> None:
    one, long, grave = (
        report(findings=(each,)) for each in (finding(), finding(measure=8.0), finding("critical"))
    )
    texts = [
        told(*pair)[0].delta_text for pair in ((report(), one), (one, report()), (one, long), (long, one))
    ]
    assert [text.partition(":")[0] for text in texts] == [
        "new warning",
        "gone (was warning)",
        "grown",
        "shrunk",
    ]
    verdicts = [
        told(*pair)[0].verdict for pair in ((report(), one), (one, report()), (one, grave), (grave, one))
    ]
    assert verdicts == ["worse", "better", "worse", "better"]
    assert not told(one, report(findings=(finding(measure=5.0),)))


def test_a_finding_about_the_same_service_is_the_same_finding() -> None:
    """Its address, its member id and the number of its pod change from run to run."""
    before = finding(client_id="billing-7d9f8b6c5d-x2k4j", client="10.0.0.1", member_id="a-1")
    after = finding(client_id="billing-55c7bd9f4b-q9z8w", client="10.0.0.9", member_id="a-2")
    assert not told(report(findings=(before,)), report(findings=(after,)))


def test_a_finding_that_could_not_be_judged_before_is_not_called_new() -> None:
    before = report(not_judged=[NotJudged("rebalance-long", "needs 60 s")])
    (found,) = told(before, report(findings=(finding(),)))
    assert (found.verdict, found.delta_text) == ("changed", "not judged before (needs 60 s): It took long.")


def test_a_finding_about_what_does_not_occur_after_is_not_called_better() -> None:
    """Nobody knows whether the group does well."""
    before = report(findings=(finding(group="orders"),))
    (found,) = told(before, report())
    assert (found.verdict, found.delta_text) == (
        "changed",
        "group orders does not occur after (was warning): It took long.",
    )
    seen = row(Profile, area="group", subject="orders", what="requests", kind="rate", count=3, total=3)
    (found,) = told(before, report((seen,)))[:1]
    assert (found.verdict, found.delta_text) == ("better", "gone (was warning): It took long.")


def test_notes_on_the_capture_are_never_worse() -> None:
    (found,) = told(report(), report(findings=(finding().changed(category="capture"),)))
    assert found.verdict == "changed"


@pytest.mark.parametrize(
    ("counts", "different"), [((0, 2), False), ((0, 9), True), ((10, 14), False), ((100, 200), True)]
)
def test_rare_events(counts: tuple[int, int], different: bool) -> None:
    assert are_events_different(counts, (60.0, 60.0)) is different
    assert are_events_different(counts, (60.0, 0.0)) is False


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("orders-StreamThread-1-consumer", "orders-StreamThread-1-consumer"),
        ("orders-0b6f9d4c-4c1e-4a55-9f0a-3c5d2b1a0f9e-StreamThread-1", "orders-*-StreamThread-1"),
        ("console-consumer-41523", "console-consumer-*"),
        ("billing-7d9f8b6c5d-x2k4j", "billing-*"),
        ("producer-1", "producer-1"),
        ("deadbeef", "deadbeef"),
    ],
)
def test_what_of_a_name_was_drawn_by_lot(name: str, same: str) -> None:
    assert stem(name) == same


def test_findings_of_several_clusters_are_compared_by_cluster() -> None:
    a, b, alone = finding(cluster_id="a"), finding(cluster_id="b"), finding()
    assert [each.verdict for each in told(report(findings=(a, b)), report(findings=(a,)))] == [BETTER]
    assert not told(report(findings=(a,)), report(findings=(alone,)))
