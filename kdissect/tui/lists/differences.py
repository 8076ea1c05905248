"""The differences between two captures, as rows of a table and as a text. Nothing here draws.

There is one list of all differences, one of all findings, and one of the subjects of each area: APIs,
brokers, clients, topics, groups. A row of a subject shows the measures of both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from kdissect.analysis.fold import Row
from kdissect.analysis.profile_rows import AREAS
from kdissect.insight.difference import (
    BETTER,
    CHANGED,
    FINDING,
    ONLY_AFTER,
    ONLY_BEFORE,
    SAME,
    SEEN,
    VERDICTS,
    WORSE,
    Difference,
)
from kdissect.present.diffs import measured
from kdissect.present.paragraphs import fold_text
from kdissect.present.sanitise import pad, sanitise, width
from kdissect.present.whole_record import TextLine
from kdissect.settings.places import DIFF_VIEWS
from kdissect.tui.lists.figures import USEFUL, FigureColumn, Figures

SIGNS = {WORSE: "▲", BETTER: "▽", CHANGED: "◆", ONLY_AFTER: "+", ONLY_BEFORE: "−", SAME: " "}
"""The sign before each row, so that its verdict is visible without colours too."""
ARROW = " → "
_TONES = {WORSE: "table--error", CHANGED: "table--warning", ONLY_AFTER: "table--warning"}
_TONES |= {ONLY_BEFORE: "table--warning", SAME: "table--dim"}

VIEWS = DIFF_VIEWS
"""The lists, with their titles: differences, findings, and the subjects of each area."""
CHANGES, FINDINGS, *_ = VIEWS

NONE = "–"
"""The text for a missing value."""


class Compared(NamedTuple):
    """A subject, with all its measures."""

    subject: str
    verdict: str
    """The worst verdict of its significant measures."""
    measures: tuple[Difference, ...]
    """The measures: significant ones first, those of single APIs last."""

    @property
    def is_significant(self) -> bool:
        """Whether any measure is significant."""
        return self.measures[0].significant

    def of(self, what: str) -> Difference | None:
        """One measure by its name."""
        return next((each for each in self.measures if each.what == what), None)


def subjects(found: Iterable[Difference], area: str) -> list[Compared]:
    """The subjects of an area: those with the worst change first."""
    by_subject: dict[str, list[Difference]] = {}
    for each in found:
        if each.area == area:
            by_subject.setdefault(each.subject, []).append(each)
    out = []
    for subject, measures in by_subject.items():
        ordered = sorted(measures, key=lambda each: (not each.significant, " of " in each.what, each.what))
        verdicts = [each.verdict for each in ordered if each.significant or each.what == SEEN] or [SAME]
        out.append(Compared(subject, min(verdicts, key=VERDICTS.index), tuple(ordered)))
    return sorted(out, key=lambda each: (not each.is_significant, VERDICTS.index(each.verdict), each.subject))


def rows_of(found: Sequence[Difference], view: str) -> list[Row]:
    """The rows of one of the :data:`VIEWS`."""
    if view == CHANGES:
        return [{"of": each} for each in found if each.significant]
    if view == FINDINGS:
        return [{"of": each} for each in found if each.area == FINDING]
    return [{"of": each} for each in subjects(found, view)]


# -- columns ------------------------------------------------------------------------------------------


def difference_of(row: Row) -> Difference:
    """The difference of a row of the first two lists."""
    found: Difference = row["of"]
    return found


def compared_of(row: Row) -> Compared:
    """The subject of a row of the other lists."""
    found: Compared = row["of"]
    return found


def verdict_text(verdict: str) -> str:
    """``▲ worse``. A difference that may be chance is not called equal: the numbers beside it may differ."""
    return f"{SIGNS[verdict]} {'not significant' if verdict == SAME else verdict}"


def _name(row: Row) -> str:
    """The subject of the difference; findings already contain the kind of their subject."""
    each = difference_of(row)
    return each.subject if each.area == FINDING else f"{each.area} {each.subject}"


_VERDICT = FigureColumn(
    "Verdict",
    lambda row: verdict_text(row["of"].verdict),
    lambda row: VERDICTS.index(row["of"].verdict),
    0,
    is_right=False,
    is_most_first=False,
    least=13,
)
_CHANGE = FigureColumn(
    "Change", lambda row: sanitise(difference_of(row).delta_text, None), None, 1, False, 200, least=24
)
_SIDES = (
    FigureColumn("Before", lambda row: measured(difference_of(row), difference_of(row).before), None, 2),
    FigureColumn("After", lambda row: measured(difference_of(row), difference_of(row).after), None, 2),
)
_OF = FigureColumn("Of", lambda row: sanitise(_name(row)), _name, 0, is_right=False, is_most_first=False)


def _subject(title: str) -> FigureColumn:
    return FigureColumn(
        title,
        lambda row: sanitise(row["of"].subject),
        lambda row: row["of"].subject,
        0,
        is_right=False,
        is_most_first=False,
    )


def _measure_name(title: str) -> FigureColumn:
    return FigureColumn(
        title,
        lambda row: sanitise(difference_of(row).what),
        lambda row: difference_of(row).what,
        1,
        is_right=False,
        is_most_first=False,
        least=24,
    )


def _pair(
    title: str, what: str, rank: int, form: Callable[[Difference, float], str] = measured
) -> FigureColumn:
    """A measure of both sides, ordered by the second."""

    def text(row: Row) -> str:
        each = compared_of(row).of(what)
        sides = (None, None) if each is None else (each.before, each.after)
        if each is None or not any(sides):
            return ""
        return ARROW.join(NONE if side is None else form(each, side) for side in sides)

    def last(row: Row) -> float | None:
        each = compared_of(row).of(what)
        return None if each is None else each.after

    return FigureColumn(title, text, last, rank)


def _plain(_: Difference, value: float) -> str:
    """A number without its unit, which is in the title."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _counts(row: Row) -> tuple[int | None, int | None]:
    compared = compared_of(row)
    each = compared.of("requests") or compared.of(SEEN)
    return (None, None) if each is None else each.counts


