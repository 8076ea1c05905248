"""Rules on whether clients reach brokers at the addresses that they are told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kdissect.analysis.clients import Clients
from kdissect.analysis.endpoints import Endpoints
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.repeats import Repeats
from kdissect.analysis.speakers import address
from kdissect.analysis.tcp import Tcp
from kdissect.insight.finding import CERTAIN, CRITICAL, INFO, LIKELY, WARNING, Finding, FindingSubject
from kdissect.insight.grouping import group_rows
from kdissect.insight.rule import Facts, rule
from kdissect.insight.words import named, quoted
from kdissect.wording import plural

MOST_NAMED = 3
MANY_TIMES = 10
"""How often a client must be told an address before it is odd that it does not connect there."""


BEGINNING = frozenset(
    (
        *(
            "ApiVersions",
            "Metadata",
            "SaslHandshake",
            "SaslAuthenticate",
            "FindCoordinator",
            "DescribeCluster",
        ),
        *("InitProducerId", "GetTelemetrySubscriptions", "PushTelemetry"),
    )
)
"""APIs that clients use with the first broker that they know, before they connect to the others."""


def _port(row: Row) -> str:
    return str(row["broker"]).rpartition(":")[2]


def _host(row: Row) -> str:
    return str(row["broker"]).rpartition(":")[0].strip("[]")


def _is_name(host: str) -> bool:
    """Whether a host is a name. Then the capture does not show its address."""
    return ":" not in host and not host.replace(".", "").isdigit()


@rule(
    "listener-unreachable",
    CRITICAL,
    CERTAIN,
    needs=(Endpoints, Clients, Repeats),
    attempts=3,
    seconds=5,
    gone_s=20,
)
def listener_unreachable(facts: Facts) -> Iterator[Finding]:
    """Brokers tell clients addresses at which the clients do not reach them."""
    rows = facts.rows(Endpoints)
    for told in rows:
        if not told["told"]:
            continue
        there = [each for each in rows if each is told or _may_be(told, each)]
        failed = sum(each["refused"] + each["silent"] for each in there)
        if any(each["answered"] for each in there):
            continue
        clients = sorted({each.rpartition("@")[2] for each in told["told_to"]})
        tried = sorted({client for each in there for client in each["clients"]} & set(clients))
        told_ns = told["told_last_ns"] - told["told_first_ns"]
        goes_elsewhere = _speaks_elsewhere(rows, told, clients)
        may_be_gone = goes_elsewhere and _may_be_gone(facts, told, there)
        if failed >= facts.limit("attempts") and tried and not may_be_gone:
            outcome = f"{plural(failed, 'attempt')} to connect there failed"
            confidence = CERTAIN
        elif (
            not any(each["connections"] for each in there)
            and told["told"] >= MANY_TIMES
            and facts.limit("seconds") * SECOND <= told_ns <= told["told"] * 2 * SECOND
            and not goes_elsewhere
            and _never_begins(facts, told["told_to"])
        ):
            outcome = (
                f"the capture shows no connection to it, although responses named it {told['told']:,} times"
            )
            confidence = LIKELY
        else:
            continue
        client_ids = sorted({each.rpartition("@")[0] for each in told["told_to"]} - {""})
        told_by = told["told_by"][:MOST_NAMED]
        failures = [each for each in there if each["failed_first_ns"] is not None]
        yield facts.finding(
            FindingSubject(
                broker=told["broker"],
                client_id=client_ids[0] if len(client_ids) == 1 else None,
                client=clients[0] if len(clients) == 1 else None,
            ),
            f"The broker at {', '.join(told_by)} tells clients to connect to {told['broker']}; {outcome}.",
            confidence=confidence,
            count=max(failed, 1),
            measure=failed,
            unit="connections",
            threshold=facts.limit("attempts"),
            first_ns=told["told_first_ns"],
            last_ns=max([told["told_last_ns"], *(each["failed_last_ns"] for each in failures)]),
            exchanges=told["exchanges"],
            connections=[number for each in failures for number in each["failed"]],
            filter=f"api == Metadata and broker in {{{', '.join(map(quoted, told_by))}}}",
            fix=facts.fix({"HOST:PORT": told["broker"]}),
        )
    yield from _unresolved(facts, rows)


def _unresolved(facts: Facts, rows: list[Row]) -> Iterator[Finding]:
    """Clients that are told names, and send requests only to the addresses that they began with. These have
    the same ports as the names, so they may be the same brokers. The finding guesses that the clients cannot
    look up the names."""
    stuck: dict[tuple[str, ...], list[tuple[str | None, str]]] = {}
    in_vain = _in_vain(facts, rows)
    for client_id, host in in_vain:
        told = [row for row in rows if row["told"] and f"{client_id or ''}@{host}" in row["told_to"]]
        if told and _are_all_seen(rows, told, host) and not _speaks_elsewhere(rows, told[0], [host]):
            stuck.setdefault(tuple(row["broker"] for row in told), []).append((client_id, host))
    for names, keys in stuck.items():
        told = [row for row in rows if row["broker"] in names]
        client_ids = sorted({client_id or "" for client_id, _ in keys} - {""})
        clients = sorted({host for _, host in keys})
        told_by = sorted({each for row in told for each in row["told_by"]})[:MOST_NAMED]
        count = sum(in_vain[key]["count"] for key in keys)
        which = "this name" if len(names) == 1 else "these names"
        asked_at = ", ".join(map(quoted, told_by))
        yield facts.finding(
            FindingSubject(
                broker=names[0] if len(names) == 1 else None,
                client_id=client_ids[0] if len(client_ids) == 1 else None,
                client=clients[0] if len(clients) == 1 else None,
            ),
            f"The broker at {', '.join(told_by)} tells clients to connect to {named(names)}. "
            f"{named(client_ids) or clients[0]} asked where to connect "
            f"{plural(count, 'time')} and did nothing else: perhaps {which} cannot be looked up there.",
            severity=WARNING,
            confidence=LIKELY,
            client_ids=client_ids,
            count=count,
            measure=count,
            unit="requests",
            threshold=MANY_TIMES,
            first_ns=min(in_vain[key]["first_ns"] for key in keys),
            last_ns=max(in_vain[key]["last_ns"] for key in keys),
            exchanges=[number for row in told for number in row["exchanges"]],
            filter=f"api in {{Metadata, FindCoordinator}} and broker in {{{asked_at}}}",
            fix=facts.fix({"HOST:PORT": names[0] if len(names) == 1 else None}),
        )


def _are_all_seen(rows: list[Row], told: list[Row], host: str) -> bool:
    """Whether a client reached as many addresses as it was told names, with the same ports. Otherwise it may
    use a broker that the capture does not show.

    :param told: the addresses that it was told.
    """
    reached = Counter(_port(row) for row in rows if row["answered"] and host in row["clients"])
    wanted = Counter(map(_port, told))
    return all(_is_name(_host(row)) and not row["answered"] for row in told) and wanted <= reached


def _in_vain(facts: Facts, rows: list[Row]) -> dict[tuple[str | None, str], Row]:
    """Clients, by client id and host, that ask again and again where brokers are, and do nothing else: how
    often they asked, and when.

    If a client looks up the coordinator of a group again and again, it cannot reach that coordinator. A
    client that only produces asks for nothing but metadata. That counts only if no client works with these
    brokers.
    """
    apis: dict[tuple[str | None, str], set[str]] = {}
    errors: dict[tuple[str | None, str], int] = {}
    for row in facts.rows(Clients):
        names = {each.rpartition(" ")[0] for each in row["apis"]}
        apis.setdefault((row["client_id"], row["client"]), set()).update(names)
    asked: dict[tuple[str | None, str], dict[str, list[Row]]] = {}
    for row in facts.rows(Repeats):
        key = row["client_id"], address(row["client"])
        if row["error"] is not None:
            errors[key] = errors.get(key, 0) + row["count"]
        elif row["api"] in ("FindCoordinator", "Metadata"):
            asked.setdefault(key, {}).setdefault(row["api"], []).append(row)
    told_to = {each for told in rows for each in told["told_to"]}
    working = any(
        f"{client_id or ''}@{host}" in told_to and not apis[client_id, host] <= BEGINNING
        for client_id, host in apis
    )
    found = {}
    for key, by_api in asked.items():
        repeated = by_api.get("FindCoordinator")
        if repeated is None and "InitProducerId" in apis.get(key, ()) and not working:
            repeated = by_api.get("Metadata")
        if repeated is None or not apis.get(key, set()) <= BEGINNING:
            continue
        count = sum(row["count"] for row in repeated)
        first_ns, last_ns = min(row["first_ns"] for row in repeated), max(row["last_ns"] for row in repeated)
        lasts = facts.limit("seconds") * SECOND <= last_ns - first_ns <= count * 2 * SECOND
        if count >= MANY_TIMES and lasts and errors.get(key, 0) * 5 <= count:
            found[key] = {"count": count, "first_ns": first_ns, "last_ns": last_ns}
    return found


def _may_be_gone(facts: Facts, told: Row, there: list[Row]) -> bool:
    """Whether one of several brokers may have gone before the capture began. The others tell its address
    until its session is over."""
    failed = [each["failed_first_ns"] for each in there if each["failed_first_ns"] is not None]
    goes_on = bool(failed) and told["told_last_ns"] - min(failed) >= facts.limit("gone_s") * SECOND
    return facts.context.mid_stream > 0 and not goes_on


def _never_begins(facts: Facts, clients: list[str]) -> bool:
    """Whether these clients, each a client id and a host, send only requests that come before the work."""
    apis = {
        each.rpartition(" ")[0]
        for row in facts.rows(Clients)
        if f"{row['client_id'] or ''}@{row['client']}" in clients
        for each in row["apis"]
    }
    return apis <= BEGINNING


def _may_be(told: Row, other: Row) -> bool:
    """Whether an address that clients connect to may be the broker that they were told by name."""
    return _is_name(_host(told)) and _port(told) == _port(other) and bool(other["connections"])


def _speaks_elsewhere(rows: list[Row], told: Row, clients: list[str]) -> bool:
    """Whether these clients reach another broker that they were told of, so that they may need no further
    one."""
    return any(
        each is not told and each["told"] and each["answered"] and set(each["clients"]) & set(clients)
        for each in rows
    )


USUAL = "9092"
"""The port of brokers in examples. Other services use the ports near it, such as 9090 and 9093."""


@rule("nothing-listens", WARNING, LIKELY, needs=(Endpoints,), without_kafka=True, attempts=5, seconds=5)
def nothing_listens(facts: Facts) -> Iterator[Finding]:
    """Clients try again and again to connect to an address that does not answer, and that no broker told
    them."""
    rows = facts.rows(Endpoints)
    known = {_port(row) for row in rows if row["told"] or row["kafka"]} or {USUAL}
    for row in rows:
        failed = row["refused"] + row["silent"]
        if row["told"] or row["answered"] or failed < facts.limit("attempts") or _port(row) not in known:
            continue
        if row["connections"] != failed:
            continue  # some were accepted, or their fate is not known
        if any(told["told"] and _may_be(told, row) for told in rows):
            continue  # addresses that brokers tell have other findings
        first_ns, last_ns = row["failed_first_ns"], row["failed_last_ns"]
        if last_ns - first_ns < facts.limit("seconds") * SECOND:
            continue
        clients = sorted(row["clients"])
        how = "refused" if not row["silent"] else "not answered" if not row["refused"] else "in vain"
        yield facts.finding(
            FindingSubject(broker=row["broker"], client=clients[0] if len(clients) == 1 else None),
            f"{plural(failed, 'attempt')} of {named(clients)} to connect to {row['broker']} were {how} "
            f"within {(last_ns - first_ns) / SECOND:.0f} s, and nothing ever answered there.",
            count=failed,
            measure=failed,
            unit="connections",
            threshold=facts.limit("attempts"),
            first_ns=first_ns,
            last_ns=last_ns,
            connections=row["failed"],
            filter=f"broker == {quoted(row['broker'])}",
        )


@rule("bare-connects", INFO, CERTAIN, needs=(Tcp,), connections=5, shorter_s=1)
def bare_connects(facts: Facts) -> Iterator[Finding]:
    """Clients open connections to brokers and send nothing."""
    rows = facts.rows(Tcp)
    brokers = {row["broker"] for row in rows if row["exchanges"]}
    bare = [
        {**row, "host": address(row["client"])}
        for row in rows
        if row["broker"] in brokers
        and row["opening"] == "answered"
        and not (row["bytes_to_broker"] or row["bytes_from_broker"])
        and row["end"] in ("fin", "rst")
        and row["last_ns"] - row["first_ns"] < facts.limit("shorter_s") * SECOND
    ]
    for (host,), found in group_rows(bare, "host").items():
        if len(found) < facts.limit("connections"):
            continue
        yield facts.finding(
            FindingSubject(client=host),
            f"{host} opened {len(found)} connections to "
            f"{plural(len({row['broker'] for row in found}), 'broker')} and closed each within a second "
            "without sending anything: a check whether the port is open, or a scan.",
            count=len(found),
            measure=len(found),
            unit="connections",
            threshold=facts.limit("connections"),
            first_ns=min(row["first_ns"] for row in found),
            last_ns=max(row["last_ns"] for row in found),
            connections=[row["connection"] for row in found],
            filter=f"client == {quoted(host)}",
        )
