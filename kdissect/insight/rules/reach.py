"""Whether clients reach brokers where they are told to, and speak what is spoken there."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Set
from itertools import accumulate

from kdissect.analysis.clients import Clients
from kdissect.analysis.connections import Connections
from kdissect.analysis.endpoints import Endpoints
from kdissect.analysis.fold import MILLISECOND, SECOND, Row, address
from kdissect.analysis.tcp import Tcp
from kdissect.insight.broker_stops import FAILED, served_until_ns
from kdissect.insight.causes import explains
from kdissect.insight.finding import CERTAIN, CRITICAL, INFO, LIKELY, NOTICE, WARNING, Finding, FindingSubject
from kdissect.insight.gaps import without_gaps
from kdissect.insight.grouping import together
from kdissect.insight.rule import Facts, rule
from kdissect.insight.words import of_connections, of_numbers, quoted, span
from kdissect.protocol.traits import traits_of_api
from kdissect.wording import plural

explains("authentication-failed", "request-refused-by-close", shares=("client_id",))
explains("broker-gone", "request-refused-by-close", shares=("broker",))
explains("tls-on-plaintext-port", "request-refused-by-close", "tls-handshake-failed", "http-on-kafka")
MOST_NAMED = 3
MANY_TIMES = 10
"""So often a client is told an address before it is odd that it does not connect there."""
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
"""What clients ask the first broker that they know, before they go to the others."""


def _port(row: Row) -> str:
    return str(row["broker"]).rpartition(":")[2]


def _host(row: Row) -> str:
    return str(row["broker"]).rpartition(":")[0].strip("[]")


def _is_name(host: str) -> bool:
    """Whether it is no address, so that it cannot be seen which one it stands for."""
    return ":" not in host and not host.replace(".", "").isdigit()


@rule("listener-unreachable", CRITICAL, CERTAIN, needs=(Endpoints, Clients), attempts=3, seconds=5, gone_s=20)
def listener_unreachable(facts: Facts) -> Iterator[Finding]:
    """Brokers tell clients addresses where these do not reach them."""
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
            and _never_begins(facts, clients)
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
        )


def _may_be_gone(facts: Facts, told: Row, there: list[Row]) -> bool:
    """Whether a broker of several may have gone before the capture began. The others tell of it until its
    session is over."""
    failed = [each["failed_first_ns"] for each in there if each["failed_first_ns"] is not None]
    goes_on = bool(failed) and told["told_last_ns"] - min(failed) >= facts.limit("gone_s") * SECOND
    return facts.context.mid_stream > 0 and not goes_on


def _never_begins(facts: Facts, clients: list[str]) -> bool:
    """Whether these clients ask for nothing but what comes before the work."""
    apis = {
        each.rpartition(" ")[0]
        for row in facts.rows(Clients)
        if row["client"] in clients
        for each in row["apis"]
    }
    return apis <= BEGINNING


def _may_be(told: Row, other: Row) -> bool:
    """Whether an address that clients connect to may be the one that they were told by its name."""
    return _is_name(_host(told)) and _port(told) == _port(other) and bool(other["connections"])


def _speaks_elsewhere(rows: list[Row], told: Row, clients: list[str]) -> bool:
    """Whether these clients reach a broker that they were told of, so that they may need no other."""
    return any(
        each is not told and each["told"] and each["answered"] and set(each["clients"]) & set(clients)
        for each in rows
    )


@rule(
    "tls-on-plaintext-port",
    CRITICAL,
    CERTAIN,
    needs=(Endpoints,),
    without_kafka=True,
    connections=1,
    likely=3,
)
def tls_on_plaintext_port(facts: Facts) -> Iterator[Finding]:
    """A client speaks TLS to a port without it, or plain Kafka to one with it."""
    for row in facts.rows(Endpoints):
        confidence = CERTAIN
        if row["kafka_alerted"] >= facts.limit("connections") and not row["kafka"]:
            count = row["kafka_alerted"]
            what = "sent requests without TLS, and the broker answered with a TLS alert and closed"
        elif row["kafka_closed"] >= facts.limit("likely") and row["tls"] and not row["kafka"]:
            count = row["kafka_closed"]
            what = "sent requests without TLS to a port where others speak TLS, and the broker closed"
        elif row["tls_closed"] >= facts.limit("connections") and row["kafka"] and not row["tls"]:
            count = row["tls_closed"]
            what = "sent a TLS ClientHello to a port where others speak without TLS, and the broker closed"
        elif (
            row["tls_closed"] >= facts.limit("likely")
            and not row["answered"]
            and facts.may_be_kafka(row["broker"])
        ):
            count, confidence = row["tls_closed"], LIKELY
            what = (
                "sent a TLS ClientHello, and the broker closed each time without an answer: it may not "
                "speak TLS there"
            )
        else:
            continue
        ids = row["client_ids"]
        who = f"Clients ({', '.join(ids[:MOST_NAMED])})" if ids else "Clients"
        one = ids[0] if len(ids) == 1 else None
        yield facts.finding(
            FindingSubject(broker=row["broker"], client_id=one if row["kafka_alerted"] else None),
            f"{who} {what}: {plural(count, 'connection')}.",
            confidence=confidence,
            count=count,
            measure=count,
            unit="connections",
            threshold=facts.limit("connections"),
            first_ns=row["failed_first_ns"],
            last_ns=row["failed_last_ns"],
            connections=row["failed"],
            filter=f"broker == {quoted(row['broker'])}",
        )


def _may_be_waiting(api: str) -> bool:
    """Whether such a request may be on its way when a broker stops, so that its silence refuses nothing."""
    traits = traits_of_api(api)
    return traits.waits is not None or traits.between_brokers or api == "Heartbeat"


class _BrokerEnds:
    """When a broker closed connections, and how long it served those that had begun by then."""

    def __init__(self, rows: list[Row], refused: Set[int]) -> None:
        begun = sorted(
            (row["first_ns"], served_until_ns(row)) for row in rows if row["opening"] not in FAILED
        )
        self._firsts = [first_ns for first_ns, _ in begun]
        self._served = list(accumulate((until_ns for _, until_ns in begun), max))
        self._closed = sorted(
            row["closed_ns"]
            for row in rows
            if row["closed_by"] == "broker" and row["connection"] not in refused
        )

    def serves(self, begun_ns: int, until_ns: int) -> bool:
        """Whether a connection that began before the one time was served after the other."""
        at = bisect_left(self._firsts, begun_ns)
        return at > 0 and self._served[at - 1] > until_ns

    def stopped(self, ns: int, within_ns: int) -> bool:
        """Whether it stopped at that time: it closed another as well, and none that had begun before went on.
        Several that are closed are a stop whatever goes on: several brokers may be behind one address."""
        closed = bisect_right(self._closed, ns + within_ns) - bisect_left(self._closed, ns - within_ns)
        return closed > 1 or (closed == 1 and not self.serves(ns - within_ns, ns + within_ns))


@rule("request-refused-by-close", WARNING, CERTAIN, needs=(Tcp, Connections), young_ms=50, stops_s=1)
def request_refused_by_close(facts: Facts) -> Iterator[Finding]:
    """The broker closed the connection instead of answering. One that stops refuses nothing: it closes all
    connections at once. Where bytes of a connection are missing, its answer may be among them."""
    answered = {
        (row["client_id"], row["broker"], api)
        for row in facts.rows(Tcp)
        for api in row["answered_apis"] or ()
    }
    refused = [
        row
        for row in facts.rows(Tcp)
        if row["closed_by"] == "broker"
        and row["waiting_exchanges"]
        and row["waiting_ns"] is not None
        and 0 <= row["waiting_ns"] <= facts.limit("young_ms") * MILLISECOND
        and not any(map(_may_be_waiting, row["waiting_apis"]))
        and not any((row["client_id"], row["broker"], api) in answered for api in row["waiting_apis"])
    ]
    refused = without_gaps(facts, refused, "an answer")
    stops_ns = int(facts.limit("stops_s") * SECOND)
    numbers = {row["connection"] for row in refused}
    ends = {
        broker: _BrokerEnds(rows, numbers) for (broker,), rows in together(facts.rows(Tcp), "broker").items()
    }
    refused = [row for row in refused if not ends[row["broker"]].stopped(row["closed_ns"], stops_ns)]
    for (client_id, broker), rows in together(refused, "client_id", "broker").items():
        apis = sorted({api for row in rows for api in row["waiting_apis"]})
        evidence = [number for row in rows for number in row["waiting_exchanges"]]
        yield facts.finding(
            FindingSubject(client_id=client_id, client=address(rows[0]["client"]), broker=broker),
            f"The broker closed {plural(len(rows), 'connection')} right after a request ({', '.join(apis)}), "
            "without an answer.",
            count=len(rows),
            measure=len(rows),
            unit="connections",
            threshold=1,
            first_ns=min(row["closed_ns"] for row in rows),
            last_ns=max(row["closed_ns"] for row in rows),
            exchanges=evidence,
            connections=[row["connection"] for row in rows],
            filter=of_numbers(evidence[:8]),
        )


@rule("http-on-kafka", NOTICE, CERTAIN, needs=(Endpoints, Connections))
def http_on_kafka(facts: Facts) -> Iterator[Finding]:
    """HTTP is spoken to a broker."""
    brokers = {row["broker"] for row in facts.rows(Endpoints) if row["kafka"]}
    found: dict[str, list[Row]] = {}
    for row in facts.rows(Connections):
        if row["protocol"] == "http" and row["broker"] in brokers:
            found.setdefault(row["broker"], []).append(row)
    for broker, rows in found.items():
        yield facts.finding(
            FindingSubject(broker=broker),
            f"{plural(len(rows), 'connection')} spoke HTTP to the broker's port, which it does not "
            "understand.",
            count=len(rows),
            measure=len(rows),
            unit="connections",
            threshold=1,
            first_ns=min(row["first_ns"] for row in rows),
            last_ns=max(row["last_ns"] for row in rows),
            connections=[row["connection"] for row in rows],
            filter=f"broker == {quoted(broker)}",
        )


@rule(
    "idle-disconnect",
    INFO,
    CERTAIN,
    needs=(Tcp,),
    idle_s=600,
    share=0.05,
    equal=5,
    equal_share=0.02,
    least_s=1,
)
def idle_disconnect(facts: Facts) -> Iterator[Finding]:
    """Brokers close connections over which nothing went for long."""
    rows = facts.rows(Tcp)
    by_broker = together((row for row in rows if _closed_when_idle(facts, row)), "broker")
    for (broker,), closed in by_broker.items():
        # Only a connection that goes on shows that the broker did not stop.
        ends = _BrokerEnds([row for row in rows if row["broker"] == broker], frozenset())
        lived_on = [row for row in closed if ends.serves(row["closed_ns"], row["closed_ns"] + SECOND)]
        usual = facts.limit("idle_s") * SECOND
        found = [row for row in closed if abs(row["idle_ns"] - usual) <= facts.limit("share") * usual]
        if not found and lived_on:
            middle = sorted(row["idle_ns"] for row in lived_on)[len(lived_on) // 2]
            spread = max(facts.limit("equal_share") * middle, CHECKED_EVERY_NS)
            found = [row for row in lived_on if abs(row["idle_ns"] - middle) <= spread]
            # One that differs shows another reason to close: then the silence is no rule of the broker's.
            if len(found) < max(facts.limit("equal"), len(lived_on) / 2):
                continue
        if not found:
            continue
        idle_ns = sorted(row["idle_ns"] for row in found)[len(found) // 2]
        yield facts.finding(
            FindingSubject(broker=broker),
            f"The broker closed {plural(len(found), 'connection')} after no packet came over "
            f"{'it' if len(found) == 1 else 'each'} for {span(idle_ns)}. That is its limit for idle "
            "connections; clients open them again when they need them.",
            count=len(found),
            measure=idle_ns / SECOND,
            unit="s",
            first_ns=min(row["closed_ns"] for row in found),
            last_ns=max(row["closed_ns"] for row in found),
            connections=[row["connection"] for row in found],
            exchanges=[row["last_exchange"] for row in found],
            filter=of_connections(row["connection"] for row in found),
        )


CHECKED_EVERY_NS = 400 * MILLISECOND
"""Brokers look for idle connections every 300 ms where nothing else happens (``Processor.run``)."""


def _closed_when_idle(facts: Facts, row: Row) -> bool:
    return (
        row["closed_by"] == "broker"
        and not row["waiting_exchanges"]
        and row["idle_ns"] is not None
        and row["idle_ns"] >= facts.limit("least_s") * SECOND
        and row["last_missing"] in (None, "acks=0")
    )


@rule("bare-connects", INFO, CERTAIN, needs=(Tcp,), connections=5, shorter_s=1)
def bare_connects(facts: Facts) -> Iterator[Finding]:
    """Something opens connections to brokers and says nothing."""
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
    for (host,), found in together(bare, "host").items():
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
