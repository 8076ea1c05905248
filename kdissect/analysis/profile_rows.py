"""The measures of a profile (:mod:`kdissect.analysis.profile`) → its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kdissect.analysis.fold import Row
from kdissect.analysis.measures import Measure
from kdissect.analysis.slices import Estimate, SlicedSums, SlicedTimes

AREAS = API, BROKER, CLIENT, TOPIC_AREA, GROUP_AREA = ("api", "broker", "client", "topic", "group")
RATE, MEAN, SHARE, PERCENTILE = ("rate", "mean", "share", "percentile")
BASE = ""
"""The kind of a measure that is only the base of shares. It has no row."""
PERCENTS = (50, 90, 99)


class NamedKey(NamedTuple):
    """The key of a measure, with the topic's name."""

    subject: str | None
    area: str
    what: str
    kind: str
    of: str


def rows_of(key: NamedKey, measure: Measure, named: Mapping[NamedKey, Measure]) -> Iterator[Row]:
    """The rows of a measure."""
    if measure.times is not None:
        whole = measure.times.all()
        estimates = measure.times.percentiles(whole, PERCENTS)
        for percent, estimate in zip(PERCENTS, estimates, strict=True):
            yield _row(key, f"{key.what} p{percent}", "ns", (whole.count, None), estimate, measure.times)
    counted = measure.counted
    if counted is None or key.kind == BASE:
        return
    if key.of:
        kind = SHARE if key.of == "errors" else BASE
        base = named.get(NamedKey(key.subject, key.area, key.of, kind, ""))
        if base is None or base.counted is None:
            return  # there was no room for it
        counted = _part_of(counted, base.counted)
    estimate = {RATE: counted.rate, MEAN: counted.mean, SHARE: counted.share}[key.kind]()
    yield _row(key, key.what, _unit(key), (counted.count, counted.total), estimate, counted)


def _part_of(part: SlicedSums, base: SlicedSums) -> SlicedSums:
    """A part, with the number of the base's events as its count."""
    out = SlicedSums()
    out.merge(base)
    for each in out.slices.values():
        each.total = 0
    out.merge(part)
    return out


def _unit(key: NamedKey) -> str | None:
    if key.kind == SHARE:
        return None
    unit = "records" if "records" in key.what else "bytes" if key.area == TOPIC_AREA else key.what
    return f"{unit}/s" if key.kind == RATE else unit


def _row(
    key: NamedKey,
    what: str,
    unit: str | None,
    counts: tuple[int, int | None],
    estimate: Estimate,
    span: SlicedSums | SlicedTimes,
) -> Row:
    count, total = counts
    return {
        "area": key.area,
        "subject": key.subject,
        "what": what,
        "kind": key.kind,
        "unit": unit,
        "count": count,
        "total": total,
        "value": _number(estimate.value),
        "low": _number(estimate.low),
        "high": _number(estimate.high),
        "first_ns": span.first_ns,
        "last_ns": span.last_ns,
    }


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)


def subject_order(key: NamedKey) -> tuple[int, str]:
    """The sort key of a subject: all its rows are together."""
    return AREAS.index(key.area), key.subject or ""


def in_order(row: Row) -> tuple[str, str]:
    """The sort key of a row among those of its subject."""
    return row["what"], row["kind"]
