"""The time line of a report, and the parts of its latencies."""

from __future__ import annotations

from kdissect.analysis.fold import SECOND, Row
from kdissect.insight.rule import CAPTURE
from kdissect.present.form import duration, size
from kdissect.present.html.page import section
from kdissect.present.html.sheet import Sheet
from kdissect.present.html.svg import Band, Bar, LaneSpan, Line, TimeLane, bars, figure, lanes, lines
from kdissect.present.names_of_clusters import NamesOfClusters

_MOST_LANES = 12
_MOST_MARKS = 60


def timeline(sheet: Sheet) -> str:
    """Requests, bytes, errors and broker times by interval, with events and the times of findings."""
    rows = sheet.rows("timeline")
    if not rows:
        return ""
    length_ns = int(rows[0]["interval_ns"])
    seconds = length_ns / SECOND
    bands = _bands(sheet)

    def line(name: str, *columns: str, factor: float = 1.0, is_area: bool = False) -> Line:
        """A line over all intervals. An interval without a row counts as 0."""
        points: list[tuple[float, float | None]] = []
        empty = None if columns[0].endswith("_ns") else 0.0
        before: int | None = None
        for row in rows:
            at = row["start_ns"]
            if before is not None and at - before > length_ns:
                points += [(sheet.s(before + length_ns), empty), (sheet.s(at - 1), empty)]
            values = [row[column] for column in columns]
            known = None if None in values else float(sum(values)) * factor
            points.append((sheet.s(max(at, sheet.first_ns)), known))
            before = at
        return Line(name, points, is_area)

    def rate(value: float) -> str:
        return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"

    per = 1 / seconds
    interval = f"by {duration(length_ns)}; shaded: a rebalance, a move of a leader, an election"
    parts = [
        figure(
            "Requests a second",
            lines(
                [line("requests", "requests", factor=per, is_area=True)],
                sheet.axis,
                rate,
                "Requests a second over time",
                bands,
            ),
            interval if bands else f"by {duration(length_ns)}",
        ),
        figure(
            "Bytes a second",
            lines(
                [
                    line("of requests", "request_bytes", factor=per),
                    line("of responses", "response_bytes", factor=per),
                ],
                sheet.axis,
                lambda value: f"{size(round(value))}/s",
                "Bytes of requests and responses a second over time",
                bands,
                90,
                binary=True,
            ),
            legend=("requests", "responses"),
            dashes=True,
        ),
        figure(
            "Broker time",
            lines(
                [
                    line("half took no longer than", "broker_p50_ns"),
                    line("99 % took no longer than", "broker_p99_ns"),
                ],
                sheet.axis,
                lambda value: duration(round(value)),
                "Median and 99th percentile of broker time over time",
                bands,
                110,
            ),
            "what brokers took, without waits that clients asked for",
            ("half took no longer (p50)", "99 % took no longer (p99)"),
            True,
        ),
        figure(
            "Errors a second",
            lines(
                [line("errors", "errors", factor=per, is_area=True)],
                sheet.axis,
                rate,
                "Errors a second over time",
                bands,
                60,
                first_shade=1,
            ),
            "error codes in responses, without those that are ordinary steps",
        ),
        figure("When findings were seen", _seen(sheet, bands)),
    ]
    return section("timeline", "Time line", parts)


def _bands(sheet: Sheet) -> list[Band]:
    """Events with a duration or a moment."""
    names = NamesOfClusters(sheet.rows("rebalances"), "group")
    found = [
        sheet.band(
            *(row["begin_ns"], row["synced_ns"]),
            f"rebalance of {names.text(row)}: {row['trigger'] or 'unknown'}",
        )
        for row in sheet.rows("rebalances")
    ]
    found += [
        sheet.band(row["ns"], row["ns"], f"{row['what']}: {row['subject']}")
        for row in sheet.rows("cluster_changes")
        if row["what"] in ("leader-moved", "controller-moved", "broker-gone", "broker-appeared", "isr-shrunk")
    ]
    return sorted(filter(None, found))[:_MOST_MARKS]


def _seen(sheet: Sheet, bands: list[Band]) -> str:
    rows = []
    for each in sheet.report.findings:
        if each.category == CAPTURE or each.first_ns is None or each.last_ns is None:
            continue
        what = f"{each.severity} {each.id}: {each.where}"
        label = f"{each.id} · {each.where}"[:80]
        span = LaneSpan(sheet.s(each.first_ns), sheet.s(each.last_ns), 0, what, label, tone=each.severity)
        rows.append(TimeLane(each.severity, [span]))
    return lanes(rows[:_MOST_LANES], sheet.axis, "When each finding was seen", bands, True)


_PARTS = {
    "behind": "behind another request",
    "throttle": "quota",
    "network": "network",
    "wait": "wait that was asked for",
    "broker": "broker",
}


def latency(sheet: Sheet) -> str:
    """The parts of response times."""
    lead = (
        "Each bar is the sum of all response times. Long polls and joins are left out if it is unknown "
        "how much of them was a requested wait."
    )
    parts = [
        figure(
            "Where response times go, by API",
            _parts_of(sheet.rows("latency"), "api"),
            lead,
            [*_PARTS.values()],
        ),
        figure(
            "By broker",
            _parts_of(sheet.rows("latency,broker"), "broker") if _several(sheet, "broker") else "",
            legend=[*_PARTS.values()],
        ),
        sheet.table(
            "latency",
            (
                ("api", "API"),
                ("api_version", "version"),
                ("count", "count"),
                ("latency_p50_ns", "p50"),
                ("latency_p99_ns", "p99"),
                ("latency_max_ns", "longest"),
                ("broker_p50_ns", "broker p50"),
                ("broker_p99_ns", "broker p99"),
                ("behind_max_ns", "longest wait behind another"),
                ("network_p50_ns", "network p50"),
                ("throttle_max_ns", "longest throttle"),
            ),
            "Response times by API and version",
            sort=lambda row: -(row["latency_sum_ns"] or 0),
        ),
        sheet.table(
            "slowest",
            (
                ("number", "exchange"),
                ("request_time_ns", "at, s"),
                ("api", "API"),
                ("client_id", "client"),
                ("broker", "broker"),
                ("topics", "topics"),
                ("error", "error"),
                ("latency_ns", "took"),
                ("behind_ns", "behind"),
                ("throttle_ns", "throttle"),
                ("network_ns", "network"),
                ("wait_ns", "wait"),
                ("broker_ns", "broker"),
            ),
            "The slowest 20 exchanges",
        ),
    ]
    return section("latency", "Latency in parts", parts)


def _several(sheet: Sheet, column: str) -> bool:
    return len({row[column] for row in sheet.rows("latency,broker")}) > 1


def _parts_of(rows: list[Row], column: str) -> str:
    sums: dict[str, list[float]] = {}
    counts: dict[str, int] = {}
    for row in rows:
        name = row[column] or "unknown"
        known = sums.setdefault(name, [0.0] * len(_PARTS))
        for at, part in enumerate(_PARTS):
            known[at] += max(0, row[f"{part}_sum_ns"] or 0)
        counts[name] = counts.get(name, 0) + row["count"]
    found = sorted(sums.items(), key=lambda each: -sum(each[1]))[:12]
    made = [
        Bar(name, parts, f"{duration(round(sum(parts)))}, {counts[name]:,} ×")
        for name, parts in found
        if sum(parts)
    ]
    about = "Sums of the parts of response times: " + "; ".join(f"{each.name} {each.note}" for each in made)
    return bars(made, [*_PARTS.values()], lambda value: duration(round(value)), about)
