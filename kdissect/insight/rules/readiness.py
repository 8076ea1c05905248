"""Rules on clients and brokers that are too old for one another, today or after the next upgrade."""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.analysis.clients import Clients
from kdissect.analysis.cluster import ClusterBrokers
from kdissect.analysis.errors import Errors
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.offers import Offers
from kdissect.analysis.replication import Replication
from kdissect.analysis.versions import Versions
from kdissect.insight.causes import explains
from kdissect.insight.finding import CERTAIN, CRITICAL, INFO, LIKELY, NOTICE, Finding, FindingSubject
from kdissect.insight.grouping import group_rows
from kdissect.insight.rule import Facts, rule
from kdissect.insight.software import newer_than
from kdissect.insight.words import named, quoted
from kdissect.wording import plural

explains("client-breaks-on-4", "version-refused", "request-refused-by-close", shares=("client_id",))
explains("client-breaks-on-4", "down-converted", "up-converted", shares=("client_id",))
explains("client-breaks-on-4", "old-client", shares=("client_id", "client"))

PRODUCE_SINCE_4 = 12
"""Brokers offer this version of Produce since 4.0 (KIP-890). They go on offering versions from 0 on, though
they do not understand them any more (KAFKA-18659)."""


def _is_on(release: str, rows: list[Row]) -> bool:
    """Whether the broker already runs the release that removed these versions."""
    return any(
        (release == "4.0" and row["api"] == "Produce" and (row["offered_max"] or 0) >= PRODUCE_SINCE_4)
        or (row["offered_min"] is not None and row["api_version"] < row["offered_min"])
        for row in rows
    )


@rule("client-breaks-on-4", CRITICAL, CERTAIN, needs=(Versions,))
def client_breaks_on_4(facts: Facts) -> Iterator[Finding]:
    """A client uses versions of requests that Kafka 4 no longer has."""
    breaking = [row for row in facts.rows(Versions) if row["verdict"] == "breaks"]
    if any(row["verdict"] == "tried" for row in facts.rows(Versions)):
        facts.cannot_judge("a client tries many versions of a request, so it may need none of them")
    for (client_id, client), rows in group_rows(breaking, "client_id", "client").items():
        by_release = {release: some for (release,), some in sorted(group_rows(rows, "removed_in").items())}
        software = next((_software(row) for row in rows if row["software"]), None)
        what = (
            "does not work with this broker"
            if any(_is_on(release, some) for release, some in by_release.items())
            else f"will not work with brokers from Kafka {min(by_release)} on"
        )
        told = [
            f"{_used(some)}, which Kafka {release} no longer understands"
            for release, some in by_release.items()
        ]
        runs = f" ({software})" if software else ""
        apis = ", ".join(sorted({row["api"] for row in rows}))
        who = f" and client_id == {quoted(client_id)}" if client_id is not None else ""
        yield facts.finding(
            FindingSubject(client=client, client_id=client_id, software=software),
            f"The client{runs} {what}: it sends {', and '.join(told)}{_instead(rows)}.",
            confidence=CERTAIN if all(row["limited_by"] == "client" for row in rows) else LIKELY,
            count=sum(row["count"] for row in rows),
            measure=len({(row["api"], row["api_version"]) for row in rows}),
            unit="versions",
            threshold=1,
            filter=f"api in {{{apis}}}{who}",
        )


def _used(rows: list[Row]) -> str:
    """The first few versions of requests in these rows."""
    used = sorted({f"{row['api']} {row['api_version']}" for row in rows})
    return ", ".join(used[:5]) + (" and others" if len(used) > 5 else "")


def _instead(rows: list[Row]) -> str:
    if all(row["limited_by"] == "client" for row in rows):
        return ". The broker offers newer versions"
    return ". It did not ask which versions the broker offers"


def _software(row: Row) -> str:
    return " ".join(each for each in (row["software"], row["software_version"]) if each)


