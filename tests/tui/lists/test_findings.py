"""Findings as rows, and the whole text of one."""

from __future__ import annotations

import pytest

from kdissect.analysis.fold import SECOND
from kdissect.insight.finding import EvidenceStep, Finding, FindingSubject
from kdissect.present.form import Clock
from kdissect.present.sanitise import width
from kdissect.tui.lists import findings

HOSTILE = "a\x1b[2J\u202eb[red]\r\n"


def finding(id: str = "rebalance-long", **more: object) -> Finding:
    values = {
        "severity": "critical",
        "confidence": "certain",
        "category": "groups",
        "subject": FindingSubject(group="orders"),
        "message": "Nobody read partitions for 9.54 s.",
        **more,
    }
    return Finding(id, **values)  # type: ignore[arg-type]


def text(of: Finding, because: Finding | None = None, room: int = 80) -> str:
    return "\n".join(line.text for line in findings.text_of(of, because, 0, room))


def test_all_of_it_is_said() -> None:
    steps = (EvidenceStep(17 * SECOND, "coop1 asked for it", 409), EvidenceStep(26 * SECOND, "answered"))
    whole = finding(
        steps=steps,
        cause="a member stopped",
        fix="remove it\nor shorten its session",
        configs=("session.timeout.ms",),
        sources=("KIP-62",),
        filter='group == "orders"',
    )
    said = text(whole, finding("session-timeout"))
    for part in (
        "CRITICAL rebalance-long: group orders",
        "Nobody read partitions for 9.54 s",
        "explained by session-timeout, group orders",
        "17.000 coop1 asked for it",
        "#409",
        "why   a member stopped",
        "do    remove it\n      or shorten its session",
        'see   group == "orders"',
        "certain · groups · session.timeout.ms · KIP-62",
    ):
        assert part in said


@pytest.mark.parametrize("room", [20, 40, 78, 198])
def test_lines_are_no_wider_than_the_pane(room: int) -> None:
    words = "some words that go on for a while " * 9
    whole = finding(message=words, cause=words, fix=words, steps=(EvidenceStep(SECOND, words, 1),))
    assert max(width(line.text) for line in findings.text_of(whole, whole, 0, room)) <= max(room, 30)


def test_nothing_of_the_wire_reaches_the_terminal_as_it_is() -> None:
    whole = finding(
        subject=FindingSubject(group=HOSTILE),
        message=HOSTILE,
        steps=(EvidenceStep(1, HOSTILE, 2),),
        cause=HOSTILE,
        filter=f'group == "{HOSTILE}"',
    )
    lines = [line.text for line in findings.text_of(whole, whole, 0, 80)]
    assert all(line.isprintable() for line in lines)
    figures = findings.figures(Clock())
    figures.show([{"finding": whole, "measure": HOSTILE, "deep": 0}])
    assert all(cell.isprintable() for cell in figures.cells(0, 400))


def test_the_exchanges_of_a_finding_without_a_filter_are_those_it_names() -> None:
    assert finding(filter="api == Fetch", exchanges=(1,)).shown_by == "api == Fetch"
    assert finding(exchanges=(3, 7)).shown_by == "number in {3, 7}"
    assert finding(connections=(2,)).shown_by == "connection in {2}"
    assert finding().shown_by is None


def test_sorted_by_severity_the_worst_are_first() -> None:
    figures = findings.figures(Clock())
    rows = [
        {"finding": finding("low", severity="info"), "measure": "", "deep": 0},
        {"finding": finding("high"), "measure": "", "deep": 1},
    ]
    figures.show(rows)
    assert [cell for at in range(2) for cell in figures.cells(at, 120)[:2]] == [
        *("info", "low"),
        *("critical", f"{findings.EFFECT}high"),
    ]
    figures.sort_by("Severity")
    assert figures.row(0)["finding"].id == "high"
    assert [figures.tone(at) for at in range(2)] == ["table--error", "table--dim"]
