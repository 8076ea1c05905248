"""A report as JSON inside its page, so that ``report`` and ``diff`` can read it again.

A file may be forged, so every value must have the type of its column.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from kdissect import __version__
from kdissect.analysis.catalogue import STATISTICS as FOLDS
from kdissect.analysis.fold import Row
from kdissect.analysis.profile import Profile
from kdissect.analysis.profile_rows import AREAS, PERCENTILE
from kdissect.insight.context import JudgingContext, Some, Spoken
from kdissect.insight.difference import FINDING
from kdissect.insight.finding import CONFIDENCES, SEVERITIES, EvidenceStep, Finding, FindingSubject
from kdissect.insight.judge import CaptureReport, NotJudged
from kdissect.present.findings import FINDINGS
from kdissect.present.options import PLAIN
from kdissect.present.sanitise import valid_text
from kdissect.present.statistics import STATISTICS

MARK = 'data-kdissect="report 1"'
"""The mark in the first tag of a report."""
_BEGIN, _END = '<script type="application/json" id="kdissect" data-sha256="', "</script>"
_LARGEST = 1 << 63
_COUNTS = tuple(
    name
    for name, value in JudgingContext()._field_defaults.items()
    if type(value) is int or name.endswith("_ns")
)
_SOME = tuple(name for name, value in JudgingContext._field_defaults.items() if isinstance(value, Some))


class NoReportError(Exception):
    """A file looks like a report, but cannot be read as one; the text says why."""


def is_report(start: bytes) -> bool:
    """Whether a file is a report, by its first bytes."""
    return start.lstrip()[:9].lower() == b"<!doctype" and MARK.encode() in start


# -- writing ----------------------------------------------------------------------------------------


def embedded(report: CaptureReport, most: Mapping[str, int], usual: int) -> str:
    """The element that contains a report.

    :param most: the most rows of some tables; other tables keep ``usual``.
    """
    tables = {text: _table(text, rows, most.get(text, usual)) for text, rows in report.tables.items()}
    columns = [column.name for column in FINDINGS.columns]
    found = [FINDINGS.row(each, PLAIN) for each in report.findings[:usual]]
    context = report.context
    value = {
        "kdissect": __version__,
        "findings": {"columns": columns, "rows": found, "more": len(report.findings) - len(found)},
        "steps": [
            [[step.ns, valid_text(step.text), step.exchange] for step in each.steps]
            for each in report.findings[:usual]
        ],
        "not_judged": [list(each) for each in report.not_judged],
        "rules": report.rules,
        "context": {
            **{name: getattr(context, name) for name in _COUNTS},
            **{name: [getattr(context, name).number, list(getattr(context, name).first)] for name in _SOME},
            "why_dark": valid_text(context.why_dark),
            "spoken": [[each.protocol, each.port, each.number] for each in context.spoken[:usual]],
        },
        "tables": tables,
        "left_out": report.left_out,
    }
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return element(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def element(text: str) -> str:
    """The element around JSON, with its checksum."""
    return f'{_BEGIN}{hashlib.sha256(text.encode()).hexdigest()}">{text}{_END}'


def _table(text: str, rows: Sequence[Row], most: int) -> dict[str, Any]:
    table = STATISTICS[text.partition(",")[0]]
    kept = [table.row(row, PLAIN) for row in rows[:most]]
    names = [column.name for column in table.columns]
    used = [at for at in range(len(names)) if any(row[at] is not None for row in kept)]
    return {
        "columns": [names[at] for at in used],
        "rows": [[_short(row[at]) for at in used] for row in kept],
        "more": len(rows) - len(kept),
    }


def _short(value: Any) -> Any:
    """A number with its significant digits only."""
    return float(f"{value:.6g}") if isinstance(value, float) and isfinite(value) else value


# -- reading ----------------------------------------------------------------------------------------


def report_of(page: str) -> CaptureReport:
    """The report in a page.

    :raises NoReportError: it has no report, or a damaged one.
    """
    _, begin, rest = page.partition(_BEGIN)
    written, end, _ = rest.partition(_END)
    checksum, _, text = written.partition('">')
    if not begin or not end:
        raise NoReportError("the tables of this report are missing: the file is cut off or was changed")
    if hashlib.sha256(text.encode("utf-8", "replace")).hexdigest() != checksum:
        raise NoReportError("the tables of this report are damaged, or were changed")
    try:
        value = json.loads(text)
        return _report(value)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
        raise NoReportError("the tables of this report are damaged, or another version made them") from None


def _report(value: dict[str, Any]) -> CaptureReport:
    findings = [
        _finding(row, steps)
        for row, steps in zip(_rows(FINDING, value["findings"]), _list(value["steps"]), strict=True)
    ]
    tables = {text: _rows(text, table) for text, table in value["tables"].items()}
    return CaptureReport(
        findings,
        [NotJudged(_text(rule), _text(why)) for rule, why in _list(value["not_judged"])],
        _context(value["context"]),
        tables,
        _int(value["rules"]),
        {_text(name): _int(count) for name, count in value["left_out"].items()},
    )


def _rows(text: str, table: Mapping[str, Any]) -> list[Row]:
    """The rows of a table. Columns that it lacks are null."""
    if text == FINDING:
        kinds = {column.name: column.type for column in FINDINGS.columns}
    else:
        kinds = {column.name: column.type for column in FOLDS[text.partition(",")[0]].columns}
    names = _list(table["columns"])
    nothing: Row = {name: [] if kind in ("texts", "int64s") else None for name, kind in kinds.items()}
    out = []
    for row in _list(table["rows"]):
        given = {name: _value(kinds[name], each) for name, each in zip(names, _list(row), strict=True)}
        made = {**nothing, **given}
        if text == Profile.name and (made["area"] not in AREAS or None in _needed(made)):
            raise TypeError
        out.append(made)
    return out


def _needed(row: Row) -> tuple[Any, ...]:
    """The values that a row of the profile always has."""
    return row["what"], row["kind"], row["count"], 0 if row["kind"] == PERCENTILE else row["total"]


def _value(kind: str, value: Any) -> Any:
    """A value of a column.

    :raises TypeError: it does not have the type of the column.
    """
    if value is None:
        return None
    if kind == "text":
        return _text(value)
    if kind == "texts":
        return [_text(each) for each in _list(value)]
    if kind == "int64s":
        return [_int(each) for each in _list(value)]
    if kind == "bool":
        if not isinstance(value, bool):
            raise TypeError
        return value
    if kind == "float64":
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise TypeError
        return float(value)
    return _int(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    value.encode()  # half of a pair of surrogates is no text
    return value


def _int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -_LARGEST <= value < _LARGEST:
        raise TypeError
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _texts(value: Iterable[Any] | None) -> tuple[str, ...]:
    return tuple(value or ())


def _finding(row: Row, steps: Any) -> Finding:
    if row["severity"] not in SEVERITIES or row["confidence"] not in CONFIDENCES:
        raise TypeError
    subject = FindingSubject(**{name: row.get(name) for name in FindingSubject._fields})
    return Finding(
        id=_text(row["finding"]),
        severity=row["severity"],
        confidence=row["confidence"],
        category=row["category"] or "",
        subject=subject,
        message=row["message"] or "",
        subject_text="" if row["subject"] == subject.text() else row["subject"] or "",
        count=_int(row["count"]),
        measure=row["measure"],
        unit=row["unit"] or "",
        threshold=row["threshold"],
        cost_ns=row["cost_ns"],
        first_ns=row["first_ns"],
        last_ns=row["last_ns"],
        resolved_ns=row["resolved_ns"],
        exchanges=tuple(row["exchanges"] or ()),
        packets=tuple(row["packets"] or ()),
        connections=tuple(row["connections"] or ()),
        steps=tuple(
            EvidenceStep(_int(ns), _text(text), None if exchange is None else _int(exchange))
            for ns, text, exchange in _list(steps)
        ),
        cause=row["cause"] or "",
        fix=row["fix"] or "",
        configs=_texts(row["configs"]),
        sources=_texts(row["sources"]),
        because=row["because"],
        filter=row["filter"] or "",
    )


def _context(value: Mapping[str, Any]) -> JudgingContext:
    optional = ("first_ns", "last_ns")
    counts: dict[str, Any] = {
        name: None if name in optional and value[name] is None else _int(value[name]) for name in _COUNTS
    }
    some: dict[str, Any] = {
        name: Some(_int(value[name][0]), tuple(map(_int, _list(value[name][1])))) for name in _SOME
    }
    spoken = tuple(
        Spoken(_text(protocol), _text(port), _int(number))
        for protocol, port, number in _list(value["spoken"])
    )
    return JudgingContext(**counts, **some, why_dark=_text(value["why_dark"]), spoken=spoken)
