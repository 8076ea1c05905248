"""Stories as lines for people, and as rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kdissect.analysis.declared import TIME
from kdissect.analysis.story import StoryLine
from kdissect.insight.finding import Finding
from kdissect.present.columns import Column, Table
from kdissect.present.findings_text import heading
from kdissect.present.form import SECOND
from kdissect.present.options import Options
from kdissect.present.paragraphs import WIDTH, fold_text
from kdissect.present.sanitise import pad, sanitise, valid_text, width

_MOST_WHO = 24
"""The most cells for the client or broker that acted."""


def _text(name: str) -> Column:
    def read(line: StoryLine, _: Options) -> str | None:
        value = getattr(line, name)
        return None if value is None else valid_text(value)

    return Column(name, "text", _MEANINGS[name], read)


def _number(name: str, unit: str = "") -> Column:
    return Column(name, "int64", _MEANINGS[name], lambda line, _: getattr(line, name), unit=unit)


_MEANINGS = {
    "ns": "when it happened, ns since the epoch",
    "last_ns": "when it happened last, if the line stands for several exchanges",
    "exchange": "number of the first exchange",
    "connection": "number of the connection",
    "client": "address:port of the client",
    "client_id": "the name the client gives itself",
    "whole": "what it did",
    "count": "number of exchanges that the line stands for",
    "error": "the error of the first exchange",
}

STORY = Table(
    "story",
    (
        _number("ns", TIME),
        _number("last_ns", TIME),
        _number("exchange"),
        _number("connection"),
        _text("client"),
        _text("client_id"),
        Column("text", "text", _MEANINGS["whole"], lambda line, _: valid_text(line.whole)),
        _number("count"),
        _text("error"),
    ),
)


_LONG_NS = SECOND
"""If repetitions take at least this long, their line says until when they went on."""


def story_lines(lines: list[StoryLine], first_ns: int | None) -> Iterator[str]:
    """One line for each event: when, who, what, and the number of the exchange."""
    if not lines:
        return
    start = lines[0].ns if first_ns is None else first_ns
    times = [f"{(line.ns - start) / SECOND:.3f}" for line in lines]
    who = [sanitise(line.client_id or line.client) for line in lines]
    room = max(map(len, times))
    names = min(max(map(width, who)), _MOST_WHO)
    for time, name, line in zip(times, who, lines, strict=True):
        if width(name) > names:
            name = name[: names - 1] + "…"
        before = f"{time.rjust(room)}  {pad(name, names)}  "
        number = f"#{line.exchange}"
        until = f"{(line.last_ns - start) / SECOND:.3f}" if line.last_ns - line.ns >= _LONG_NS else ""
        parts = fold_text(sanitise(line.repeated(until), None), WIDTH - width(before) - len(number) - 1)
        for at, part in enumerate(parts):
            text = (before if at == 0 else " " * width(before)) + part
            yield f"{pad(text, WIDTH - len(number) - 1)} {number}" if at == 0 else text


def about_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """The findings on the subject, one line each."""
    for each in findings:
        yield from heading(each, "  ")