@rule("broker-limits-clients", INFO, CERTAIN, needs=(Versions,))
def broker_limits_clients(facts: Facts) -> Iterator[Finding]:
    """Clients speak versions that Kafka 4 removed, because the broker knows no newer ones."""
    limited = [row for row in facts.rows(Versions) if row["verdict"] == "upgrade-broker-first"]
    for (broker,), rows in group_rows(limited, "broker").items():
        clients = sorted({row["client_id"] for row in rows if row["client_id"]})
        releases = named(sorted({row["removed_in"] for row in rows}))
        yield facts.finding(
            FindingSubject(broker=broker),
            f"{len(clients) or 'Some'} clients use versions of requests that Kafka {releases} removed, only "
            "because this broker offers no newer ones.",
            count=len(rows),
            measure=len(rows),
            unit="versions",
            threshold=1,
            filter=f"broker == {quoted(broker)}",
        )


@rule("old-client", NOTICE, CERTAIN, needs=(Clients,))
def old_client(facts: Facts) -> Iterator[Finding]:
    """The client software is years old."""
    named = [row for row in facts.rows(Clients) if row["software"] and row["software_version"]]
    for (software, version), rows in group_rows(named, "software", "software_version").items():
        current = newer_than(software, version)
        if current is None:
            continue
        clients = dict.fromkeys((row["client_id"], row["client"]) for row in rows)
        client_id, client = next(iter(clients))
        is_one = len(clients) == 1
        who = f"{client_id or client} runs" if is_one else f"{len(clients)} clients run"
        yield facts.finding(
            FindingSubject(
                client=client if is_one else None,
                client_id=client_id if is_one else None,
                software=f"{software} {version}",
            ),
            f"{who} {software} {version}, which is older than {current.text} of {current.since}.",
            count=len(clients),
            measure=len(clients),
            unit="clients",
            first_ns=min(row["first_ns"] for row in rows),
            last_ns=max(row["last_ns"] for row in rows),
            filter=" or ".join(f"client_id == {quoted(each)}" for each, _ in list(clients)[:4] if each),
        )


@rule("api-versions-fallback", INFO, CERTAIN, needs=(Errors, Versions))
def api_versions_fallback(facts: Facts) -> Iterator[Finding]:
    """Connecting costs one more round trip, because the broker does not know the version of the client's
    first request."""
    asked = {
        who: {row["api_version"] for row in rows}
        for who, rows in group_rows(
            (row for row in facts.rows(Versions) if row["api"] == "ApiVersions"),
            "client_id",
            "client",
            "broker",
        ).items()
    }
    refused = [
        row
        for row in facts.rows(Errors)
        if (row["api"], row["error"]) == ("ApiVersions", "UNSUPPORTED_VERSION")
        and len(asked.get((row["client_id"], row["client"], row["broker"]), ())) > 1
    ]
    for (client_id, client), rows in group_rows(refused, "client_id", "client").items():
        versions = sorted(set().union(*(asked[client_id, client, row["broker"]] for row in rows)))
        count = sum(row["count"] for row in rows)
        yield facts.finding(
            FindingSubject(client=client, client_id=client_id),
            f"{client_id or 'A client'} first sends a version of ApiVersions that the broker does not know "
            f"({versions[-1]}), and then an older one. That took one more round trip on "
            f"{plural(count, 'connection')}.",
            count=count,
            measure=count,
            unit="connections",
            first_ns=min(row["first_ns"] for row in rows),
            last_ns=max(row["last_ns"] for row in rows),
            exchanges=[row["first_exchange"] for row in rows],
            filter="api == ApiVersions and error == UNSUPPORTED_VERSION",
        )


def _nodes(facts: Facts) -> dict[str, tuple[str, int]]:
    """The cluster and node id of each broker address that a single cluster claims."""
    found: dict[str, set[tuple[str, int]]] = {}
    for row in facts.rows(ClusterBrokers):
        if row["host"] and row["port"] and row["node_id"] is not None and row["node_id"] >= 0:
            host = f"[{row['host']}]" if ":" in row["host"] else row["host"]
            found.setdefault(f"{host}:{row['port']}", set()).add((row["cluster_id"] or "", row["node_id"]))
    return {address: next(iter(nodes)) for address, nodes in found.items() if len(nodes) == 1}


