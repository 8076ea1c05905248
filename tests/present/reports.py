"""Reports of captures, and reports full of hostile names."""

from __future__ import annotations

from functools import cache
from typing import Any

from kdissect.analysis.catalogue import STATISTICS
from kdissect.analysis.fold import SECOND, Row
from kdissect.insight.context import JudgingContext, Some, Spoken
from kdissect.insight.finding import EvidenceStep, Finding, FindingSubject
from kdissect.insight.judge import CaptureReport, NotJudged
from kdissect.insight.report_data import TABLES, whole_judge
from kdissect.present.html.sheet import ReportOptions
from kdissect.reading import read
from tests.cli.run import CAPTURES

HOSTILE = (
    *(
        "</script><script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "'onload='alert(1)",
        "<!--",
        "]]>",
    ),
    *(
        "\x1b[2J",
        "\u202eabc",
        "\x00",
        "\n</svg>",
        "javascript:alert(1)",
        "&lt;b&gt;",
        "${1}",
        "</style>",
        "é" * 300,
    ),
)
MADE = ReportOptions(("a.pcapng",), ("a.pcapng",))


@cache
def report(name: str) -> CaptureReport:
    """The report of a capture."""
    judge = whole_judge()
    for event in read(CAPTURES / name, on_fault=judge.feed, on_connection=judge.feed):
        judge.feed(event)
    return judge.report()


def hostile(columns: Any, text: str) -> Row:
    """A row whose texts are all that text."""
    out: Row = {}
    for number, column in enumerate(columns):
        values: dict[str, Any] = {"text": text, "texts": [text], "bool": True, "int64s": [1]}
        out[column.name] = values.get(column.type, number if column.type != "float64" else 1.5)
        if column.name.endswith("_ns"):
            out[column.name] = number * SECOND
    return out


def hostile_report(text: str) -> CaptureReport:
    tables = {name: [hostile(STATISTICS[name.partition(",")[0]].columns, text)] * 3 for name in TABLES}
    for row in tables["graph"]:
        row |= {"from_kind": "client", "to_kind": "topic"}
    for row in tables["profile"]:
        row |= {"area": "client", "kind": "rate"}
    subject = FindingSubject(text, text, text, text, text, text, 1, text, text, text)
    finding = Finding(
        text,
        "critical",
        "certain",
        text,
        subject,
        text,
        text,
        unit=text,
        measure=1.0,
        first_ns=SECOND,
        last_ns=2 * SECOND,
        steps=(EvidenceStep(SECOND, text, 1),),
        cause=text,
        fix=text,
        configs=(text,),
        filter=text,
    )
    context = JudgingContext(
        0, 9 * SECOND, exchanges=9, with_gaps=Some(1, (1,)), spoken=(Spoken(text, text, 1),)
    )
    return CaptureReport([finding], [NotJudged(text, text)], context, tables, 1, {})