def _requests(row: Row) -> str:
    counts = _counts(row)
    return ARROW.join(NONE if each is None else f"{each:,}" for each in counts) if any(counts) else ""


def _measures_text(row: Row) -> str:
    """The significant measures, in short."""
    return sanitise(
        "; ".join(
            f"{each.what}: {each.delta_text or verdict_text(each.verdict)}"
            for each in compared_of(row).measures
            if each.significant and each.what != SEEN
        ),
        None,
    )


_MEASURES = (
    FigureColumn("Requests", _requests, lambda row: _counts(row)[1], 1),
    _pair("Requests/s", "requests", USEFUL, _plain),
    _pair("Broker p50", "broker time p50", USEFUL),
    _pair("Broker p99", "broker time p99", 1),
    _pair("Records written/s", "records written", 1, _plain),
    _pair("Records read/s", "records read", 1, _plain),
    _pair("Batch", "batch size", USEFUL),
    _pair("Rebalances", "rebalances", 1),
    _pair("Errors", "errors", 1),
    FigureColumn("Changes", _measures_text, None, 2, False, 200),
)
_SUBJECTS = dict(zip(AREAS, ("API", "Broker", "Client", "Topic", "Group"), strict=True))


def columns_of(view: str) -> tuple[FigureColumn, ...]:
    """The columns of one of the :data:`VIEWS`."""
    if view == CHANGES:
        return (_VERDICT, _OF, _measure_name("What"), *_SIDES, _CHANGE)
    if view == FINDINGS:
        return (_VERDICT, _measure_name("Finding"), _OF, *_SIDES, _CHANGE)
    return (_VERDICT, _subject(_SUBJECTS[view]), *_MEASURES)


def figures_of(view: str) -> Figures:
    """The empty rows of a view."""

    def tone(row: Row) -> str | None:
        of = row["of"]
        is_significant = of.is_significant if isinstance(of, Compared) else of.significant
        return _TONES.get(of.verdict) if is_significant else _TONES[SAME]

    return Figures(columns_of(view), lambda row: row["of"][:3], tone)


# -- the whole text of a row --------------------------------------------------------------------------

_LEAST_OF_SIDE = 12
"""The least width, in cells, of the name of a capture or a measure."""
_INDENT = 4
"""The indentation of a measure's text, in cells, if there is no room beside the name."""


def subject_lines(compared: Compared, title: str, names: tuple[str, str], room: int) -> list[TextLine]:
    """All measures of a subject, side by side.

    :param title: the kind of the subject.
    :param names: the names of the two captures, sanitised.
    :param room: cells of a line.
    """
    rows = [
        (
            sanitise(each.what),
            measured(each, each.before) or NONE,
            measured(each, each.after) or NONE,
            _verdict_of(each),
        )
        for each in compared.measures
    ]
    heads = ("measured", *(name or word for name, word in zip(names, ("before", "after"), strict=True)))
    values = [max(width(row[at]) for row in rows) for at in range(len(heads))]
    name = max(values[0], width(heads[0]))
    beside = max(_LEAST_OF_SIDE, (room - name - 4) // 2)
    sides = [max(min(width(heads[at]), beside), values[at]) for at in (1, 2)]
    cells = min(name, max(_LEAST_OF_SIDE, room - sum(sides) - 4)), *sides
    left = room - sum(cells) - 6
    out = [TextLine(f"{title} {sanitise(compared.subject)}", "heading"), TextLine("")]
    out.append(TextLine(_side_by_side(heads, cells), "fact"))
    for each, row in zip(compared.measures, rows, strict=True):
        kind = "plain" if each.significant else "fact"
        fits = width(row[3]) <= left
        line = _side_by_side(row[:3], cells)
        out.append(TextLine(f"{line}  {row[3]}".rstrip() if fits else line, kind))
        folded = () if fits else fold_text(row[3], room - _INDENT)
        told = (*folded, *_members(each, room - _INDENT))
        out += (TextLine(f"{'':{_INDENT}}{part}", kind) for part in told)
    return out


def _members(each: Difference, room: int) -> Iterator[str]:
    """The members of a set, in lines: only once if both sides have the same."""
    before, after = (sanitise(members, None) for members in each.members)
    both = [f"before: {before}", f"after: {after}"]
    for text in [before or after] if before == after or not (before and after) else both:
        yield from fold_text(text, room) if text else ()


def _verdict_of(each: Difference) -> str:
    """The verdict on a measure; empty if it is not significant."""
    if not each.significant or each.what == SEEN:
        return sanitise(each.delta_text, None) if each.significant else ""
    return f"{verdict_text(each.verdict)}: {sanitise(each.delta_text, None)}"


def _side_by_side(cells: Sequence[str], wide: Sequence[int]) -> str:
    name, before, after = (
        cell if width(cell) <= most else cell[: most - 1] + "…"
        for cell, most in zip(cells, wide, strict=True)
    )
    return "  ".join((pad(name, wide[0]), pad(before, wide[1], True), pad(after, wide[2], True)))
