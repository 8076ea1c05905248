"""Findings as text for people, in 80 columns.

    CRITICAL rebalance-long   group orders                                 9.54 s
      Generation 6 kept 2 members waiting and was not finished when the capture ended.
      17.410 coop1 asked for it                                            #409
      why   a static member that stopped is waited for until its session ends
      do    remove it, or shorten session.timeout.ms for it
      see   kdissect trouble.pcapng -Y 'group == "orders" and number >= 409'

``#409`` is the number of an exchange.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from kdissect.present.form import SECOND, duration, plural, size
from kdissect.present.paragraphs import LABEL, WIDTH, fold_text, paragraph
from kdissect.present.sanitise import pad, sanitise, width

if TYPE_CHECKING:  # code that shows findings needs no rules, which take a tenth of a second to import
    from kdissect.insight.context import JudgingContext
    from kdissect.insight.finding import EvidenceStep, Finding
    from kdissect.insight.judge import Judged, NotJudged
    from kdissect.insight.rule import Rule

_WORD = 8
"""The length of the longest severity."""


def finding_lines(
    findings: Sequence[Finding], first_ns: int | None, arguments: Iterable[str]
) -> Iterator[str]:
    """Findings, each effect below its cause.

    :param first_ns: the time from which times of steps count.
    :param arguments: the input and its options, for the command that shows a finding.
    """
    depths: dict[str, int] = {}
    command = shlex.join(("kdissect", *arguments))
    for each in findings:
        depth = depths[each.key] = 0 if each.because not in depths else depths[each.because] + 1
        if depth == 0 and len(depths) > 1:
            yield ""
        yield from _finding(each, "  " * depth, first_ns, command, depth > 0)


def _finding(
    finding: Finding, indent: str, first_ns: int | None, command: str, is_effect: bool
) -> Iterator[str]:
    yield from heading(finding, indent)
    inner = indent + "  "
    yield from paragraph(finding.message, inner)
    if is_effect:
        return  # the fix is with the cause
    yield from _steps(finding.steps, inner, first_ns)
    for label, text in (("why", finding.cause), ("do", finding.fix)):
        for at, part in enumerate(text.split("\n") if text else ()):
            yield from paragraph(part, inner, label if at == 0 else "")
    if finding.filter:
        see = f"{command} -Y {shlex.quote(finding.filter)}"
        yield f"{inner}{'see':<{LABEL}}{sanitise(see, None)}"


def heading(finding: Finding, indent: str = "") -> Iterator[str]:
    """The first line of a finding; several if its subject is long."""
    word = finding.severity.upper()
    before = f"{indent}{word:<{_WORD}} {finding.id}   "
    measure = measured(finding)
    where = _OF_ONE_PART.sub("\u00a0", sanitise(finding.where, None))
    parts = fold_text(where, WIDTH - width(before))
    if width(before + parts[-1]) + width(measure) >= WIDTH:
        parts = fold_text(where, WIDTH - width(before) - width(measure) - 1)
    for at, part in enumerate(parts):
        line = before + part if at == 0 else " " * (len(indent) + _WORD + 1) + part
        is_last = at == len(parts) - 1
        yield f"{pad(line, WIDTH - width(measure) - 1)} {measure}" if measure and is_last else line


_OF_ONE_PART = re.compile(r"(?<!,) ")
"""A space inside one part of a subject."""


def measured(finding: Finding) -> str:
    """The measure, short."""
    value, unit = finding.measure, finding.unit
    if value is None or not unit or (not value and unit in _SECONDS):  # a single event took no time
        return ""
    if unit in _SECONDS:
        return duration(round(value * _SECONDS[unit]))
    if unit in ("bytes", "B"):
        return size(round(value))
    number = f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:,.3g}"
    return f"{number} {_ONE.sub(_one_of, unit) if number == '1' else unit}".rstrip()


_ONE = re.compile(r"^[a-z-]{3,}s\b")
"""A unit that begins with a plural."""


def _one_of(found: re.Match[str]) -> str:
    several = found[0]
    if several.endswith("ies"):
        return several[:-3] + "y"
    return several[:-2] if several.endswith(("ches", "shes")) else several[:-1]


_SECONDS = {"s": SECOND, "ms": 1_000_000, "ns": 1, "us": 1_000, "µs": 1_000}


def _steps(steps: Sequence[EvidenceStep], indent: str, first_ns: int | None) -> Iterator[str]:
    if not steps:
        return
    start = steps[0].ns if first_ns is None else first_ns
    times = [f"{(step.ns - start) / SECOND:.3f}" for step in steps]
    room = max(map(len, times))
    for time, step in zip(times, steps, strict=True):
        number = "" if step.exchange is None else f"#{step.exchange}"
        before = indent + time.rjust(room) + " "
        lines = fold_text(sanitise(step.text, None), WIDTH - len(before) - len(number) - 1)
        for at, line in enumerate(lines):
            text = (before if at == 0 else " " * len(before)) + line
            yield f"{pad(text, WIDTH - len(number) - 1)} {number}" if number and at == 0 else text


# -- the last lines ---------------------------------------------------------------------------------


def closing_lines(judged: Judged, shown: Sequence[Finding], left_out: int) -> Iterator[str]:
    """How to see the rest, what was captured, and what was judged.

    :param shown: the findings that were printed.
    :param left_out: how many further findings there are.
    """
    keys = {each.key for each in shown}
    if any(each.because in keys for each in shown):
        yield "an indented finding follows from the one above it: --id ID prints it in full"
    if left_out:
        yield f"{plural(left_out, 'more finding')}: --all shows {'it' if left_out == 1 else 'them'}"
    if judged.context.is_unread and not shown:
        yield "nothing was judged: nothing of the capture could be read"
        return
    if not shown and 0 < judged.context.exchanges == judged.context.not_selected:
        yield f"nothing was judged: none of {plural(judged.context.exchanges, 'exchange')} is selected"
        return
    if not shown and judged.findings:
        yield f"none of the {plural(len(judged.findings), 'finding')} matches what you asked for"
        yield f"captured: {captured_text(judged.context)}"
    elif not shown:
        yield f"nothing found: {plural(judged.rules, 'rule')} looked at {captured_text(judged.context)}"
    else:
        yield f"captured: {captured_text(judged.context)}"
    yield from fold_text(judged_text(judged), WIDTH)


def captured_text(context: JudgingContext) -> str:
    """What was captured, in one line."""
    parts = [duration(context.span_ns) + _paused(context), _selected(context)]
    if context.kafka or not context.exchanges:  # connections are counted when they have ended
        parts.append(plural(context.kafka, "connection with Kafka", "connections with Kafka"))
    if context.gap_bytes:
        parts.append(f"{size(context.gap_bytes)} missing")
    if context.one_sided:
        parts.append(f"{plural(context.one_sided, 'exchange')} without one side")
    return ", ".join(parts)


def _paused(context: JudgingContext) -> str:
    """How much of the time was between captures, or asleep, so that nothing was captured."""
    pauses = context.pauses
    if not pauses:
        return ""
    length = duration(sum(end - begin for begin, end in pauses))
    return (
        f" with a pause of {length}"
        if len(pauses) == 1
        else f" with {len(pauses):,} pauses of {length} in all"
    )


def _selected(context: JudgingContext) -> str:
    """How many exchanges were judged, and how many there are."""
    whole = plural(context.exchanges, "exchange")
    return f"{context.exchanges - context.not_selected:,} of {whole}" if context.not_selected else whole


def judged_text(judged: Judged) -> str:
    """What was judged, and what was not and why, in one line."""
    text = f"judged {plural(judged.rules, 'rule')}"
    if judged.context.not_selected:
        text += f" for {_selected(judged.context)}"
    if judged.not_judged:
        text += f"; {len(judged.not_judged):,} not: {_reasons(judged.not_judged)}"
    if judged.incomplete:
        text += f"; a limit cut {', '.join(judged.incomplete)}, so findings may be missing"
    return text


_MOST_NAMED = 3
"""The most rules that are named for one reason. If there are more, their number is given."""


def _reasons(silent: Sequence[NotJudged]) -> str:
    counts = Counter(each.why for each in silent)
    told = []
    for why, count in sorted(counts.items(), key=lambda each: (-each[1], each[0])):
        names = [each.rule for each in silent if each.why == why]
        who = ", ".join(names) if count <= _MOST_NAMED else f"{count:,} rules"
        told.append(f"{who} ({sanitise(why)})")
    return ", ".join(told)


def not_judged_lines(silent: Sequence[NotJudged]) -> Iterator[str]:
    """A line for each rule that could not judge."""
    room = max((len(each.rule) for each in silent), default=0)
    for each in silent:
        yield f"{each.rule:<{room}}  {sanitise(each.why, None)}"


# -- a rule's page ----------------------------------------------------------------------------------


def page_lines(rule: Rule) -> Iterator[str]:
    """The text of a rule's page."""
    page = rule.page
    yield f"{rule.id}   {rule.severity}, {rule.confidence}, category {rule.category}"
    yield ""
    for part in page.what.split("\n"):
        yield from paragraph(part, "  ")
    yield from _part("why", page.why)
    yield from _part("do", page.do)
    yield from _part("configurations", ", ".join(page.configs))
    if rule.thresholds:
        yield ""
        yield f"thresholds, [findings.{rule.id}] of the configuration"
        limits = {name: f"  {name} = {value}" for name, value in rule.thresholds.items()}
        room = max(map(len, limits.values()))
        for name, limit in limits.items():
            for at, line in enumerate(paragraph(page.thresholds[name], " " * (room + 3))):
                yield f"{limit:<{room}}{line[room:]}" if at == 0 else line
    yield from _part("sources", ", ".join(page.sources))


def _part(label: str, text: str) -> Iterator[str]:
    if text:
        yield ""
        yield label
        for part in text.split("\n"):
            yield from paragraph(part, "  ")
