"""Clients, the cluster, security and the graph of a report, and the things that were not judged."""

from __future__ import annotations

import shlex
from collections import Counter

from kdissect.analysis.fold import Row
from kdissect.analysis.versions import VERDICTS
from kdissect.present.form import plural, size
from kdissect.present.graphs import Shared, cluster_of, shared_names
from kdissect.present.html.page import section, table, text
from kdissect.present.html.sheet import Sheet
from kdissect.present.html.svg import FlowBand, figure, flows
from kdissect.present.names_of_clusters import with_ambiguous_clusters

_MOST_EDGES = 50


def clients(sheet: Sheet) -> str:
    """Names, software, versions, readiness for Kafka 4, errors and connections of clients."""
    readiness = Counter(row["verdict"] for row in sheet.rows("versions"))
    breaking = {row["client_id"] for row in sheet.rows("versions") if row["verdict"] == VERDICTS[0]}
    if not readiness:
        told = ""
    elif breaking:
        told = f"{plural(len(breaking), 'client')} would not work with Kafka 4."
    else:
        told = "No client was seen that Kafka 4 would refuse."
    parts = [
        sheet.table(
            "clients",
            (
                ("client_id", "client id"),
                ("client", "address"),
                ("software", "software"),
                ("software_version", "version"),
                ("connections", "connections"),
                ("exchanges", "exchanges"),
                ("request_bytes", "sent"),
                ("response_bytes", "received"),
                ("apis", "APIs"),
            ),
            "Clients",
            sort=lambda row: -(row["exchanges"] or 0),
        ),
        sheet.table(
            "versions",
            (
                ("client_id", "client id"),
                ("software", "software"),
                ("api", "API"),
                ("api_version", "version"),
                ("offered_min", "broker from"),
                ("offered_max", "broker to"),
                ("limited_by", "limited by"),
                ("removed_in", "removed in"),
                ("verdict", "verdict"),
                ("count", "count"),
            ),
            "Versions that newer brokers refuse",
            [row for row in sheet.rows("versions") if row["verdict"] != VERDICTS[-1]],
        ),
        sheet.table(
            "errors",
            (
                ("error", "error"),
                ("error_class", "gravity"),
                ("api", "API"),
                ("client_id", "client"),
                ("principal", "principal"),
                ("group", "group"),
                ("topic", "topic"),
                ("count", "count"),
                ("first_ns", "first, s"),
                ("last_ns", "last, s"),
            ),
            "Errors",
        ),
        sheet.table(
            "producers",
            (
                ("client_id", "producer"),
                ("topic", "topic"),
                ("cluster_id", "cluster"),
                ("partition", "partition"),
                ("records", "records"),
                ("records_per_batch", "records a batch"),
                ("batch_bytes_max", "largest batch"),
                ("acks", "acks"),
                ("codecs", "codecs"),
                ("linger_p50_ns", "linger p50"),
                ("resent", "sent again"),
                ("resent_appended", "doubled"),
                ("gaps", "gaps"),
                ("error_codes", "errors"),
            ),
            "Producers",
            with_ambiguous_clusters(sheet.rows("producers"), "topic"),
            sort=lambda row: -(row["records"] or 0),
        ),
        sheet.table(
            "connections",
            (
                ("connection", "connection"),
                ("client", "client"),
                ("broker", "broker"),
                ("client_id", "client id"),
                ("requests", "requests"),
                ("request_bytes", "sent"),
                ("response_bytes", "received"),
                ("p50_ns", "p50"),
                ("max_ns", "longest"),
                ("in_flight_max", "most in flight"),
                ("retransmitted", "sent again"),
                ("gap_bytes", "missing"),
                ("end", "end"),
            ),
            "Connections",
            sort=lambda row: -((row["request_bytes"] or 0) + (row["response_bytes"] or 0)),
        ),
    ]
    return section("clients", "Clients and upgrade readiness", parts, text(told))


def cluster(sheet: Sheet) -> str:
    """Brokers, leaders, replicas, changes, the quorum."""
    ends = [row for row in sheet.rows("cluster_partitions") if row["to_ns"] is None]
    parts = [
        sheet.table(
            "cluster_brokers",
            (
                ("node_id", "node"),
                ("host", "host"),
                ("port", "port"),
                ("rack", "rack"),
                ("listener", "listener"),
                ("controller", "controller"),
                ("fenced", "fenced"),
                ("software", "software"),
                ("from_ns", "since, s"),
                ("to_ns", "until, s"),
            ),
            "Brokers",
        ),
        sheet.table(
            "cluster_changes",
            (
                ("ns", "at, s"),
                ("what", "what"),
                ("subject", "of what"),
                ("before", "before"),
                ("after", "after"),
                ("by", "by"),
                ("exchange", "exchange"),
            ),
            "What changed",
        ),
        sheet.table(
            "cluster_topics",
            (
                ("topic", "topic"),
                ("partitions", "partitions"),
                ("replication", "replicas"),
                ("internal", "internal"),
            ),
            "Topics at the end",
            [row for row in sheet.rows("cluster_topics") if row["to_ns"] is None],
        ),
        sheet.table(
            "cluster_partitions",
            (
                ("topic", "topic"),
                ("partition", "partition"),
                ("leader", "leader"),
                ("leader_epoch", "epoch"),
                ("replicas", "replicas"),
                ("isr", "in sync"),
                ("offline", "offline"),
                ("preferred", "preferred leader"),
            ),
            "Leaders and replicas at the end",
            ends,
        ),
        sheet.table(
            "quorum",
            (
                ("node", "node"),
                ("role", "role"),
                ("epoch", "epoch"),
                ("elections", "elections"),
                ("fetch_gap_max_ns", "longest gap between fetches"),
                ("lag_offsets", "lag"),
                ("heartbeat_max_ns", "longest heartbeat"),
                ("heartbeat_late", "late heartbeats"),
            ),
            "Quorum",
        ),
        sheet.table(
            "replication",
            (
                ("node_id", "follower"),
                ("broker", "fetches from"),
                ("fetches", "fetches"),
                ("gap_max_ns", "longest gap"),
                ("lag_max", "highest lag"),
                ("held_writes", "writes that waited"),
                ("held_ns", "for"),
            ),
            "Replication",
        ),
    ]
    return section("cluster", "Cluster and changes", parts)


