"""Topics, groups and transactions of a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kdissect.analysis.fold import Row
from kdissect.present.form import duration, plural, size
from kdissect.present.html.page import section
from kdissect.present.html.sheet import Sheet
from kdissect.present.html.svg import Band, Bar, LaneSpan, Line, TimeLane, bars, figure, lanes, lines
from kdissect.present.names_of_clusters import NamesOfClusters, with_ambiguous_clusters

_MOST_DRAWN = 6
"""The most topics with bars, and groups with lanes."""
_MOST_LANES = 24


def topics(sheet: Sheet) -> str:
    """Rates, batches, codecs, how even partitions are, and how long records take to reach their consumers."""
    parts = [
        sheet.table(
            "topics",
            (
                ("topic", "topic"),
                ("cluster_id", "cluster"),
                ("partition", "partition"),
                ("direction", "direction"),
                ("records", "records"),
                ("bytes", "bytes"),
                ("records_per_s", "records/s"),
                ("bytes_per_s", "bytes/s"),
                ("batches", "batches"),
                ("batch_bytes_mean", "mean batch"),
                ("batch_bytes_max", "largest batch"),
                ("codecs", "codecs"),
                ("corrupt_batches", "damaged"),
                ("errors", "errors"),
            ),
            "Traffic by partition and direction",
            with_ambiguous_clusters(sheet.rows("topics"), "topic"),
            sort=lambda row: -(row["bytes"] or 0),
        ),
        *_skew(sheet),
        sheet.table(
            "delivery",
            (
                ("topic", "topic"),
                ("cluster_id", "cluster"),
                ("partition", "partition"),
                ("consumer", "consumer"),
                ("group", "group"),
                ("records", "records"),
                ("create_to_fetched_p50_ns", "created to read, p50"),
                ("create_to_fetched_p99_ns", "p99"),
                ("linger_p50_ns", "linger p50"),
                ("produce_p50_ns", "produce p50"),
                ("replicate_p50_ns", "replicate p50"),
                ("visible_p50_ns", "visible p50"),
                ("waited_p50_ns", "waited p50"),
                ("unconsumed", "not read"),
                ("read_again", "read again"),
            ),
            "From producer to consumer",
            with_ambiguous_clusters(sheet.rows("delivery"), "topic"),
            sort=lambda row: -(row["records"] or 0),
        ),
    ]
    return section("topics", "Topics", parts)


def _skew(sheet: Sheet) -> Iterator[str]:
    """How written records are spread over the partitions."""
    written: dict[str, dict[int, int]] = {}
    names = NamesOfClusters(sheet.rows("topics"), "topic")
    for row in sheet.rows("topics"):
        if row["direction"] == "produce" and row["partition"] is not None and row["topic"]:
            known = written.setdefault(names.text(row), {})
            known[row["partition"]] = known.get(row["partition"], 0) + (row["bytes"] or 0)
    several = {topic: parts for topic, parts in written.items() if len(parts) > 1}
    for topic, parts in sorted(several.items(), key=lambda each: -sum(each[1].values()))[:_MOST_DRAWN]:
        total = sum(parts.values()) or 1
        rows = [
            Bar(f"partition {number}", [float(count)], f"{size(count)}, {count / total * 100:.0f} %")
            for number, count in sorted(parts.items(), key=lambda each: (-each[1], each[0]))[:12]
        ]
        about = "; ".join(f"{row.name}: {row.note}" for row in rows)
        drawn = bars(
            rows, ("written",), lambda value: size(round(value)), f"Bytes written to {topic}: {about}"
        )
        yield figure(f"Written to {topic}, by partition", drawn)


# -- groups -----------------------------------------------------------------------------------------


def groups(sheet: Sheet) -> str:
    """Status, lag, the steps of rebalances, assignments."""
    parts = [
        sheet.table(
            "groups",
            (
                ("group", "group"),
                ("cluster_id", "cluster"),
                ("types", "type"),
                ("members", "members"),
                ("rebalances", "rebalances"),
                ("rebalance_max_ns", "longest"),
                ("not_finished", "not finished"),
                ("commits", "commits"),
                ("heartbeats", "heartbeats"),
                ("errors", "errors"),
            ),
            "Groups",
            with_ambiguous_clusters(sheet.rows("groups"), "group"),
            sort=lambda row: (-(row["rebalances"] or 0), row["group"] or ""),
        ),
        _lag_lines(sheet),
        sheet.table(
            "lag",
            (
                ("group", "group"),
                ("cluster_id", "cluster"),
                ("topic", "topic"),
                ("partition", "partition"),
                ("committed", "committed"),
                ("log_end", "end of the log"),
                ("lag", "lag"),
                ("lag_max", "highest lag"),
                ("written_per_s", "written/s"),
                ("committed_per_s", "committed/s"),
            ),
            "Lag at the end",
            with_ambiguous_clusters(sheet.rows("lag"), "group"),
            sort=lambda row: -(row["lag"] or 0),
        ),
        *_gantts(sheet),
        sheet.table(
            "rebalances",
            (
                ("group", "group"),
                ("cluster_id", "cluster"),
                ("generation", "generation"),
                ("begin_ns", "at, s"),
                ("trigger", "why"),
                ("trigger_client_id", "by"),
                ("stopped_ns", "stood still"),
                ("join_phase_ns", "join"),
                ("assign_phase_ns", "assign"),
                ("sync_phase_ns", "sync"),
                ("waited_for", "waited for"),
                ("missing", "did not come"),
                ("members", "members"),
                ("moved", "partitions moved"),
                ("trigger_reason", "reason given"),
            ),
            "Rebalances",
            _named_rebalances(sheet),
            sort=lambda row: row["begin_ns"] or 0,
        ),
        *_assigned(sheet),
        sheet.table(
            "share",
            (
                ("group", "share group"),
                ("cluster_id", "cluster"),
                ("topic", "topic"),
                ("partition", "partition"),
                ("client_id", "client"),
                ("acquired", "acquired"),
                ("accepted", "accepted"),
                ("released", "released"),
                ("rejected", "rejected"),
                ("expired", "expired"),
                ("redelivered", "again"),
                ("max_delivery_count", "most deliveries"),
                ("hold_p50_ns", "held p50"),
            ),
            "Share groups",
            with_ambiguous_clusters(sheet.rows("share"), "group"),
        ),
    ]
    return section("groups", "Groups", parts)


def _lag_lines(sheet: Sheet) -> str:
    """The lag of each group over time, for all its partitions together."""
    names = NamesOfClusters(sheet.rows("lag,1s"), "group")
    last: dict[str, dict[tuple[str, int], int]] = {}
    points: dict[str, list[tuple[float, float | None]]] = {}
    for row in sorted(sheet.rows("lag,1s"), key=lambda row: row["ns"] or 0):
        if row["ns"] is None or row["lag"] is None:
            continue
        group = names.text(row)
        known = last.setdefault(group, {})
        known[row["topic"] or "", row["partition"] or 0] = row["lag"]
        series = points.setdefault(group, [])
        at = sheet.s(row["ns"])
        if series and series[-1][0] == at:
            series.pop()
        series.append((at, float(sum(known.values()))))
    most = sorted(points.items(), key=lambda each: -max(value or 0 for _, value in each[1]))[:_MOST_DRAWN]
    drawn = [Line(group, each) for group, each in most if len(each) > 1]
    about = "Lag of groups over time: " + "; ".join(
        f"{line.name} at most {max(value or 0 for _, value in line.points):,.0f}" for line in drawn
    )
    content = lines(drawn, sheet.axis, lambda value: f"{value:,.0f}", about)
    drawn_names = [line.name for line in drawn]
    return figure("Lag of groups", content, "records, all partitions together", drawn_names, True)


_DRAWN = ("stays", "rebalances", "members")


def _by_group(rows: Iterable[Row], names: NamesOfClusters) -> dict[str, list[Row]]:
    """Rows by the names of their groups."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(names.text(row), []).append(row)
    return found


