"""Rules on what clients do over and over: requests, connections, questions for something that does not
exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kdissect.analysis.cluster import ClusterBrokers, ClusterChanges, ClusterTopics
from kdissect.analysis.connections import Connections
from kdissect.analysis.errors import Errors
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.groups import Members
from kdissect.analysis.medians import median
from kdissect.analysis.metadata_asked import MetadataAsked
from kdissect.analysis.repeats import Repeats
from kdissect.analysis.speakers import address
from kdissect.insight.causes import explains, may_explain
from kdissect.insight.context import SLEPT, JudgingContext
from kdissect.insight.finding import CERTAIN, CRITICAL, NOTICE, WARNING, Finding, FindingSubject, key_of
from kdissect.insight.grouping import group_rows
from kdissect.insight.nodes import ClusterNode, nodes_by_address
from kdissect.insight.rule import Facts, rule
from kdissect.insight.words import of_numbers, quoted, span
from kdissect.protocol.errors import NOT_MADE
from kdissect.wording import plural

CAUSES_OF_STORMS = ("unknown-topic-loop", "client-breaks-on-4", "connection-churn", "listener-unreachable")
for cause in CAUSES_OF_STORMS:
    explains(cause, "metadata-storm", shares=("client_id", "client"))
explains("unknown-topic-loop", "retry-without-backoff", shares=("client_id", "topic"))
explains("unknown-topic-loop", "consumer-falling-behind", "partition-lags", shares=("client_id", "topic"))
may_explain("election-storm", "retry-without-backoff", within_s=60)
explains("client-breaks-on-4", "connection-churn", shares=("client_id",))
explains("authentication-failed", "connection-churn", "metadata-storm", shares=("client_id",))
explains("request-refused-by-close", "connection-churn", shares=("client_id",))
explains(
    "authorization-denied",
    *("retry-without-backoff", "metadata-storm"),
    same=("client_id", "client"),
    at_once=True,
)
for cause in ("broker-gone", "leader-moved", "partition-offline", "broker-stalled"):
    explains(cause, "metadata-storm", "retry-without-backoff")
explains("under-min-isr", "fetch-spin", at_once=True)  # consumers may be ahead of what a leader shows
for cause in ("fetch-spin", "retry-without-backoff"):
    explains(cause, "small-fetches", same=("client_id", "client"))
for cause in ("tls-on-plaintext-port", "tls-handshake-failed", "listener-unreachable", "broker-gone"):
    explains(cause, "connection-churn")

METADATA_LOG = "__cluster_metadata"
MISSING = ("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID")
WRONG_NAME = "INVALID_TOPIC_EXCEPTION"
SETTING_UP = ("ApiVersions", "SaslHandshake", "SaslAuthenticate")
"""APIs that every new connection uses."""


def _of_clients(facts: Facts) -> list[Row]:
    """Rows of clients, without brokers that follow."""
    return [row for row in facts.rows(Repeats) if row["replica_id"] < 0]


def _by_client(rows: list[Row]) -> dict[tuple[str | None, str], list[Row]]:
    """The rows of each client, by client id and address."""
    found: dict[tuple[str | None, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row["client_id"], address(row["client"])), []).append(row)
    return found


def _is_brief(row: Row, brief_ns: float) -> bool:
    """Whether a broker asked for the metadata log only for a moment."""
    return bool(row["topic"] == METADATA_LOG and row["at_once_ns"] < brief_ns)


@rule(
    "retry-without-backoff",
    CRITICAL,
    CERTAIN,
    needs=(Repeats,),
    refused=20,
    equal=50,
    seconds=1,
    of_brokers_s=1,
)
def retry_without_backoff(facts: Facts) -> Iterator[Finding]:
    """The same request is sent again and again without a pause. Brokers do so for a moment after a controller
    has resigned, because it still names itself as the leader."""
    brief_ns = facts.limit("of_brokers_s") * SECOND
    looping = [
        row
        for row in facts.rows(Repeats)
        if _loops(facts, row)
        and row["api"] not in SETTING_UP
        and not (row["api"] == "Fetch" and row["error"] is None)
    ]
    for (client_id, client), own in _by_client(looping).items():
        rows = [row for row in own if not _is_brief(row, brief_ns)]
        severity = CRITICAL if rows else NOTICE
        rows = rows or own
        worst = max(rows, key=lambda row: row["at_once"])
        rate = worst["at_once"] * SECOND / max(1, worst["at_once_ns"])
        outcome = f"was refused each time ({worst['error']})" if worst["error"] else "got the same answer"
        about = f" for {worst['topic']}" if worst["topic"] else ""
        yield facts.finding(
            FindingSubject(client_id=client_id, client=client, topic=worst["topic"]),
            f"The client sent {worst['api']}{about} {worst['at_once']:,} times in "
            f"{span(worst['at_once_ns'])}, without "
            f"a pause ({rate:,.0f} a second), and {outcome}.",
            severity=severity,
            because=key_of("election-storm", FindingSubject()) if worst["topic"] == METADATA_LOG else None,
            count=sum(row["at_once"] for row in rows),
            measure=rate,
            unit="requests/s",
            threshold=1000 / 50,
            cost_ns=worst["at_once_ns"],
            first_ns=min(row["first_ns"] for row in rows),
            last_ns=max(row["last_ns"] for row in rows),
            exchanges=worst["exchanges"],
            connections=[row["connection"] for row in rows],
            filter=f"connection == {worst['connection']} and api == {worst['api']}",
        )


@rule(
    "metadata-storm",
    WARNING,
    CERTAIN,
    needs=(Repeats,),
    requests=30,
    per_s=2,
    seconds=10,
    slow_per_s=1,
    slow_seconds=30,
)
def metadata_storm(facts: Facts) -> Iterator[Finding]:
    """A client asks for metadata far more often than it needs."""
    asking = [row for row in _of_clients(facts) if row["api"] == "Metadata"]
    least = facts.limit("requests")
    for (client_id, client), rows in _by_client(asking).items():
        if max(sum(row["count"] for row in rows), *(row["soon"] for row in rows)) < least:
            continue  # as mostly
        found = [_of_all(rows, facts.context), _of_longest_stretch(rows)]
        storms = [each for each in found if _is_storm(facts, each, each.least_ns)]
        if not storms:
            if any(_is_storm(facts, each, each.span_ns) for each in found):
                facts.cannot_judge(SLEPT)
            continue
        rate, span_ns, _, count = max(storms)
        errors = sorted({row["error"] for row in rows if row["error"]})
        refused = f" Responses had these errors: {', '.join(errors)}." if errors else ""
        yield facts.finding(
            FindingSubject(client_id=client_id, client=client),
            f"The client asked for metadata {count:,} times in {span(span_ns)}: {rate:.1f} times a "
            f"second.{refused}",
            count=count,
            measure=rate,
            unit="requests/s",
            threshold=facts.limit("per_s"),
            first_ns=min(row["first_ns"] for row in rows),
            last_ns=max(row["last_ns"] for row in rows),
            exchanges=[number for row in rows for number in row["exchanges"]],
            filter=f"api == Metadata and client_id == {quoted(client_id or '')}",
        )


def _loops(facts: Facts, row: Row) -> bool:
    if row["error"] is not None:
        return bool(row["at_once"] >= facts.limit("refused"))
    lasts = row["at_once_ns"] >= facts.limit("seconds") * SECOND
    return bool(row["at_once"] >= facts.limit("equal") and lasts)


class _Rate(NamedTuple):
    """How often a client asks."""

    per_s: float
    span_ns: int
    """The most time that passed."""
    least_ns: int
    """The least time that passed. It is less than the most if the capture paused or its clock was set."""
    requests: int


def _is_storm(facts: Facts, asked: _Rate, lasted_ns: int) -> bool:
    """Whether a client asks too often, if that lasted for this time."""
    return asked.requests >= facts.limit("requests") and (
        (asked.per_s > facts.limit("per_s") and lasted_ns >= facts.limit("seconds") * SECOND)
        or (asked.per_s > facts.limit("slow_per_s") and lasted_ns >= facts.limit("slow_seconds") * SECOND)
    )


def _of_all(rows: list[Row], context: JudgingContext) -> _Rate:
    """The rate of all requests of a client."""
    of_errors = [row for row in rows if row["error"]]
    count = sum(row["count"] for row in rows if not row["error"])
    for same in group_rows(of_errors, "connection").values():
        count += max(row["count"] for row in same)  # one answer may have several errors
    first_ns, last_ns = min(row["first_ns"] for row in rows), max(row["last_ns"] for row in rows)
    most_ns = last_ns - first_ns - context.halted_ns(first_ns, last_ns)
    return _rate(count, most_ns, context.awake_ns(first_ns, last_ns))


def _of_longest_stretch(rows: list[Row]) -> _Rate:
    """The rate in the longest stretch of one connection. No pause fits into it."""
    longest = max(rows, key=lambda row: row["soon"])
    return _rate(longest["soon"], longest["soon_ns"], longest["soon_ns"])


def _rate(count: int, most_ns: int, least_ns: int) -> _Rate:
    if count < 2 or most_ns <= 0:
        return _Rate(0.0, 0, 0, count)
    # The times include the one to the next request.
    most_ns, least_ns = most_ns * count // (count - 1), least_ns * count // (count - 1)
    return _Rate(count * SECOND / most_ns, most_ns, least_ns, count)


TRIED_NS = SECOND
"""The least time in which a client tries ten times, with its pauses (``retry.backoff.ms``, 100 ms). Answers
that come sooner are about many partitions, or to many questions at once."""


@rule(
    "unknown-topic-loop",
    WARNING,
    CERTAIN,
    needs=(Repeats, Errors, ClusterChanges, ClusterBrokers, ClusterTopics, Members),
    answers=5,
    seconds=5,
    wrong_names=3,
    gave_up=10,
)
def unknown_topic_loop(facts: Facts) -> Iterator[Finding]:
    """A client keeps asking for a topic that does not exist."""
    nodes = nodes_by_address(facts.rows(ClusterBrokers))
    refused = (row for row in facts.rows(Errors) if row["api"] == "CreateTopics" and row["error"] in NOT_MADE)
    unmade = group_rows(refused, "topic")
    changes = group_rows(facts.rows(ClusterChanges), "what", "topic")
    deleted = {(topic,): rows for (what, topic), rows in changes.items() if what == "topic-deleted"}
    made = {(topic,): rows for (what, topic), rows in changes.items() if what == "topic-created"}
    known = {row["topic"] for row in facts.rows(ClusterTopics)} | {topic for (topic,) in made}
    missing = [row for row in _of_clients(facts) if row["error"] in (*MISSING, WRONG_NAME) and row["topic"]]
    for (client_id, client), of_client in _by_client(missing).items():
        for (topic,), rows in group_rows(of_client, "topic").items():
            count = sum(row["count"] for row in rows)
            first_ns, last_ns = min(row["first_ns"] for row in rows), max(row["last_ns"] for row in rows)
            wrong = sum(row["count"] for row in rows if row["error"] == WRONG_NAME)
            took_ns = facts.context.awake_ns(first_ns, last_ns)
            is_loop = count >= facts.limit("answers") and took_ns >= facts.limit("seconds") * SECOND
            # Some clients (sarama) give up sooner. While a topic is being made, they do not.
            end_ns = facts.context.end_ns(*(row["broker"] for row in rows)) or last_ns
            after_ns = facts.context.awake_ns(last_ns, end_ns)
            has_given_up = topic not in known and after_ns >= facts.limit("seconds") * SECOND
            is_loop |= count >= facts.limit("gave_up") and took_ns >= TRIED_NS and has_given_up
            if not is_loop and wrong < facts.limit("wrong_names"):
                waiting = None if topic in known or wrong else _waiting(facts, rows, client_id, client)
                if waiting is not None:
                    yield waiting
                elif took_ns < last_ns - first_ns:
                    facts.cannot_judge(SLEPT)
                continue
            gone = deleted.get((topic,), ())
            over_ns = None
            if wrong:
                why = "cannot be the name of a topic"
            elif _is_made_again(gone, made.get((topic,), ()), rows, nodes):
                why = "was deleted and made again: the new one lacks the partitions or the id that it wants"
            elif not gone and (later := _made_later(made.get((topic,), ()), rows, nodes)) is not None:
                if _is_own(facts, topic, client_id, client):
                    continue
                by = f" by {later['by']}" if later["by"] else ""
                why, over_ns = f"did not exist before it was created{by}", later["ns"]
            else:
                why = _MISSING
            was_deleted = _deleted(gone, rows, nodes)
            told = {"cause": _DELETED_WHY, "fix": _DELETED_DO} if was_deleted and why == _MISSING else {}
            yield facts.finding(
                FindingSubject(client_id=client_id, client=client, topic=topic),
                f"The client asked {count:,} times in {span(took_ns)} for topic {topic}, which {why}."
                f"{_unmade(unmade.get((topic,), ()), rows, nodes)}"
                f"{was_deleted}",
                **told,
                count=count,
                measure=count,
                unit="answers",
                threshold=facts.limit("answers"),
                cost_ns=took_ns,
                first_ns=first_ns,
                last_ns=last_ns,
                resolved_ns=over_ns,
                exchanges=[number for row in rows for number in row["exchanges"]],
                filter=f"topic == {quoted(topic)} and client_id == {quoted(client_id or '')}",
            )


_MISSING = "does not exist"
_DELETED_WHY = (
    "Somebody deleted the topic while the client used it. The client does not know that the topic will not "
    "come back, so it keeps asking."
)
_DELETED_DO = (
    "Stop the client, or take the topic out of what it reads or writes. If the topic was deleted by mistake, "
    "create it again; its records are lost. Stop its clients before you delete a topic."
)


def _waiting(facts: Facts, rows: list[Row], client_id: str | None, client: str) -> Finding | None:
    """The finding on a member of a group that reads a topic which does not exist, was told so, and does not
    ask again (kafka-go)."""
    topic, last_ns = rows[0]["topic"], max(row["last_ns"] for row in rows)
    count = sum(row["count"] for row in rows)
    least_ns = facts.limit("seconds") * SECOND
    for member in facts.rows(Members):
        is_own = member["client_id"] == client_id and address(member["client"] or "") == client
        if not is_own or topic not in (member["subscribed"] or ()) or member["last_ns"] <= last_ns:
            continue
        waited_ns = facts.context.awake_ns(last_ns, member["last_ns"])
        if waited_ns < least_ns:
            continue
        group = member["group"]
        return facts.finding(
            FindingSubject(client_id=client_id, client=client, topic=topic),
            f"The client is in group {group} to read topic {topic}, which does not exist. It asked for it "
            f"{'once' if count == 1 else plural(count, 'time')}, and then waited {span(waited_ns)} without "
            "asking again.",
            severity=NOTICE,
            count=count,
            measure=count,
            unit="answers",
            threshold=1,
            cost_ns=waited_ns,
            first_ns=min(row["first_ns"] for row in rows),
            last_ns=member["last_ns"],
            exchanges=[number for row in rows for number in row["exchanges"]],
            filter=f"topic == {quoted(topic)} and client_id == {quoted(client_id or '')}",
        )
    return None


def _unmade(refused: Iterable[Row], asked: list[Row], nodes: dict[str, ClusterNode]) -> str:
    """The sentence that the cluster cannot create a topic for which clients asked its brokers."""
    for row in refused:
        if any(_may_be_of_one(nodes.get(row["broker"]), nodes.get(each["broker"])) for each in asked):
            return f" The cluster cannot make it ({row['error']})."
    return ""


def _deleted(deleted: Sequence[Row], asked: list[Row], nodes: dict[str, ClusterNode]) -> str:
    """The sentence that a topic was deleted, and that clients went on asking brokers of its cluster for
    it."""
    for row in reversed(deleted):
        of_cluster = [
            each for each in asked if (node := nodes.get(each["broker"])) is None or node.is_source_of(row)
        ]
        if any(row["ns"] <= each["last_ns"] for each in of_cluster):
            return f" It was deleted{f' by {by}' if (by := row['by']) else ''}."
    return ""


AGAIN_NS = 2 * SECOND
"""How long brokers may not know yet that a topic was created."""


def _is_made_again(
    deleted: Sequence[Row], made: Sequence[Row], asked: list[Row], nodes: dict[str, ClusterNode]
) -> bool:
    """Whether a topic was deleted and created again while clients asked brokers of its cluster for it, and
    whether they were refused after that, too."""
    until_ns = max(
        (
            each["last_ns"]
            for each in asked
            for row in made
            if (node := nodes.get(each["broker"])) is None or node.is_source_of(row)
        ),
        default=0,
    )
    return any(gone["ns"] <= row["ns"] <= until_ns - AGAIN_NS for gone in deleted for row in made)


def _made_later(made: Sequence[Row], asked: list[Row], nodes: dict[str, ClusterNode]) -> Row | None:
    """The creation of a topic that ended the refusals."""
    first_ns, last_ns = min(row["first_ns"] for row in asked), max(row["last_ns"] for row in asked)
    for row in made:
        is_theirs = any(
            (node := nodes.get(each["broker"])) is None or node.is_source_of(row) for each in asked
        )
        if is_theirs and first_ns <= row["ns"] and last_ns <= row["ns"] + AGAIN_NS:
            return row
    return None


STREAMS_TOPICS = ("-repartition", "-changelog")
"""The endings of topics that a Streams application makes itself, behind its application id."""


def _is_own(facts: Facts, topic: str, client_id: str | None, client: str) -> bool:
    """Whether a topic is internal to the Streams application of a client. Its leader makes such topics in
    the rebalance; until then, the others ask for them."""
    return topic.endswith(STREAMS_TOPICS) and any(
        topic.startswith(f"{member['group']}-")
        for member in facts.rows(Members)
        if member["client_id"] == client_id and address(member["client"] or "") == client
    )


def _may_be_of_one(one: ClusterNode | None, other: ClusterNode | None) -> bool:
    """Whether two brokers may be of one cluster."""
    return one is None or other is None or not one.named_clusters.isdisjoint(other.named_clusters)


@rule("fetch-spin", WARNING, CERTAIN, needs=(Repeats,), per_s=20, seconds=5)
def fetch_spin(facts: Facts) -> Iterator[Finding]:
    """A consumer asks for records without a pause, and gets none."""
    idle = [row for row in _of_clients(facts) if row["api"] == "Fetch" and row["error"] is None]
    for (client_id, client), rows in _by_client(idle).items():
        worst = max(rows, key=lambda row: row["soon"])
        rate = worst["soon"] * SECOND / max(1, worst["soon_ns"])
        if worst["soon_ns"] < facts.limit("seconds") * SECOND or rate < facts.limit("per_s"):
            continue
        yield facts.finding(
            FindingSubject(client_id=client_id, client=client),
            f"The consumer asked for records {worst['soon']:,} times in {span(worst['soon_ns'])} "
            f"({rate:.0f} times a second) and the broker answered at once without records.",
            count=worst["soon"],
            measure=rate,
            unit="requests/s",
            threshold=facts.limit("per_s"),
            first_ns=worst["first_ns"],
            last_ns=worst["last_ns"],
            exchanges=worst["exchanges"],
            connections=[worst["connection"]],
            filter=f"connection == {worst['connection']} and api == Fetch",
        )


@rule(
    "connection-churn",
    WARNING,
    CERTAIN,
    needs=(Connections,),
    connections=30,
    window_s=60,
    life_s=5,
    exchanges=5,
)
def connection_churn(facts: Facts) -> Iterator[Finding]:
    """A client opens connections, uses them for a moment, and closes them."""
    kafka = [
        row for row in facts.rows(Connections) if row["protocol"] == "kafka" and row["client_id"] is not None
    ]
    for (client_id,), rows in group_rows(kafka, "client_id").items():
        over = [row for row in rows if row["end"] in ("fin", "rst")]
        busiest = _busiest(over, facts.limit("window_s"))
        if not busiest or len(busiest) < facts.limit("connections"):
            continue
        life_ns = median(row["last_ns"] - row["first_ns"] for row in busiest)
        requests = median(row["requests"] for row in busiest)
        if life_ns >= facts.limit("life_s") * SECOND and requests > facts.limit("exchanges"):
            continue
        first_ns, last_ns = busiest[0]["first_ns"], busiest[-1]["first_ns"]
        clients = sorted({address(row["client"]) for row in busiest})
        yield facts.finding(
            FindingSubject(client_id=client_id, client=clients[0] if len(clients) == 1 else None),
            f"The client opened {len(busiest):,} connections in {span(last_ns - first_ns)}; half of them "
            f"lasted less than {span(life_ns)} and carried at most {plural(int(requests), 'request')}.",
            count=len(busiest),
            measure=len(busiest),
            unit="connections",
            threshold=facts.limit("connections"),
            first_ns=first_ns,
            last_ns=last_ns,
            connections=[row["connection"] for row in busiest],
            filter=f"client_id == {quoted(client_id)} and api == ApiVersions",
        )


def _busiest(rows: list[Row], window_s: float) -> list[Row]:
    """The rows that began within the window of time that has most of them."""
    ordered = sorted(rows, key=lambda row: row["first_ns"])
    best: list[Row] = []
    start = 0
    for at, row in enumerate(ordered):
        while row["first_ns"] - ordered[start]["first_ns"] > window_s * SECOND:
            start += 1
        if at + 1 - start > len(best):
            best = ordered[start : at + 1]
    return best


@rule("too-many-in-flight", NOTICE, "likely", needs=(Connections,), requests=50)
def too_many_in_flight(facts: Facts) -> Iterator[Finding]:
    """A client has very many requests waiting on one connection."""
    for row in facts.rows(Connections):
        if (row["in_flight_max"] or 0) >= facts.limit("requests"):
            yield facts.finding(
                FindingSubject(client_id=row["client_id"], client=row["client"], broker=row["broker"]),
                f"{row['in_flight_max']} requests of the client waited for answers at the same time on "
                "one connection.",
                measure=row["in_flight_max"],
                unit="requests",
                threshold=facts.limit("requests"),
                first_ns=row["first_ns"],
                last_ns=row["last_ns"],
                connections=[row["connection"]],
                filter=f"connection == {row['connection']}",
            )


@rule("version-refused", WARNING, CERTAIN, needs=(Repeats,))
def version_refused(facts: Facts) -> Iterator[Finding]:
    """A broker refused the version of a request."""
    refused = [
        row
        for row in _of_clients(facts)
        if row["error"] in ("UNSUPPORTED_VERSION", "UNSUPPORTED_FOR_MESSAGE_FORMAT")
        and row["api"] != "ApiVersions"
    ]
    for (client_id, client), rows in _by_client(refused).items():
        apis = sorted({row["api"] for row in rows})
        evidence = [number for row in rows for number in row["exchanges"]]
        yield facts.finding(
            FindingSubject(client_id=client_id, client=client),
            f"The broker refused {', '.join(apis)}: it does not know the version, or the feature, that "
            "the client uses.",
            count=sum(row["count"] for row in rows),
            measure=sum(row["count"] for row in rows),
            unit="answers",
            threshold=1,
            first_ns=min(row["first_ns"] for row in rows),
            last_ns=max(row["last_ns"] for row in rows),
            exchanges=evidence,
            filter=of_numbers(sorted(evidence)[:8]),
        )


@rule("metadata-all-topics", NOTICE, CERTAIN, needs=(MetadataAsked,), times=10, bytes=1 << 20)
def metadata_all_topics(facts: Facts) -> Iterator[Finding]:
    """A client asks for every topic of the cluster."""
    for row in facts.rows(MetadataAsked):
        largest = row["all_bytes_max"]
        if row["all_topics"] < facts.limit("times") and largest < facts.limit("bytes"):
            continue
        yield facts.finding(
            FindingSubject(client=row["client"], client_id=row["client_id"]),
            f"{row['client_id'] or 'A client'} asked for the metadata of every topic of the cluster "
            f"{plural(row['all_topics'], 'time')} and was sent {row['all_bytes']:,} bytes ({largest:,} at "
            f"once).",
            count=row["all_topics"],
            measure=row["all_topics"],
            unit="requests",
            threshold=facts.limit("times"),
            first_ns=row["first_ns"],
            last_ns=row["last_ns"],
            exchanges=row["exchanges"],
            filter=f"api == Metadata and client_id == {quoted(row['client_id'] or '')}",
        )