def security(sheet: Sheet) -> str:
    """Data that crosses the wire in clear."""
    return section(
        "security",
        "Security",
        [
            sheet.table(
                "exposure",
                (
                    ("connection", "connection"),
                    ("client", "client"),
                    ("broker", "broker"),
                    ("client_id", "client id"),
                    ("principal", "principal"),
                    ("mechanism", "login"),
                    ("outcome", "outcome"),
                    ("tls", "TLS"),
                    ("credentials", "credentials"),
                    ("data", "data"),
                    ("record_bytes", "bytes of records"),
                    ("certificate_ends_ns", "certificate ends, s"),
                    ("alerts", "alerts"),
                ),
                "Encryption",
                sort=lambda row: (
                    row["credentials"] != "clear",
                    row["data"] != "clear",
                    -(row["record_bytes"] or 0),
                ),
            )
        ],
    )


_COLUMNS = {"client": 0, "topic": 1, "group": 2, "broker": 2}
_HEADINGS = ("clients", "topics", "groups and brokers")


def graph(sheet: Sheet) -> str:
    """Flows between clients, brokers, topics and groups."""
    rows = sorted(sheet.rows("graph"), key=lambda row: -(row["bytes"] or 0))
    shared = shared_names(rows)
    kinds: dict[str, int] = {}
    found = []
    for row in rows[:_MOST_EDGES]:
        if row["from_kind"] not in _COLUMNS or row["to_kind"] not in _COLUMNS:
            continue
        source, target = (_flow_end(row, end, shared) for end in ("from", "to"))
        relation = row["relation"] or ""
        shade = kinds.setdefault(relation, len(kinds))
        amount = size(row["bytes"]) if row["bytes"] else f"{row['exchanges'] or 0:,} exchanges"
        what = f"{source[1]} {relation} {target[1]}: {amount}"
        if source[0] == target[0]:
            continue
        found.append(FlowBand(source, target, float(row["bytes"] or 0), shade, what))
    about = f"{plural(len(found), 'flow')} between clients, brokers, topics and groups, as in the table below"
    lead = "thicker lines mean more bytes"
    if len(rows) > _MOST_EDGES:
        lead += f"; the largest {_MOST_EDGES} of {len(rows):,}"
    parts = [
        figure("Who exchanges what with whom", flows(found, _HEADINGS, about), lead, [*kinds]),
        "<details><summary>The same as a table</summary>"
        + sheet.table(
            "graph",
            (
                ("from", "from"),
                ("relation", "does"),
                ("to", "to"),
                ("cluster_id", "cluster"),
                ("client_id", "client id"),
                ("exchanges", "exchanges"),
                ("records", "records"),
                ("bytes", "bytes"),
                ("encrypted", "encrypted"),
            ),
            "Flows",
            [
                {**row, "cluster_id": cluster_of(row, "from", shared) or cluster_of(row, "to", shared)}
                for row in rows
            ],
        )
        + "</details>",
    ]
    return section("graph", "Graph", parts) if found else ""


def _flow_end(row: Row, end: str, shared: Shared) -> tuple[int, str]:
    """The column and the name of what a flow comes from or goes to."""
    kind, name, cluster = row[f"{end}_kind"], row[end] or "?", cluster_of(row, end, shared)
    name = f"broker {name}" if kind == "broker" else name
    return _COLUMNS[kind], name if cluster is None else f"{name} of {cluster}"


def rest(sheet: Sheet) -> str:
    """What was not judged, what was left out, and how to make this report again."""
    report = sheet.report
    why: dict[str, list[str]] = {}
    for each in report.not_judged:
        why.setdefault(each.why, []).append(each.rule)
    rows = [(reason, (f"{len(rules):,}", len(rules)), ", ".join(rules)) for reason, rules in why.items()]
    rows.sort(key=lambda row: -row[1][1])
    again = shlex.join(("kdissect", "report", *sheet.made.arguments, "-o", "report.html"))
    left_out = [(name, (f"{count:,}", count)) for name, count in report.left_out.items()]
    parts = [
        table(("why", "rules", "which"), rows, "Rules that could not judge", (1,)),
        sheet.table(
            "damage",
            (("kind", "fault"), ("layer", "where"), ("meaning", "what that is"), ("count", "count")),
            "What is wrong with the captured bytes",
        ),
        table(("table", "left out"), left_out, "Counts that a limit left out", (1,)),
        f'<h3>Make it again</h3><p><code class="command">{text(again, None)}</code></p>'
        '<p class="note">The tables are inside of this page: '
        "<code>kdissect report THIS.html -T ndjson</code> prints them, "
        "<code>kdissect diff BEFORE AFTER</code> compares two reports.</p>",
    ]
    return section("rest", "What was not judged, and faults", parts)