def _gantts(sheet: Sheet) -> Iterator[str]:
    """A figure for each group, with a lane for each member: what it owned, and when it stood still."""
    names = NamesOfClusters(sheet.rows("stays"), "group")
    stays, rebalances, members_of = (_by_group(sheet.rows(name), names) for name in _DRAWN)
    order = sorted(stays, key=lambda group: (-len(rebalances.get(group, ())), group))
    for group in order[:_MOST_DRAWN]:
        bands = [
            Band(band.from_s, band.to_s, band.what)
            for row in rebalances.get(group, ())
            if (band := sheet.band(row["begin_ns"], row["synced_ns"], _rebalance_text(row))) is not None
        ]
        begins = sorted(row["begin_ns"] for row in rebalances.get(group, ()) if row["begin_ns"] is not None)
        members = _members(sheet, members_of.get(group, ()), stays[group], begins)
        drawn = lanes(members, sheet.axis, f"Members of {group} over time", bands)
        lead = (
            "each bar is a generation of a member, with its partitions; thin: it joins; shaded: a rebalance"
        )
        yield figure(f"Group {group}", drawn, lead)


def _named_rebalances(sheet: Sheet) -> list[Row]:
    """Rebalances with names of clients instead of members."""
    names = _client_names(sheet)
    return [
        {
            **row,
            **{
                name: [names.get(each, each) for each in row[name] or ()]
                for name in ("waited_for", "missing")
            },
        }
        for row in with_ambiguous_clusters(sheet.rows("rebalances"), "group")
    ]


def _rebalance_text(row: Row) -> str:
    stopped = "" if row["stopped_ns"] is None else f", stood still for {duration(row['stopped_ns'])}"
    who = f" by {row['trigger_client_id']}" if row["trigger_client_id"] else ""
    return f"generation {row['generation']}: {row['trigger'] or 'unknown'}{who}{stopped}"


