"""Findings as text for people."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from kdissect.insight.context import JudgingContext
from kdissect.insight.finding import EvidenceStep, Finding, FindingSubject
from kdissect.insight.judge import Judged, NotJudged
from kdissect.present.findings import FINDINGS, plain_number
from kdissect.present.findings_text import captured_text, closing_lines, finding_lines, judged_text
from kdissect.present.options import PLAIN

WAITED = "answered: the coordinator had waited 9.42 s for inst-0 (coop0) "
START = 1_700_000_000_000_000_000


def finding(id: str, **more: object) -> Finding:
    made = Finding(id, "critical", "certain", "groups", FindingSubject(group="orders"), "It stood still.")
    return made.changed(**{"cause": "Because.", "fix": "Do this.", "filter": "group == orders", **more})


def test_the_form_of_a_finding() -> None:
    each = finding(
        "rebalance-long",
        measure=9.54,
        unit="s",
        steps=(
            EvidenceStep(START + 17_410_000_000, "coop1 asked for it", 409),
            EvidenceStep(
                START + 126_947_000_000, "answered: the coordinator had waited 9.42 s for inst-0 (coop0) " * 2
            ),
        ),
    )
    assert list(finding_lines([each], START, ["trouble.pcapng"])) == [
        "CRITICAL rebalance-long   group orders                                    9.54 s",
        "  It stood still.",
        "   17.410 coop1 asked for it                                                #409",
        "  126.947 answered: the coordinator had waited 9.42 s for inst-0 (coop0)",
        "          answered: the coordinator had waited 9.42 s for inst-0 (coop0)",
        "  why   Because.",
        "  do    Do this.",
        "  see   kdissect trouble.pcapng -Y 'group == orders'",
    ]


def test_an_effect_stands_indented_below_its_cause() -> None:
    cause, effect = finding("a"), finding("b", because=finding("a").key)
    lines = list(finding_lines([cause, effect, finding("c")], START, ["x y.pcap", "-d", "tcp.port==1,kafka"]))
    assert lines == [
        "CRITICAL a   group orders",
        "  It stood still.",
        "  why   Because.",
        "  do    Do this.",
        "  see   kdissect 'x y.pcap' -d tcp.port==1,kafka -Y 'group == orders'",
        "  CRITICAL b   group orders",
        "    It stood still.",
        "",
        "CRITICAL c   group orders",
        "  It stood still.",
        "  why   Because.",
        "  do    Do this.",
        "  see   kdissect 'x y.pcap' -d tcp.port==1,kafka -Y 'group == orders'",
    ]


@pytest.mark.parametrize(
    ("measure", "unit", "text"),
    [
        (9.54, "s", "9.54 s"),
        (120, "ms", "120 ms"),
        (3050, "bytes", "3.0 KiB"),
        (1234567, "records", "1,234,567 records"),
        (0.25, "%", "0.25 %"),
        (1, "records", "1 record"),
        (1, "batches", "1 batch"),
        (1, "directories", "1 directory"),
        (1, "% of the values", "1 % of the values"),
        (None, "", ""),
        (0.0, "s", ""),
        (0.0, "records", "0 records"),
    ],
)
def test_measures(measure: float | None, unit: str, text: str) -> None:
    (heading, *_) = finding_lines([finding("a", measure=measure, unit=unit)], START, ["x"])
    assert heading == f"{'CRITICAL a   group orders':<{79 - len(text)}} {text}".rstrip()


@pytest.mark.parametrize(("measure", "printed"), [(18, "18"), (18.0, "18"), (0.25, "0.25"), (None, "null")])
def test_a_whole_number_has_no_point_whoever_computed_it(measure: float | None, printed: str) -> None:
    row = FINDINGS.row(finding("a", measure=measure, threshold=measure), PLAIN)
    columns = [each.name for each in FINDINGS.columns]
    assert [json.dumps(row[columns.index(name)]) for name in ("measure", "threshold")] == [printed] * 2


@pytest.mark.parametrize("value", [2.0**53, -(2.0**53), 9.2e15 + 2])
def test_a_column_of_floats_takes_numbers_that_are_too_large_to_be_whole(value: float) -> None:
    printed = plain_number(value)
    assert isinstance(printed, float)
    assert pa.array([printed], pa.float64()).to_pylist() == [value]


def test_a_long_subject_goes_on_in_the_next_line() -> None:
    subject = FindingSubject(
        transactional_id="java39-transactions-hang", client_id="hang", client="127.0.0.1"
    )
    each = finding("transaction-timed-out", measure=5.85, unit="s").changed(subject=subject)
    lines = list(finding_lines([each], START, ["x"]))
    assert lines[0] == "CRITICAL transaction-timed-out   transactional id java39-transactions-hang,"
    assert lines[1] == "         client hang@127.0.0.1" + " " * 44 + "5.85 s"


def test_text_of_the_wire_is_made_safe() -> None:
    each = finding("a", message="na\x1b[31mme", steps=(EvidenceStep(START, "evil\u202e", 1),))
    each = each.changed(subject=FindingSubject(group="g\n\x1b]0;x"))
    text = "\n".join(finding_lines([each], START, ["f\x1b.pcap"]))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\\x1b" in text


def test_the_last_lines_say_what_was_judged() -> None:
    context = JudgingContext(0, 3_370_000_000, exchanges=71, kafka=15, gap_bytes=3050, one_sided=1)
    silent = [*(NotJudged(f"r{at}", "needs 60 s") for at in range(4)), NotJudged("far", "one side only")]
    judged = Judged([], silent, 118, context)
    assert list(closing_lines(judged, [finding("a")], 2)) == [
        "2 more findings: --all shows them",
        "captured: 3.37 s, 71 exchanges, 15 connections with Kafka, 3.0 KiB missing, 1 exchange without one "
        "side",
        "judged 118 rules; 5 not: 4 rules (needs 60 s), far (one side only)",
    ]
    assert next(iter(closing_lines(judged, [], 0))).startswith("nothing found: 118 rules looked at 3.37 s")
    assert judged_text(Judged([], [], 1, context)) == "judged 1 rule"


def test_a_finding_that_is_short_says_how_to_see_it_whole() -> None:
    judged = Judged([], [], 118, JudgingContext(0, 3_370_000_000, exchanges=71))
    cause, effect = finding("a"), finding("b")
    effect = effect.changed(because=cause.key)
    hint = "an indented finding follows from the one above it: --id ID prints it in full"
    assert next(iter(closing_lines(judged, [cause, effect], 0))) == hint
    assert hint not in closing_lines(judged, [effect], 0)


def test_pauses_were_not_captured() -> None:
    minute = 60_000_000_000
    context = JudgingContext(0, 12 * minute, exchanges=71, kafka=15, silences=((minute, 4 * minute),))
    assert captured_text(context) == "720 s with a pause of 180 s, 71 exchanges, 15 connections with Kafka"
    short = (8 * minute, 9 * minute)
    context = context._replace(silences=(*context.silences, (5 * minute, 7 * minute), short))
    assert captured_text(context).startswith("720 s with 2 pauses of 300 s in all, 71 exchanges")
    assert captured_text(context._replace(silences=(short,))).startswith("720 s, 71 exchanges")


def test_no_connection_is_told_of_exchanges_while_all_are_open() -> None:
    assert captured_text(JudgingContext(0, 1_000_000_000, exchanges=4)) == "1.00 s, 4 exchanges"
    assert captured_text(JudgingContext(0, 1_000_000_000)).endswith("0 exchanges, 0 connections with Kafka")


def test_what_is_not_asked_for_was_found_all_the_same() -> None:
    judged = Judged(
        [finding("a"), finding("b")], [], 118, JudgingContext(0, 3_370_000_000, exchanges=71, kafka=15)
    )
    assert list(closing_lines(judged, [], 0))[:2] == [
        "none of the 2 findings matches what you asked for",
        "captured: 3.37 s, 71 exchanges, 15 connections with Kafka",
    ]


def test_a_filter_that_selects_nothing_is_no_healthy_capture() -> None:
    context = JudgingContext(0, 3_370_000_000, exchanges=71, kafka=15)
    (line,) = closing_lines(Judged([], [], 118, context._replace(not_selected=71)), [], 0)
    assert line == "nothing was judged: none of 71 exchanges is selected"
    some = Judged([], [], 118, context._replace(not_selected=70))
    assert "looked at 3.37 s, 1 of 71 exchanges, 15 connections" in next(iter(closing_lines(some, [], 0)))
    assert judged_text(some) == "judged 118 rules for 1 of 71 exchanges"
