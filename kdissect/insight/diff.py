"""Two reports → what changed between them. Only what is significant counts as a change.

A number changed if three things hold. It was counted often enough on both sides. It differs by a fifth or
more. The margins of the two do not meet (:mod:`kdissect.analysis.slices`). Times must also differ by one
millisecond, and shares by one in a hundred: smaller differences come from the machine. A rate must differ
both over the time in which something was active and over the whole capture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from math import sqrt
from typing import Any

from kdissect.analysis.fold import MILLISECOND, SECOND, Row
from kdissect.analysis.profile import stem
from kdissect.analysis.profile_rows import (
    AREAS,
    BROKER,
    CLIENT,
    GROUP_AREA,
    PERCENTILE,
    RATE,
    SHARE,
    TOPIC_AREA,
)
from kdissect.insight.context import JudgingContext
from kdissect.insight.diff_filters import filter_of
from kdissect.insight.diff_findings import changed_findings
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
from kdissect.insight.finding import Finding
from kdissect.insight.judge import CaptureReport

LEAST_COUNT = 50
LEAST_RATIO = 1.2
LEAST_NS = MILLISECOND
LEAST_SHARE = 0.01
ENOUGH_TO_BE_SEEN = 20
"""The number of requests from which on a new subject is reported."""
ENOUGH_OF_A_KIND = 5
"""The number of requests or batches from which on their versions or codecs are compared."""
MOST_USED = 0.5
"""The share from which on a version or codec that the other side lacks counts as a change."""


def differences(before: CaptureReport, after: CaptureReport) -> list[Difference]:
    """All comparisons: findings first, then by area, the worst first."""
    nodes = {
        address: node
        for report in (after, before)
        for address, node in _nodes(report.tables.get("cluster_brokers", ())).items()
    }
    sides = _SideReport(before, nodes), _SideReport(after, nodes)
    measured = [each for area in AREAS for each in _of_area(area, *sides)]
    measured += _rebalances(*sides)
    shown = (each._replace(filters=(sides[0].filter_of(each), sides[1].filter_of(each))) for each in measured)
    return sorted((*changed_findings(before, after, sides[1].lacks), *shown), key=_order)


def _order(each: Difference) -> tuple[Any, ...]:
    areas = (FINDING, *AREAS)
    ratio = each.ratio or 0.0
    far = max(ratio, 1 / ratio) if ratio > 0 else 0.0
    place = each.rank if each.area == FINDING else 0
    return areas.index(each.area), place, VERDICTS.index(each.verdict), -far, each.subject, each.what


class _SideReport:
    """A report, with its profile by subject.

    :param nodes: node ids by address, from both sides.
    """

    def __init__(self, report: CaptureReport, nodes: dict[str, str]) -> None:
        self.context: JudgingContext = report.context
        self.rebalances = Counter(stem(row["group"] or "") for row in report.tables.get("rebalances", ()))
        self.software = _software(report.tables.get("clients", ()))
        brokers = {row["subject"] for row in report.tables.get("profile", ()) if row["area"] == BROKER}
        ports = Counter(each.rpartition(":")[2] for each in brokers)
        self.rows: dict[str, dict[str, dict[str, Row]]] = {area: {} for area in AREAS}
        """Rows by area, subject and measure."""
        self.addresses: dict[str, set[str]] = {}
        """Addresses of brokers by subject."""
        for row in report.tables.get("profile", ()):
            subject = row["subject"] or ""
            if row["area"] == BROKER:
                port = subject.rpartition(":")[2]
                address = subject
                subject = nodes.get(address) or (f"port {port}" if ports[port] == 1 else address)
                self.addresses.setdefault(subject, set()).add(address)
            known = self.rows[row["area"]].setdefault(subject, {})
            at = known.get(row["what"])
            if at is None or at["count"] < row["count"]:  # a broker with several listeners: keep the busiest
                known[row["what"]] = row

    def filter_of(self, each: Difference) -> str | None:
        """The display filter that shows the exchanges of a difference; None without exchanges."""
        if each.subject not in self.rows[each.area]:
            return None
        return filter_of(each.area, each.subject, each.what, self.addresses.get(each.subject, ()))

    def lacks(self, finding: Finding) -> str | None:
        """The group, topic or client of a finding that does not occur on this side, in words; None if all
        occur."""
        about = finding.subject
        names = (GROUP_AREA, about.group), (TOPIC_AREA, about.topic), (CLIENT, about.client_id)
        for area, name in names:
            if name is not None and stem(name) not in self.rows[area] and name not in self.rows[area]:
                return f"{area} {name}"
        return None

    def rate(self, row: Row) -> float | None:
        """A rate over the whole capture."""
        if row["kind"] != RATE or not self.context.span_ns:
            return None
        return float(row["total"]) * SECOND / self.context.span_ns


def _nodes(rows: Iterable[Row]) -> dict[str, str]:
    """Node ids by address:port."""
    out = {}
    for row in rows:
        host = row["host"] or ""
        out[f"[{host}]:{row['port']}" if ":" in host else f"{host}:{row['port']}"] = str(row["node_id"])
    return out


def _software(rows: Iterable[Row]) -> dict[str, set[str]]:
    """The software that clients name, by client id."""
    out: dict[str, set[str]] = {}
    for row in rows:
        if row["software"]:
            text = f"{row['software']} {row['software_version'] or ''}".rstrip()
            out.setdefault(stem(row["client_id"] or "(no client id)"), set()).add(text)
    return out


# -- numbers ----------------------------------------------------------------------------------------


def _of_area(area: str, before: _SideReport, after: _SideReport) -> Iterator[Difference]:
    old, new = before.rows[area], after.rows[area]
    for subject in sorted({*old, *new}):
        if subject not in old or subject not in new:
            yield from _on_one_side(area, subject, before if subject in old else after, subject in new)
            continue
        yield from _of_subject(area, subject, (before, old[subject]), (after, new[subject]))


def _on_one_side(area: str, subject: str, side: _SideReport, is_after: bool) -> Iterator[Difference]:
    """A subject that is on one side only: how often it was seen, and all that was measured of it. Only the
    first counts as a change, because nothing can be compared with the others."""
    rows = side.rows[area][subject]
    count = max((row["count"] for row in rows.values()), default=0)
    text = f"new: seen {count:,} times" if is_after else "not seen again"
    seen = _of_one(area, subject, SEEN, float(count), is_after)
    yield seen._replace(
        delta_text=text,
        significant=count >= ENOUGH_TO_BE_SEEN,
        counts=(None, count) if is_after else (count, None),
    )
    for what, row in sorted(rows.items()):
        if _set_of(area, what) is None and row["value"] is not None:
            counts = (None, row["count"]) if is_after else (row["count"], None)
            made = _of_one(area, subject, what, row["value"], is_after)
            yield made._replace(unit=row["unit"] or "", counts=counts)
    sets = {name: _members_text(what for what in rows if _set_of(area, what) == name) for name in _SETS}
    sets["software"] = sorted(side.software.get(subject, ())) if area == CLIENT else []
    for name, members in sets.items():
        if members:
            text = ", ".join(members)
            made = _of_one(area, subject, name, float(len(members)), is_after)
            yield made._replace(delta_text=text, members=("", text) if is_after else (text, ""))


def _of_one(area: str, subject: str, what: str, value: float, is_after: bool) -> Difference:
    """A value that one side has."""
    if is_after:
        return Difference(area, subject, what, None, value, "", "", ONLY_AFTER, False)
    return Difference(area, subject, what, value, None, "", "", ONLY_BEFORE, False)


def _of_subject(
    area: str,
    subject: str,
    before: tuple[_SideReport, dict[str, Row]],
    after: tuple[_SideReport, dict[str, Row]],
) -> Iterator[Difference]:
    (old_side, old), (new_side, new) = before, after
    found = []
    for what in sorted({*old, *new}):
        if _set_of(area, what) is None:
            one, other = old.get(what), new.get(what)
            found.append(_of_row(area, subject, what, (old_side, one), (new_side, other), old, new))
    is_named = any(each.significant and "error " in each.what for each in found)
    for each in found:
        if each.what == "errors" and is_named:
            each = each._replace(significant=False, verdict=SAME)  # each error gives more detail
        yield each
    yield from _sets(area, subject, old, new)
    if area == CLIENT:
        yield from _software_change(
            subject, old_side.software.get(subject, set()), new_side.software.get(subject, set())
        )


def _of_row(
    area: str,
    subject: str,
    what: str,
    before: tuple[_SideReport, Row | None],
    after: tuple[_SideReport, Row | None],
    old: dict[str, Row],
    new: dict[str, Row],
) -> Difference:
    (old_side, one), (new_side, other) = before, after
    known = one or other
    assert known is not None
    unit, kind = known["unit"] or "", known["kind"]
    if one is None or other is None:
        return _of_one_side(area, subject, what, one, other, old, new)
    a, b = one["value"], other["value"]
    is_different = _is_different(one, other)
    slow, fast = old_side.rate(one), new_side.rate(other)
    if is_different and slow is not None and fast is not None:
        is_different = _is_apart(slow, fast) and (fast > slow) == (b > a)
    counts = one["count"], other["count"]
    made = Difference(area, subject, what, a, b, unit, "", SAME, False, counts=counts)
    if not is_different:
        return made
    verdict = CHANGED if kind not in (PERCENTILE, SHARE) else WORSE if b > a else BETTER
    return made._replace(verdict=verdict, significant=True, delta_text=_change(made))


def _is_apart(a: float, b: float) -> bool:
    return max(a, b) > 0 and (min(a, b) <= 0 or max(a, b) / min(a, b) >= LEAST_RATIO)


def _is_different(one: Row, other: Row) -> bool:
    """Whether two estimates differ by more than chance, and by enough to matter."""
    a, b = one["value"], other["value"]
    if a is None or b is None or min(one["count"], other["count"]) < LEAST_COUNT or not _is_apart(a, b):
        return False
    least = LEAST_NS if one["unit"] == "ns" else LEAST_SHARE if one["kind"] == SHARE else 0
    if abs(a - b) < least:
        return False
    lower, upper = (one, other) if a < b else (other, one)
    return lower["high"] is not None and upper["low"] is not None and lower["high"] < upper["low"]


def _of_one_side(
    area: str,
    subject: str,
    what: str,
    one: Row | None,
    other: Row | None,
    old: dict[str, Row],
    new: dict[str, Row],
) -> Difference:
    """A measure that only one side has. For errors, the other side had none."""
    known = one or other
    assert known is not None
    a = None if one is None else one["value"]
    b = None if other is None else other["value"]
    counts = None if one is None else one["count"], None if other is None else other["count"]
    made = Difference(area, subject, what, a, b, known["unit"] or "", "", SAME, False, counts=counts)
    base = (old if one is None else new).get("errors")
    if known["kind"] != SHARE or base is None:
        return made
    none = {**base, "value": 0.0, "total": 0}
    is_fatal = what.startswith("fatal ") and area == CLIENT
    if not is_fatal and not (base["total"] == 0 and _is_different(none, known)):
        return made._replace(before=a or 0.0, after=b or 0.0)
    verdict, text = (WORSE, "new") if one is None else (BETTER, "gone")
    times = f"{text}: {known['total']:,} times in {known['count']:,}"
    return made._replace(before=a or 0.0, after=b or 0.0, verdict=verdict, significant=True, delta_text=times)


def _change(each: Difference) -> str:
    """``+35 %``, ``2.1 times as much``."""
    ratio = each.ratio
    if ratio is None:
        return "new" if each.before == 0 else ""
    if ratio >= 2:
        return f"{ratio:,.1f} times"
    return f"{'+' if ratio > 1 else '−'}{abs(ratio - 1) * 100:.0f} %"


# -- sets -------------------------------------------------------------------------------------------


_SETS = "versions", "codecs"


def _set_of(area: str, what: str) -> str | None:
    """``versions`` or ``codecs`` if a measure counts a member of such a set."""
    if area == CLIENT and " v" in what and what.rpartition(" v")[2].isdigit():
        return "versions"
    return "codecs" if what.startswith("codec ") else None


def _sets(area: str, subject: str, old: dict[str, Row], new: dict[str, Row]) -> Iterator[Difference]:
    """Versions of APIs and codecs that are used on one side only."""
    for name in _SETS:
        both = [
            {what: row for what, row in rows.items() if _set_of(area, what) == name} for rows in (old, new)
        ]
        if not any(both):
            continue
        gone, come = _members(both[0], both[1]), _members(both[1], both[0])
        told = [f"{', '.join(left)} → {', '.join(right)}" for left, right in _paired(gone, come)]
        yield Difference(
            area,
            subject,
            name,
            float(len(both[0])),
            float(len(both[1])),
            "",
            "; ".join(told),
            CHANGED if told else SAME,
            bool(told),
            members=(", ".join(_members_text(both[0])), ", ".join(_members_text(both[1]))),
        )


def _members_text(members: Iterable[str]) -> list[str]:
    """The members of a set, in the form that people read."""
    return sorted(each.removeprefix("codec ") for each in members)


def _members(mine: dict[str, Row], others: dict[str, Row]) -> list[str]:
    """The most-used members that the other side lacks, though it has enough requests or batches of their
    kind."""
    out = []
    for what, row in mine.items():
        stems = [row for other, row in others.items() if _kind_of(other) == _kind_of(what)]
        is_asked = any(each["count"] >= ENOUGH_OF_A_KIND for each in stems)
        if what not in others and is_asked and row["count"] >= ENOUGH_OF_A_KIND and row["value"] >= MOST_USED:
            out.append(what)
    return out


def _kind_of(what: str) -> str:
    """The kind of a measure: ``Produce`` of ``Produce v9``, ``codec`` of ``codec lz4``."""
    return what.rpartition(" ")[0]


def _paired(gone: list[str], come: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    """The members of one kind, old and new side by side; ``…`` if a side uses only members that both have."""
    for kind in dict.fromkeys(map(_kind_of, (*gone, *come))):
        left = [each for each in gone if _kind_of(each) == kind]
        right = [each for each in come if _kind_of(each) == kind]
        yield left or [f"{kind} …"], [each.rpartition(" ")[2] for each in right] or ["…"]


def _software_change(subject: str, old: set[str], new: set[str]) -> Iterator[Difference]:
    if old and new:
        is_other = old.isdisjoint(new)
        text = f"{', '.join(sorted(old))} → {', '.join(sorted(new))}" if is_other else ""
        counts = float(len(old)), float(len(new))
        made = Difference(
            CLIENT, subject, "software", *counts, "", text, CHANGED if is_other else SAME, is_other
        )
        yield made._replace(members=(", ".join(sorted(old)), ", ".join(sorted(new))))


# -- rebalances -------------------------------------------------------------------------------------


def _rebalances(before: _SideReport, after: _SideReport) -> Iterator[Difference]:
    """How often groups rebalanced. Rebalances are rare events at random times (Poisson)."""
    spans = before.context.span_s, after.context.span_s
    for group in sorted({*before.rebalances, *after.rebalances}):
        a, b = before.rebalances[group], after.rebalances[group]
        sides = [group in side.rows[GROUP_AREA] for side in (before, after)]
        if not all(sides):  # the whole group appeared or disappeared
            if any(sides):
                yield _of_one(GROUP_AREA, group, "rebalances", float(b if sides[1] else a), sides[1])
            continue
        is_different = are_events_different((a, b), spans)
        made = Difference(GROUP_AREA, group, "rebalances", float(a), float(b), "", "", SAME, False)
        if is_different:
            is_worse = b * spans[0] > a * spans[1]
            text = f"in {spans[0]:,.0f} s and {spans[1]:,.0f} s"
            made = made._replace(verdict=WORSE if is_worse else BETTER, significant=True, delta_text=text)
        yield made


def are_events_different(counts: tuple[int, int], spans_s: tuple[float, float]) -> bool:
    """Whether two counts of rare events come from different rates. The rates must differ by a fifth, by three
    events, and by 2.58 standard deviations."""
    (a, b), (s, t) = counts, spans_s
    if not s or not t:
        return False
    expected = (a + b) * t / (s + t)
    error = sqrt((a + b) * s * t) / (s + t)
    return abs(b - expected) >= max(3, 2.58 * error) and _is_apart(a / s, b / t)
