"""Rules on connections that brokers close, instead of an answer or because they were idle."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Set
from itertools import accumulate
from typing import NamedTuple

from kdissect.analysis.connections import Connections
from kdissect.analysis.endpoints import Endpoints
from kdissect.analysis.fold import MILLISECOND, SECOND, Row
from kdissect.analysis.speakers import address
from kdissect.analysis.tcp import Tcp
from kdissect.analysis.versions import Versions
from kdissect.insight.broker_stops import FAILED, served_until_ns
from kdissect.insight.causes import explains
from kdissect.insight.finding import CERTAIN, INFO, LIKELY, WARNING, Finding, FindingSubject
from kdissect.insight.gaps import without_gaps
from kdissect.insight.grouping import group_rows
from kdissect.insight.rule import Facts, rule
from kdissect.insight.rules.reach.ports import port_with_tls
from kdissect.insight.words import of_connections, of_numbers, span
from kdissect.protocol.traits import traits_of_api
from kdissect.wording import plural

SMALL = 64 * 1024
"""A size of a request that no broker is configured to refuse."""


TWICE = 2
LOGIN = frozenset(("SaslHandshake", "SaslAuthenticate", "SaslToken"))
"""The APIs of a login."""
BEGINNING = LOGIN | {"ApiVersions"}
"""The APIs with which connections begin."""


def _may_be_waiting(api: str) -> bool:
    """Whether such a request may be on its way when a broker stops, so that the missing answer is no
    refusal."""
    traits = traits_of_api(api)
    return traits.waits is not None or traits.between_brokers or api == "Heartbeat"


def _is_turned_away(row: Row) -> bool:
    """Whether a connection got no further than its beginning, for example because a login was refused. That
    the broker closes it does not show that it stops."""
    answered = {*(row["answered_apis"] or ())}
    return bool(answered) and answered <= BEGINNING and row["closed_ns"] - row["first_ns"] < SECOND


class _BrokerEnds:
    """When a broker closed connections, and how long it served older ones."""

    def __init__(self, rows: list[Row], refused: Set[int]) -> None:
        begun = sorted(
            (row["first_ns"], served_until_ns(row)) for row in rows if row["opening"] not in FAILED
        )
        self._firsts = [first_ns for first_ns, _ in begun]
        self._served = list(accumulate((until_ns for _, until_ns in begun), max))
        self._closed = sorted(
            row["closed_ns"]
            for row in rows
            if row["closed_by"] == "broker" and row["connection"] not in refused and not _is_turned_away(row)
        )

    def serves(self, begun_ns: int, until_ns: int) -> bool:
        """Whether a connection that began before ``begun_ns`` was served after ``until_ns``."""
        at = bisect_left(self._firsts, begun_ns)
        return at > 0 and self._served[at - 1] > until_ns

    def stopped(self, ns: int, within_ns: int) -> bool:
        """Whether the broker stopped at that time: it closed another connection too, and no older one went
        on. If several are closed, the broker stopped in any case, because several brokers may be behind one
        address."""
        closed = bisect_right(self._closed, ns + within_ns) - bisect_left(self._closed, ns - within_ns)
        return closed > 1 or (closed == 1 and not self.serves(ns - within_ns, ns + within_ns))


def _is_broken_off(row: Row) -> bool:
    """Whether the broker closed a connection before a request was complete that is longer than all bytes that
    the client sent."""
    return row["waiting_bytes"] is not None and bool(row["waiting_bytes"] > row["bytes_to_broker"])


def _wants_login(facts: Facts, rows: list[Row]) -> bool:
    """Whether the broker wants a login: it answered ApiVersions, which needs no login, and closed at the next
    request. That request is small, of a version that the broker offers, and no part of a login."""
    apis = {api for row in rows for api in row["waiting_apis"]}
    if apis & LOGIN or any(
        set(row["answered_apis"] or ()) - {"ApiVersions"} or (row["waiting_bytes"] or SMALL) >= SMALL
        for row in rows
    ):
        return False
    # If a connection is older than the capture, its beginning may be missing.
    asked = [row for row in rows if row["opening"] is not None or row["answered_apis"]]
    if not asked or any(row["answered_apis"] != ["ApiVersions"] for row in asked):
        return False
    spoken = [
        each
        for each in facts.rows(Versions)
        if (each["client_id"], each["broker"]) == (rows[0]["client_id"], rows[0]["broker"])
        and each["api"] in apis
    ]
    return bool(spoken) and all(
        each["offered_max"] is not None and each["offered_min"] <= each["api_version"] <= each["offered_max"]
        for each in spoken
    )


def _refusal(facts: Facts, rows: list[Row]) -> tuple[str, dict[str, str]]:
    """What the broker refuses: words for the message, and the cause and the fix if they are known."""
    apis = ", ".join(sorted({api for row in rows for api in row["waiting_apis"]}))
    closed = plural(len(rows), "connection")
    if all(map(_is_broken_off, rows)):
        least = min(row["waiting_bytes"] for row in rows)
        sent = max(row["bytes_to_broker"] for row in rows)
        what = (
            f"The broker closed {closed} before a request ({apis}) was sent whole: each announces "
            f"{least:,} bytes or more, and the client could send at most {sent:,}."
        )
        why = (
            "The request is larger than the broker takes (socket.request.max.bytes, 100 MiB unless it was "
            "changed). A broker closes as soon as it has read the size, and tells only its log why."
        )
        do = (
            "Lower what the client puts into one request (max.request.size, batch.size; message.max.bytes in "
            "librdkafka), or raise socket.request.max.bytes of the broker."
        )
        return what, {"confidence": LIKELY, "cause": why, "fix": do}
    if _wants_login(facts, rows):
        what = (
            f"The broker told which versions it knows (ApiVersions), and closed {closed} at the request "
            f"after that ({apis}), without an answer. So does a port at which clients must log in."
        )
        why = (
            "Clients must log in at this port (SASL_PLAINTEXT or SASL_SSL), and this client is configured to "
            "work without a login: it sent no SaslHandshake."
        )
        do = (
            "Set security.protocol, sasl.mechanism and the credentials of the client, or let it use the port "
            "of a listener without login (listeners and listener.security.protocol.map of the broker)."
        )
        return what, {"confidence": LIKELY, "cause": why, "fix": do}
    return f"The broker closed {closed} right after a request ({apis}), without an answer.", {}


@rule(
    "request-refused-by-close",
    WARNING,
    CERTAIN,
    needs=(Tcp, Connections, Versions, Endpoints),
    young_ms=50,
    stops_s=1,
)
def request_refused_by_close(facts: Facts) -> Iterator[Finding]:
    """The broker closed the connection instead of answering. A broker that stops closes all connections at
    once, which is no refusal. If bytes of a connection are missing, they may contain the answer. If a request
    is too large, the broker may answer others of its API; then this must happen again to count."""
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
    ]
    broken_off = Counter((row["client_id"], row["broker"]) for row in refused if _is_broken_off(row))
    refused = [
        row
        for row in refused
        if not any((row["client_id"], row["broker"], api) in answered for api in row["waiting_apis"])
        or (_is_broken_off(row) and broken_off[row["client_id"], row["broker"]] >= TWICE)
    ]
    refused = without_gaps(facts, refused, "an answer")
    stops_ns = int(facts.limit("stops_s") * SECOND)
    numbers = {row["connection"] for row in refused}
    ends = {
        broker: _BrokerEnds(rows, numbers)
        for (broker,), rows in group_rows(facts.rows(Tcp), "broker").items()
    }
    refused = [row for row in refused if not ends[row["broker"]].stopped(row["closed_ns"], stops_ns)]
    for (client_id, broker), rows in group_rows(refused, "client_id", "broker").items():
        what, known = _refusal(facts, rows)
        evidence = [number for row in rows for number in row["waiting_exchanges"]]
        yield facts.finding(
            FindingSubject(client_id=client_id, client=address(rows[0]["client"]), broker=broker),
            what,
            **known,
            count=len(rows),
            measure=len(rows),
            unit="connections",
            threshold=1,
            first_ns=min(row["closed_ns"] for row in rows),
            last_ns=max(row["closed_ns"] for row in rows),
            exchanges=evidence,
            connections=[row["connection"] for row in rows],
            because=port_with_tls(facts, broker),
            filter=of_numbers(evidence[:8]),
        )


@rule("connection-limit", WARNING, LIKELY, needs=(Tcp, Connections), connections=3, young_ms=50)
def connection_limit(facts: Facts) -> Iterator[Finding]:
    """The broker closes connections right after it has accepted them, and goes on to serve others. On other
    connections it answers the same requests."""
    brokers = group_rows(facts.rows(Tcp), "broker")
    spoken = {row["connection"]: _language(row) for row in facts.rows(Connections)}
    known = {broker: _Known.of(rows, spoken) for (broker,), rows in brokers.items()}
    closed = [
        row
        for row in facts.rows(Tcp)
        if _is_not_wanted(facts, row) and known[row["broker"]].answers(row, spoken.get(row["connection"]))
    ]
    hosts: dict[tuple[str, str], list[tuple[Row, int]]] = {}
    served_by = {broker: _Served(rows) for (broker,), rows in brokers.items()}
    for row in without_gaps(facts, closed, "an answer"):
        served = served_by[row["broker"]].through(row["first_ns"], row["closed_ns"])
        if served > 0:
            hosts.setdefault((address(row["client"]), row["broker"]), []).append((row, served))
    for (host, broker), found in hosts.items():
        if len(found) < facts.limit("connections"):
            continue
        rows = [row for row, _ in found]
        ids = {row["client_id"] for row in rows} - {None}
        most = max(served for _, served in found)
        yield facts.finding(
            FindingSubject(client=host, client_id=next(iter(ids)) if len(ids) == 1 else None, broker=broker),
            f"The broker closed {plural(len(rows), 'connection')} of {host} within "
            f"{span(max(row['closed_ns'] - row['first_ns'] for row in rows))} after it had accepted them, "
            f"and answered nothing. Meanwhile it served {plural(most, 'other connection')}.",
            count=len(rows),
            measure=len(rows),
            unit="connections",
            threshold=facts.limit("connections"),
            first_ns=min(row["first_ns"] for row in rows),
            last_ns=max(row["closed_ns"] for row in rows),
            connections=[row["connection"] for row in rows],
            exchanges=[number for row in rows for number in row["waiting_exchanges"]],
            filter=of_connections(row["connection"] for row in rows),
        )


def _language(row: Row) -> str | None:
    """The protocol on a connection; TLS counts as such whether or not it was decrypted."""
    return "tls" if row.get("tls") is not None else row.get("protocol")


class _Known(NamedTuple):
    """What a broker is known to answer."""

    apis: set[str]
    languages: set[str | None]

    @classmethod
    def of(cls, rows: list[Row], spoken: dict[int, str | None]) -> _Known:
        """What the broker answered on these connections."""
        answered = [row for row in rows if row["answered_apis"]]
        apis = {api for row in answered for api in row["answered_apis"]}
        return cls(apis, {spoken.get(row["connection"]) for row in answered})

    def answers(self, row: Row, language: str | None) -> bool:
        """Whether the broker answers such requests at the beginning of a connection. It does not if the
        protocol is wrong, such as TLS or HTTP at a port without it, or if a login must come first."""
        if row["bytes_to_broker"] and language not in self.languages:
            return False
        first = LOGIN | {"ApiVersions"} if self.apis & LOGIN else self.apis
        return (self.apis & first).issuperset(row["waiting_apis"])


def _is_not_wanted(facts: Facts, row: Row) -> bool:
    """Whether the broker closed a connection before it sent anything."""
    return bool(
        row["closed_by"] == "broker"
        and row["opening"] == "answered"
        and not row["bytes_from_broker"]
        and row["bytes_to_broker"] < SMALL
        and row["exchanges"] <= 1
        and row["closed_ns"] - row["first_ns"] <= facts.limit("young_ms") * MILLISECOND
    )


class _Served:
    """How many connections a broker served at a time, that is, connections on which it answered anything."""

    def __init__(self, rows: list[Row]) -> None:
        answered = [row for row in rows if row["answered_apis"]]
        self._firsts = sorted(row["first_ns"] for row in answered)
        self._lasts = sorted(map(served_until_ns, answered))

    def through(self, begun_ns: int, until_ns: int) -> int:
        """The least number of connections that it served both before ``begun_ns`` and after ``until_ns``."""
        return bisect_left(self._firsts, begun_ns) - bisect_right(self._lasts, until_ns)


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
    """Brokers close connections that were idle for long."""
    rows = facts.rows(Tcp)
    by_broker = group_rows((row for row in rows if _closed_when_idle(facts, row)), "broker")
    of_broker = group_rows(rows, "broker") if by_broker else {}
    for (broker,), closed in by_broker.items():
        # Only a connection that goes on shows that the broker did not stop.
        ends = _BrokerEnds(of_broker[broker,], frozenset())
        lived_on = [row for row in closed if ends.serves(row["closed_ns"], row["closed_ns"] + SECOND)]
        usual = facts.limit("idle_s") * SECOND
        found = [row for row in closed if abs(row["idle_ns"] - usual) <= facts.limit("share") * usual]
        if not found and lived_on:
            middle = sorted(row["idle_ns"] for row in lived_on)[len(lived_on) // 2]
            spread = max(facts.limit("equal_share") * middle, CHECKED_EVERY_NS)
            found = [row for row in lived_on if abs(row["idle_ns"] - middle) <= spread]
            # A different idle time shows another reason to close. Then idleness is not why the broker closes.
            if len(found) < max(facts.limit("equal"), len(lived_on) / 2):
                continue
        if not found:
            continue
        idle_ns = sorted(row["idle_ns"] for row in found)[len(found) // 2]
        is_usual = abs(idle_ns - usual) <= facts.limit("share") * usual
        between = "" if is_usual else ", or that of a proxy before it"
        yield facts.finding(
            FindingSubject(broker=broker),
            f"The broker closed {plural(len(found), 'connection')} after no packet came over "
            f"{'it' if len(found) == 1 else 'each'} for {span(idle_ns)}. That is its limit for idle "
            f"connections{between}. Clients open them again when they need them.",
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
"""The largest difference between idle times that count as equal. Brokers look for idle connections every 300
ms if nothing else happens (``Processor.run``)."""


def _closed_when_idle(facts: Facts, row: Row) -> bool:
    return (
        row["closed_by"] == "broker"
        and not row["waiting_exchanges"]
        and row["idle_ns"] is not None
        and row["idle_ns"] >= facts.limit("least_s") * SECOND
        and row["last_missing"] in (None, "acks=0")
    )


explains("authentication-failed", "request-refused-by-close", shares=("client_id",))
explains("broker-gone", "connection-limit", shares=("broker",))
explains("connection-limit", "connection-churn", "metadata-storm", shares=("client",))
explains("connection-limit", "request-refused-by-close", shares=("client", "broker"))
explains("broker-gone", "request-refused-by-close", shares=("broker",))
