"""Differences between two captures, as rows and as a table for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from kdissect.insight.difference import SAME, VERDICTS, Difference
from kdissect.present.columns import Column, Table, dict_column
from kdissect.present.form import Clock, duration, plural, size
from kdissect.present.options import PLAIN, Options
from kdissect.present.sanitise import sanitise, valid_text
from kdissect.present.statistics_text import table_lines


def _value(name: str, each: Difference, _: Options) -> Any:
    value = getattr(each, name)
    return valid_text(value) if isinstance(value, str) else value


def _column(name: str, kind: str, meaning: str) -> Column:
    return Column(name, kind, meaning, partial(_value, name))


DIFF = Table(
    "diff",
    (
        _column("area", "text", "finding, api, broker, client, topic or group"),
        _column("subject", "text", "name of the API, broker, …; * stands for a random part of the name"),
        _column("what", "text", "what was measured; for a finding the id of its rule"),
        _column("before", "float64", "value in BEFORE; null if it was not there"),
        _column("after", "float64", "value in AFTER; null if it is not there"),
        _column("unit", "text", "the unit of both; empty for counts, and for shares (0 to 1)"),
        _column("ratio", "float64", "after / before; null if one is 0 or null"),
        _column("delta_text", "text", "what changed, in words"),
        _column("verdict", "text", "worse, better, changed, only-after, only-before or same"),
        _column(
            "significant", "bool", "whether the difference is more than chance and large enough to matter"
        ),
    ),
)

_SHOWN = Table(
    "diff",
    tuple(
        dict_column(name, "text", "")
        for name in ("verdict", "area", "subject", "what", "before", "after", "change")
    ),
)


def diff_lines(found: Sequence[Difference], room: int | None) -> Iterator[str]:
    """A table for people; empty if nothing changed."""
    if found:
        yield from table_lines(_SHOWN, [_row(each) for each in found], PLAIN, Clock(), room=room)


def _row(each: Difference) -> dict[str, str]:
    return {
        "verdict": each.verdict,
        "area": each.area,
        "subject": sanitise(each.subject),
        "what": sanitise(each.what),
        "before": measured(each, each.before),
        "after": measured(each, each.after),
        "change": sanitise(each.delta_text, None),
    }


def measured(each: Difference, value: float | None) -> str:
    """A value with its unit."""
    if value is None:
        return ""
    if each.unit == "ns":
        return duration(round(value))
    if each.unit in ("bytes", "B"):
        return size(round(value))
    if each.unit == "bytes/s":
        return f"{size(round(value))}/s"
    if "error" in each.what:
        return f"{value * 100:.3g} %"
    number = f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:,.3g}"
    return f"{number} {each.unit}".rstrip()


def summary(all_of_them: Sequence[Difference]) -> str:
    """The number of comparisons, and their result, in a line."""
    counts = Counter(each.verdict if each.significant else SAME for each in all_of_them if each.is_compared)
    compared = f"compared {plural(counts.total(), 'value')}"
    same = counts.pop(SAME, 0)
    if not counts:
        return f"{compared}: no significant difference"
    told = ", ".join(f"{counts[name]:,} {_WORDS.get(name, name)}" for name in VERDICTS if counts[name])
    return f"{compared}: {told}; {same:,} without a significant difference"


_WORDS = {"only-after": "only in AFTER", "only-before": "only in BEFORE"}
