"""Rules on whether clients use the protocol of a port."""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.analysis.connections import Connections
from kdissect.analysis.endpoints import Endpoints
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.pace import is_own_id
from kdissect.analysis.speakers import address
from kdissect.analysis.tcp import Tcp
from kdissect.insight.causes import explains, may_explain
from kdissect.insight.finding import CERTAIN, CRITICAL, LIKELY, NOTICE, Finding, FindingSubject, key_of
from kdissect.insight.grouping import group_rows
from kdissect.insight.rule import Facts, rule
from kdissect.insight.words import quoted
from kdissect.wording import plural

MOST_NAMED = 3
_USE_TLS = (
    "The listener at this port speaks TLS: set security.protocol of the client to SSL, or to SASL_SSL if "
    "clients log in there. If the client is meant to work without TLS, give it the port of a listener that "
    "has PLAINTEXT or SASL_PLAINTEXT."
)
_USE_NO_TLS = (
    "The listener at this port does not speak TLS: give the client the port of a listener that has SSL or "
    "SASL_SSL. If there is none and the network may see the traffic, set security.protocol of the client to "
    "PLAINTEXT, or to SASL_PLAINTEXT if clients log in there."
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
    """A client uses TLS at a port without it, or plain Kafka at a port with it."""
    for row in facts.rows(Endpoints):
        confidence, fix = CERTAIN, _USE_TLS
        if row["kafka_alerted"] >= facts.limit("connections") and not row["kafka"]:
            count = row["kafka_alerted"]
            what = (
                "sent requests without TLS to a port with TLS, and the broker answered with a TLS alert and "
                "closed"
            )
        elif row["kafka_closed"] >= facts.limit("likely") and row["tls"] and not row["kafka"]:
            count = row["kafka_closed"]
            what = "sent requests without TLS to a port where others speak TLS, and the broker closed"
        elif row["tls_closed"] >= facts.limit("connections") and row["kafka"] and not row["tls"]:
            count, fix = row["tls_closed"], _USE_NO_TLS
            what = "sent a TLS ClientHello to a port where others speak without TLS, and the broker closed"
        elif (
            row["tls_closed"] >= facts.limit("likely")
            and not row["answered"]
            and facts.may_be_kafka(row["broker"])
        ):
            count, confidence, fix = row["tls_closed"], LIKELY, facts.fix({})
            what = (
                "sent a TLS ClientHello, and the broker closed each time without an answer: it may not "
                "speak TLS there"
            )
        else:
            continue
        ids = row["client_ids"] if fix is _USE_TLS else ()  # TLS hides who it is
        who = f"Clients ({', '.join(ids[:MOST_NAMED])})" if ids else "Clients"
        yield facts.finding(
            _of_port(row),
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
            fix=fix,
        )


def _of_port(row: Row) -> FindingSubject:
    """The subject of a finding on a port at which some use TLS and others do not."""
    ids: list[str] = row["client_ids"] if row["kafka_alerted"] else []
    return FindingSubject(broker=row["broker"], client_id=ids[0] if len(ids) == 1 else None)


def port_with_tls(facts: Facts, broker: str) -> str | None:
    """The key of the finding that clients send requests without TLS to this port, which has TLS."""
    for row in facts.rows(Endpoints):
        if row["broker"] == broker and not row["kafka"] and (row["kafka_alerted"] or row["tls"]):
            return key_of("tls-on-plaintext-port", _of_port(row))
    return None


@rule("controller-port", CRITICAL, LIKELY, needs=(Endpoints, Tcp), connections=3, seconds=5)
def controller_port(facts: Facts) -> Iterator[Finding]:
    """A client is sent to a port of controllers, which does not answer the requests of clients."""
    controllers = {row["broker"] for row in facts.rows(Endpoints) if row["is_controllers"]}
    here = [
        {**row, "host": address(row["client"])} for row in facts.rows(Tcp) if row["broker"] in controllers
    ]
    # An admin client that uses controllers may keep a connection to each of them.
    served = {(row["client_id"], row["host"]) for row in here if {*row["answered_apis"]} - {"ApiVersions"}}
    for (client_id, host, broker), rows in group_rows(here, "client_id", "host", "broker").items():
        if is_own_id(client_id) or (client_id, host) in served or not all(map(_got_no_further, rows)):
            continue
        asked = [row for row in rows if row["answered_apis"]]
        lived_ns = max(
            (
                (facts.context.last_ns or 0 if row["end"] == "open" else row["last_ns"]) - row["first_ns"]
                for row in asked
            ),
            default=0,
        )
        if len(asked) < facts.limit("connections") and lived_ns < facts.limit("seconds") * SECOND:
            continue
        evidence = [row["last_exchange"] for row in asked]
        yield facts.finding(
            FindingSubject(client_id=client_id, client=host, broker=broker),
            f"The client opened {plural(len(rows), 'connection')} to a port of controllers, where there is "
            "no Metadata. So it got no further than the question which versions there are (ApiVersions).",
            count=len(rows),
            measure=len(rows),
            unit="connections",
            threshold=facts.limit("connections"),
            first_ns=min(row["first_ns"] for row in rows),
            last_ns=max(row["last_ns"] for row in rows),
            exchanges=evidence,
            connections=[row["connection"] for row in rows],
            filter=f"broker == {quoted(broker)} and client == {quoted(host)}",
        )


def _got_no_further(row: Row) -> bool:
    """Whether a connection, seen from its beginning, shows that its client got no useful answer: it asked for
    the versions, and perhaps sent its next request."""
    asked = {*row["answered_apis"], *row["waiting_apis"], row["last_api"] or "ApiVersions"}
    return (
        row["opening"] is not None
        and asked <= {"ApiVersions", "Metadata"}
        and "Metadata" not in row["answered_apis"]
    )


@rule("http-on-kafka", NOTICE, CERTAIN, needs=(Endpoints, Connections))
def http_on_kafka(facts: Facts) -> Iterator[Finding]:
    """A client sends HTTP to a broker."""
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


explains("controller-port", "request-refused-by-close", "connection-churn", shares=("client_id", "client"))
explains("tls-on-plaintext-port", "tls-handshake-failed", "http-on-kafka")
may_explain("tls-on-plaintext-port", "request-refused-by-close", within_s=60)