def _members(sheet: Sheet, own: Iterable[Row], stays: list[Row], begins: list[int]) -> list[TimeLane]:
    """The lanes of a group's members.

    :param own: its rows of ``members``.
    :param begins: when its rebalances began, in ns since the epoch: a member keeps its partitions until then,
        unless it leaves.
    """
    ends = {row["member_id"]: row["left_ns"] or row["last_ns"] for row in own}
    members: dict[str, list[Row]] = {}
    for row in sorted(stays, key=lambda row: row["first_ns"] or 0):
        members.setdefault(row["member_id"] or "", []).append(row)
    names = _client_names(sheet)
    out = []
    for number, (member, rows) in enumerate([*members.items()][:_MOST_LANES]):
        spans = []
        for row in rows:
            first, last = row["first_ns"], row["last_ns"]
            if first is None or last is None:
                continue
            start = row["sync_ns"] or first
            last = min(
                max(last, ends.get(member) or last), next((ns for ns in begins if ns > start), sheet.last_ns)
            )
            assigned = "" if row["assigned"] is None else plural(row["assigned"], "partition")
            name = names.get(member, member)
            what = f"{name}, generation {row['generation']}: {assigned or 'assignment unknown'}"
            spans.append(LaneSpan(sheet.s(start), sheet.s(max(last, start)), number, what, assigned))
            if row["join_ns"] is not None:
                told = f"{name} joins generation {row['generation']}"
                if row["duration_ns"] is not None:
                    told += f" for {duration(row['duration_ns'])}"
                spans.append(LaneSpan(sheet.s(row["join_ns"]), sheet.s(start), number, told, is_stop=True))
        out.append(TimeLane(names.get(member, member), spans))
    return out


def _client_names(sheet: Sheet) -> dict[str, str]:
    """Client ids by member id, by the names in rebalances."""
    return {
        row["member_id"]: row["client_id"]
        for row in sheet.rows("rebalance_steps")
        if row["member_id"] and row["client_id"]
    }


def _assigned(sheet: Sheet) -> Iterator[str]:
    table = sheet.table(
        "assignments",
        (
            ("group", "group"),
            ("cluster_id", "cluster"),
            ("generation", "generation"),
            ("member_id", "member"),
            ("topic", "topic"),
            ("partition", "partition"),
            ("task", "task"),
            ("change", "change"),
        ),
        "Partitions kept, gained and lost",
        with_ambiguous_clusters(sheet.rows("assignments"), "group"),
    )
    if table:
        yield f"<details><summary>Assignments, rebalance by rebalance</summary>{table}</details>"


# -- transactions -----------------------------------------------------------------------------------

_WORST_FIRST = {"timed-out": 0, "fenced": 1, "aborted": 3, "committed": 4}
_OUTCOMES = {"committed": 2, "aborted": 4, "timed-out": 1, "fenced": 6, "open": 3}


def transactions(sheet: Sheet) -> str:
    """A lane for each transactional id, and the transactions as rows."""
    rows = with_ambiguous_clusters(sheet.rows("transactions"), "transactional_id")
    names = NamesOfClusters(rows, "transactional_id")
    ids: dict[str, list[Row]] = {}
    for row in rows:
        ids.setdefault(names.text(row, "?"), []).append(row)
    made = []
    for name, found in [*ids.items()][:_MOST_LANES]:
        spans = []
        for row in found:
            times = [row[each] for each in ("begin_ns", "end_ns", "last_ns") if row[each] is not None]
            if not times:
                continue
            begin, end = times[0], row["end_ns"] or row["last_ns"] or times[0]
            outcome = row["outcome"] or "unknown"
            records = "" if row["records"] is None else f", {plural(row['records'], 'record')}"
            lasted = "" if row["begin_ns"] is None else f" after {duration(max(0, end - begin))}"
            what = f"{name}: {outcome}{lasted}{records}"
            shade = _OUTCOMES.get(outcome, 7)
            is_bad = outcome in ("timed-out", "fenced")
            label = outcome if is_bad or outcome == "open" or len(found) == 1 else ""
            spans.append(LaneSpan(sheet.s(begin), sheet.s(end), shade, what, label, is_bad))
        made.append(TimeLane(name, spans))
    drawn = lanes(made, sheet.axis, "Transactions over time", (), True)
    parts = [
        figure("Transactions by transactional id", drawn, "thin: ended by a timeout, or fenced"),
        sheet.table(
            "transactions",
            (
                ("transactional_id", "transactional id"),
                ("cluster_id", "cluster"),
                ("begin_ns", "at, s"),
                ("duration_ns", "took"),
                ("outcome", "outcome"),
                ("asked", "asked for"),
                ("ended_by", "ended by"),
                ("client_id", "client"),
                ("partitions", "partitions"),
                ("records", "records"),
                ("groups", "groups"),
                ("retries", "retries"),
                ("retry_ns", "in retries"),
                ("visible_ns", "visible after"),
                ("errors", "errors"),
            ),
            "Transactions",
            rows,
            sort=lambda row: (_WORST_FIRST.get(row["outcome"], 2), -(row["duration_ns"] or 0)),
        ),
    ]
    return section("transactions", "Transactions", parts) if rows else ""
