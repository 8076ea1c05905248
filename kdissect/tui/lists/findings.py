"""Findings as rows of a table, and the whole text of one. Nothing here draws.

Rows are those of :mod:`kdissect.feed.judging`.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.analysis.fold import Row
from kdissect.insight.finding import CONFIDENCES, CRITICAL, INFO, SEVERITIES, WARNING, Finding
from kdissect.present.form import SECOND, Clock
from kdissect.present.paragraphs import fold_text, paragraph
from kdissect.present.sanitise import pad, sanitise
from kdissect.present.whole_record import TextLine
from kdissect.tui.lists.figures import FigureColumn, Figures

EFFECT = "└ "
"""The text before a finding that another one explains."""
_TONES = {CRITICAL: "table--error", WARNING: "table--warning", INFO: "table--dim"}
_MOST_WIDE = 110
"""The most cells of a line of text; longer ones are hard to read."""


def _severity(row: Row) -> str:
    return finding_of(row).severity


def _id(row: Row) -> str:
    deep: int = row["deep"]
    return "  " * (deep - 1) + (EFFECT if deep else "") + finding_of(row).id


def _where(row: Row) -> str:
    return sanitise(finding_of(row).where)


def _message(row: Row) -> str:
    return sanitise(finding_of(row).message)


def _count(row: Row) -> str:
    return f"{finding_of(row).count:,}"


def _columns(clock: Clock) -> tuple[FigureColumn, ...]:
    def first(row: Row) -> str:
        ns = finding_of(row).first_ns
        return "" if ns is None else clock.text(ns)

    return (
        FigureColumn(
            "Severity",
            _severity,
            lambda row: SEVERITIES.index(_severity(row)),
            is_right=False,
            is_most_first=False,
            least=8,
        ),
        FigureColumn("Finding", _id, lambda row: finding_of(row).id, 0, False, 40, False, 24),
        FigureColumn("Whose", _where, _where, 0, False, 80, False, 20),
        FigureColumn("Measured", lambda row: sanitise(row["measure"]), None, 1),
        FigureColumn("Count", _count, lambda row: finding_of(row).count, 3),
        FigureColumn("First", first, lambda row: finding_of(row).first_ns, 4, is_most_first=False),
        FigureColumn(
            "Confidence",
            lambda row: finding_of(row).confidence,
            lambda row: CONFIDENCES.index(finding_of(row).confidence),
            4,
            is_right=False,
            is_most_first=False,
        ),
        FigureColumn("What", _message, None, 6, False, 120, least=40),
    )


def finding_of(row: Row) -> Finding:
    """The finding of a row."""
    found: Finding = row["finding"]
    return found


def figures(clock: Clock) -> Figures:
    """The empty rows."""
    return Figures(
        _columns(clock),
        lambda row: finding_of(row).key,
        lambda row: _TONES.get(finding_of(row).severity),
        turns=False,  # the whole text is below
    )


def is_in(finding: Finding, span: tuple[int, int]) -> bool:
    """Whether a finding falls into a range of time, or has no time at all."""
    if finding.first_ns is None:
        return True
    return finding.first_ns < span[1] and (finding.last_ns or finding.first_ns) >= span[0]


def text_of(finding: Finding, because: Finding | None, first_ns: int | None, room: int) -> list[TextLine]:
    """The whole text of a finding.

    :param because: the finding that explains it.
    :param first_ns: the time from which times count.
    :param room: cells of a line.
    """
    room = min(room, _MOST_WIDE)
    heading = f"{finding.severity.upper()} {finding.id}: {sanitise(finding.where, None)}"
    out = [TextLine(part, "heading") for part in fold_text(heading, room)]
    out += map(TextLine, paragraph(finding.message, "", room=room))
    if because is not None:
        cause = f"explained by {because.id}, {because.where}"
        out += (TextLine(part, "fact") for part in paragraph(cause, "", room=room))
    if finding.steps:
        out.append(TextLine(""))
        out += (TextLine(part) for part in _steps(finding, first_ns, room))
    for label, text in (("why", finding.cause), ("do", finding.fix)):
        if text:
            out.append(TextLine(""))
        for at, part in enumerate(text.split("\n") if text else ()):
            out += map(TextLine, paragraph(part, "", label if at == 0 else "", room))
    see = finding.shown_by
    if see is not None:
        out += [
            TextLine(""),
            *(TextLine(part, "fact") for part in paragraph(f"{see}  (Enter)", "", "see", room)),
        ]
    sure = [finding.confidence, finding.category, *finding.configs, *finding.sources]
    out += [TextLine(""), *(TextLine(part, "fact") for part in paragraph(" · ".join(sure), "", room=room))]
    return out


def _steps(finding: Finding, first_ns: int | None, room: int) -> Iterator[str]:
    start = finding.steps[0].ns if first_ns is None else first_ns
    times = [f"{(step.ns - start) / SECOND:.3f}" for step in finding.steps]
    wide = max(map(len, times))
    for at_time, step in zip(times, finding.steps, strict=True):
        number = "" if step.exchange is None else f"#{step.exchange}"
        before = at_time.rjust(wide) + " "
        for at, line in enumerate(fold_text(sanitise(step.text, None), room - len(before) - len(number) - 1)):
            text = (before if at == 0 else " " * len(before)) + line
            yield f"{pad(text, room - len(number) - 1)} {number}" if number and at == 0 else text


def nothing_found(looked_at: Row, is_whole: bool, room: int) -> list[TextLine]:
    """The text if there are no findings: the parts that were judged, and those that could not be.

    :param looked_at: the row about the judged parts.
    :param is_whole: whether all of the capture was read.
    """
    room = min(room, _MOST_WIDE)
    if looked_at["is_unread"]:
        return [TextLine("Nothing was judged: nothing of the capture could be read.", "heading")]
    return [
        TextLine("There are no findings." if is_whole else "There are no findings so far.", "heading"),
        TextLine(""),
        *(TextLine(part) for part in paragraph(looked_at["captured"], "", "looked at   ", room)),
        TextLine(""),
        *(TextLine(part, "fact") for part in paragraph(looked_at["judged"], "", room=room)),
    ]