OF_BROKERS = ("Produce", "Fetch", "Metadata")
"""APIs that every broker offers, and that a mere controller does not."""


@rule("mixed-broker-versions", NOTICE, CERTAIN, needs=(Offers, ClusterBrokers), seconds=60)
def mixed_broker_versions(facts: Facts) -> Iterator[Finding]:
    """Brokers of one cluster offer different versions of requests."""
    nodes = _nodes(facts)
    clusters: dict[str, dict[int, list[Row]]] = {}
    for row in facts.rows(Offers):
        if row["broker"] in nodes and all(api in row["offered"] for api in OF_BROKERS):
            cluster, node = nodes[row["broker"]]
            clusters.setdefault(cluster, {}).setdefault(node, []).append(row)
    for cluster, of_nodes in clusters.items():
        last = {node: max(rows, key=lambda row: row["last_ns"]) for node, rows in of_nodes.items()}
        if len(last) < 2:
            continue
        apis = [
            api
            for api in sorted(set.intersection(*(set(row["offered"]) for row in last.values())))
            if len({tuple(row["offered"][api]) for row in last.values()}) > 1
        ]
        if not apis:
            continue
        since_ns = max(_since(row) for row in last.values())
        until_ns = facts.context.end_ns(cluster) or since_ns
        if until_ns - since_ns < facts.limit("seconds") * SECOND:
            facts.cannot_judge("needs brokers that differ for 60 s")
            continue
        api = apis[0]
        told = [f"broker {node} {row['offered'][api][1]}" for node, row in sorted(last.items())]
        yield facts.finding(
            FindingSubject(),
            f"The brokers of the cluster do not offer the same versions of {plural(len(apis), 'API')}. The "
            f"highest version of {api}: {', '.join(told[:6])}.",
            count=len(apis),
            measure=(until_ns - since_ns) / SECOND,
            unit="s",
            threshold=facts.limit("seconds"),
            first_ns=since_ns,
            last_ns=until_ns,
            exchanges=[number for row in last.values() for number in row["exchanges"]],
            filter="api == ApiVersions",
        )


def _since(row: Row) -> int:
    return int(row["first_ns"])


@rule("ibp-too-old", NOTICE, CERTAIN, needs=(Replication, Offers, ClusterBrokers))
def ibp_too_old(facts: Facts) -> Iterator[Finding]:
    """Brokers use an older version among themselves than their software supports."""
    nodes = _nodes(facts)
    can = {
        nodes[row["broker"]][1]: (row["offered"]["Fetch"][1], row)
        for row in sorted(facts.rows(Offers), key=lambda row: row["last_ns"])
        if row["broker"] in nodes and "Fetch" in row["offered"]
    }
    behind = []
    for row in facts.rows(Replication):
        if row["broker"] not in nodes or row["fetch_version"] is None or row["fetch_version"] < 0:
            continue
        asks, answers = can.get(row["node_id"]), can.get(nodes[row["broker"]][1])
        if asks is None or answers is None:
            facts.cannot_judge("needs what both brokers offer (ApiVersions)")
        elif row["fetch_version"] < min(asks[0], answers[0]):
            behind.append((row, min(asks[0], answers[0])))
    if not behind:
        return
    row, most = behind[0]
    between = sorted(
        {each["node_id"] for each, _ in behind} | {nodes[each["broker"]][1] for each, _ in behind}
    )
    yield facts.finding(
        FindingSubject(),
        f"The brokers {named(between)} copy from each other with version {row['fetch_version']} of Fetch, "
        f"though "
        f"the software of both knows version {most}.",
        count=len(behind),
        measure=row["fetch_version"],
        unit="version",
        threshold=most,
        first_ns=min(each["first_ns"] for each, _ in behind),
        last_ns=max(each["last_ns"] for each, _ in behind),
        exchanges=[number for each, _ in behind for number in each["exchanges"]],
        filter=f"api == Fetch and api_version == {row['fetch_version']}",
    )
