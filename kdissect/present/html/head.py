"""The head of a report, its verdict in a sentence, and its findings."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator

from kdissect.analysis.fold import SECOND
from kdissect.insight.finding import CRITICAL, INFO, NOTICE, SEVERITIES, WARNING, Finding
from kdissect.insight.rule import CAPTURE
from kdissect.present.findings_text import captured_text, measured
from kdissect.present.form import Clock, plural
from kdissect.present.html.page import section, switch, text
from kdissect.present.html.sheet import Sheet

MOST_CARDS = 60
"""The most findings with a card. Further ones are in the tables inside the page."""


def head(sheet: Sheet, links: list[tuple[str, str]]) -> str:
    """Title, verdict, what was captured, and links to the parts.

    :param links: ids and titles of the parts.
    """
    report, context = sheet.report, sheet.report.context
    troubles = [each for each in report.findings if each.category != CAPTURE]
    counts = Counter(each.severity for each in troubles)
    shown = "".join(
        f'<li class="{severity}"><b>{counts[severity]:,}</b>{severity}</li>' for severity in SEVERITIES
    )
    clock = Clock("u")
    facts = [("files", ", ".join(sheet.made.files))]
    if context.first_ns is not None and context.last_ns is not None:
        facts.append(("from", clock.text(context.first_ns)))
        facts.append(("to", clock.text(context.last_ns)))
    facts.append(("captured", captured_text(context)))
    facts.append(("judged", f"{plural(report.rules, 'rule')}, {len(report.not_judged):,} not"))
    listed = "".join(f"<dt>{name}</dt><dd>{text(value, None)}</dd>" for name, value in facts)
    way = "".join(f'<li><a href="#{name}">{text(title)}</a></li>' for name, title in links)
    return (
        f'<header>{switch()}<p class="brand">kdissect report</p><h1>{text(_title(sheet))}</h1>'
        f'<p class="verdict">{text(verdict(sheet), None)}</p>'
        f'<ul class="counts" aria-label="Findings by severity">{shown}</ul>'
        f'<dl class="facts">{listed}</dl>{_notes(sheet)}</header>'
        f'<nav aria-label="Parts of the report"><ul>{way}</ul></nav>'
    )


_WORDS = {CRITICAL: "critical finding", WARNING: "warning"}


def _notes(sheet: Sheet) -> str:
    """Notes on the capture itself."""
    found = [each for each in sheet.report.findings if each.category == CAPTURE]
    told = "".join(
        f"<li><b>{text(each.id)}</b> {text(each.message, None)}"
        f"<details><summary>What to do</summary>{_paragraphs(each.fix)}{_command(sheet, each)}</details></li>"
        for each in found
    )
    return f'<ul class="notes" aria-label="Notes on the capture">{told}</ul>' if told else ""


def _command(sheet: Sheet, each: Finding) -> str:
    """The command that shows a finding."""
    if not each.filter:
        return ""
    command = shlex.join(("kdissect", *sheet.made.arguments, "-Y", each.filter))
    return f'<code class="command">{text(command, None)}</code>'


def _title(sheet: Sheet) -> str:
    files = sheet.made.files
    return files[0] + (f" and {len(files) - 1} more" if len(files) > 1 else "") if files else "Report"


def verdict(sheet: Sheet) -> str:
    """The result in one sentence."""
    report = sheet.report
    causes = [each for each in report.findings if each.category != CAPTURE and each.because is None]
    grave = [each for each in causes if each.severity in (CRITICAL, WARNING)]
    counts = Counter(each.severity for each in report.findings if each.category != CAPTURE)
    if grave:
        worst = grave[0]
        told = " and ".join(
            plural(counts[severity], _WORDS[severity]) for severity in (CRITICAL, WARNING) if counts[severity]
        )
        return f"{told[:1].upper()}{told[1:]}. The worst: {worst.message}"
    if not report.context.exchanges:
        return "No Kafka was found in what was captured."
    minor = sum(each.severity == NOTICE for each in causes)
    if minor:
        does = "costs" if minor == 1 else "cost"
        return f"Nothing is wrong. {plural(minor, 'notice')} {does} time or money, or may matter later."
    return "Nothing is wrong in what was captured."


def findings(sheet: Sheet) -> str:
    """Cards, worst first, with effects below their cause."""
    every = [each for each in sheet.report.findings if each.category != CAPTURE]
    found = every[:MOST_CARDS]
    if not found:
        looked = f"{plural(sheet.report.rules, 'rule')} looked at {captured_text(sheet.report.context)}"
        return section("findings", "Findings", [f"<p>No finding: {text(looked)}.</p>"])
    keys: set[str] = set()
    cards = []
    for each in found:
        cards.append(_card(sheet, each, each.because in keys))
        keys.add(each.key)
    left = len(every) - len(found)
    if left:
        cards.append(
            f'<p class="more">{plural(left, "more finding")}: kdissect explain --all prints them.</p>'
        )
    return section("findings", "Findings", [_filters(found), *cards])


def _filters(found: list[Finding]) -> str:
    there = [severity for severity in SEVERITIES if any(each.severity == severity for each in found)]
    if len(there) < 2:
        return ""
    boxes = "".join(f'<label><input type="checkbox" value="{each}" checked> {each}</label>' for each in there)
    return f'<fieldset id="severities" hidden><legend>Show</legend>{boxes}</fieldset>'


def _card(sheet: Sheet, each: Finding, is_effect: bool) -> str:
    rows = []
    if not is_effect:  # the fix is with the cause
        rows += [("why", _paragraphs(each.cause)), ("do", _paragraphs(each.fix))]
        if each.configs:
            rows.append(("set", "<code>" + "</code>, <code>".join(map(text, each.configs)) + "</code>"))
    rows.append(("see", _command(sheet, each)))
    listed = "".join(f"<dt>{name}</dt><dd>{content}</dd>" for name, content in rows if content)
    when = _when(sheet, each)
    return (
        f'<article class="card {text(each.severity)}{" effect" if is_effect else ""}" '
        f'data-severity="{text(each.severity)}">'
        f'<h3><span class="word">{text(each.severity)}</span><span>{text(each.id)}</span>'
        f'<span class="measure">{text(measured(each))}</span></h3>'
        f'<p class="where">{text(each.where, None)}{when}{_confidence(each)}</p>'
        f"<p>{text(each.message, None)}</p>{_steps(sheet, each)}"
        f"{f'<dl>{listed}</dl>' if listed else ''}</article>"
    )


def _confidence(each: Finding) -> str:
    return f" · {text(each.confidence)}" if each.severity != INFO else ""


def _when(sheet: Sheet, each: Finding) -> str:
    if each.first_ns is None or each.last_ns is None:
        return ""
    first, last = sheet.s(each.first_ns), sheet.s(each.last_ns)
    return f" · at {first:,.3f} s" if last - first < 0.001 else f" · from {first:,.3f} s to {last:,.3f} s"


def _paragraphs(written: str) -> str:
    return "".join(f"<p>{text(part, None)}</p>" for part in written.split("\n") if part.strip())


def _steps(sheet: Sheet, each: Finding) -> str:
    def lines() -> Iterator[str]:
        for step in each.steps:
            number = "" if step.exchange is None else f'<span class="number">#{step.exchange}</span>'
            at = (step.ns - sheet.first_ns) / SECOND
            yield f'<li><span class="at">{at:,.3f}</span><span>{text(step.text, None)}</span>{number}</li>'

    return f'<ul class="steps">{"".join(lines())}</ul>' if each.steps else ""
