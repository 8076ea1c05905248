"""``finding`` and ``finding.severity`` in a filter."""

from __future__ import annotations

import pickle

import pytest

from kdissect.filter.compiled import Filter, compile_filter
from kdissect.filter.errors import FilterError
from kdissect.insight.evidence import EvidenceIndex, Sign
from kdissect.insight.finding import Finding, FindingSubject
from kdissect.present.options import PLAIN
from tests.filter.exchanges import known

FIRST, SECOND, THIRD = sorted(known(), key=lambda each: each.number)[:3]


def finding(id: str, severity: str, exchanges: tuple[int, ...], connections: tuple[int, ...] = ()) -> Finding:
    return Finding(
        id,
        severity,
        "certain",
        "capture",
        FindingSubject(),
        "…",
        exchanges=exchanges,
        connections=connections,
    )


def chosen(text: str, *findings: Finding) -> Filter:
    evidence = EvidenceIndex()
    evidence.learn(findings)
    return compile_filter(text, PLAIN, evidence=evidence)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("finding", [True, True, False]),
        ("not finding", [False, False, True]),
        ("finding == mid-stream", [True, False, False]),
        ('finding == "*-gaps"', [False, True, False]),
        ('finding in {"mid-*", capture-gaps}', [True, True, False]),
        ("finding != mid-stream", [False, True, False]),
        ("finding.severity >= warning", [False, True, False]),
        ("finding.severity == notice", [True, False, False]),
        ("finding.severity < warning", [True, False, False]),
        ("finding contains gap", [False, True, False]),
    ],
)
def test_exchanges_that_show_a_finding(text: str, shown: list[bool]) -> None:
    filter = chosen(
        text,
        finding("mid-stream", "notice", (FIRST.number,)),
        finding("capture-gaps", "critical", (SECOND.number,)),
    )
    for each in (filter, pickle.loads(pickle.dumps(filter))):
        assert [each.matches(exchange) for exchange in (FIRST, SECOND, THIRD)] == shown


def test_a_finding_that_names_connections_only_is_shown_by_their_exchanges() -> None:
    filter = chosen("finding", finding("mid-stream", "notice", (), (FIRST.connection,)))
    assert filter.matches(FIRST)
    assert filter.matches(SECOND) == (SECOND.connection == FIRST.connection)


def test_a_misspelt_finding_is_told_with_the_nearest() -> None:
    with pytest.raises(FilterError, match="there is no finding capture-gap; did you mean capture-gaps"):
        chosen("finding == capture-gap")


def test_a_filter_of_findings_alone_can_be_asked_of_a_finding() -> None:
    filter = chosen("finding.severity >= warning or finding == mid-stream")
    assert filter.matches_finding(Sign("x", 2))
    assert filter.matches_finding(Sign("mid-stream", 1))
    assert not filter.matches_finding(Sign("x", 1))


def test_a_severity_that_there_is_not_names_those_that_there_are() -> None:
    with pytest.raises(FilterError, match="is one of info, notice, warning, critical, and 'wrning' is not"):
        chosen("finding.severity >= wrning")
