"""How consumers ask for records: too often, for too little, or without the fetch sessions that make it
cheap."""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.pace import LARGE_BYTES, Pace
from kdissect.analysis.positions import Positions
from kdissect.analysis.repeats import Repeats
from kdissect.analysis.speakers import address
from kdissect.insight.causes import explains
from kdissect.insight.finding import CERTAIN, NOTICE, Finding, FindingSubject
from kdissect.insight.grouping import group_rows
from kdissect.insight.repeated import once_per_subject
from kdissect.insight.rule import Facts, rule
from kdissect.insight.words import having, of_connections, of_numbers, share
from kdissect.wording import plural

LOST = ("FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH")

explains("fetch-capped", "consumer-falling-behind", "partition-lags", shares=("group", "topic"))


@rule("small-fetches", NOTICE, CERTAIN, needs=(Pace,), per_s=50, seconds=30, bytes=1024)
def small_fetches(facts: Facts) -> Iterator[Finding]:
    """A consumer fetches very often, and gets very little each time."""
    fetching = [row for row in facts.rows(Pace) if row["api"] == "Fetch" and row["least_bytes"] == 1]
    for (client, client_id), rows in group_rows(fetching, "client", "client_id").items():
        count = sum(row["count"] for row in rows)
        first_ns, last_ns = min(row["first_ns"] for row in rows), max(row["last_ns"] for row in rows)
        lasted_ns = last_ns - first_ns
        typical = max(rows, key=lambda row: row["count"])["answered_bytes_p50"] or 0
        if lasted_ns < facts.limit("seconds") * SECOND or typical > facts.limit("bytes"):
            continue
        rate = count * SECOND / lasted_ns
        if rate < facts.limit("per_s"):
            continue
        yield facts.finding(
            FindingSubject(client=client, client_id=client_id),
            f"{client_id or 'A consumer'} asked for records {count:,} times ({rate:,.0f} a second), and "
            f"half of the answers brought no more than {typical:,} bytes. The consumer fetches whatever is "
            "there at once, so brokers and consumer do much work for few records.",
            count=count,
            measure=rate,
            unit="fetches/s",
            threshold=facts.limit("per_s"),
            first_ns=first_ns,
            last_ns=last_ns,
            filter=having(client_id=client_id, api="Fetch"),
        )


@rule("fetch-capped", NOTICE, CERTAIN, needs=(Positions,), answers=50, share=0.5)
def fetch_capped(facts: Facts) -> Iterator[Finding]:
    """A consumer is behind, and its own limits cut what it gets."""
    reading = [row for row in facts.rows(Positions) if row["replica_id"] < 0 and row["topic"]]
    for (client_id, group, topic), rows in group_rows(reading, "client_id", "group", "topic").items():
        capped = [row for row in rows if _is_capped(facts, row)]
        if not capped:
            continue
        worst = max(capped, key=lambda row: max(row["cut"], row["full"]))
        cut = max(worst["cut"], worst["full"])
        of_partition = worst["cut"] >= worst["full"]
        limit = (
            f"one partition (max.partition.fetch.bytes, {worst['max_bytes']:,})"
            if of_partition
            else "a whole answer (fetch.max.bytes)"
        )
        yield facts.finding(
            FindingSubject(client_id=client_id, client=address(worst["client"]), group=group, topic=topic),
            f"{client_id or 'A consumer'} is behind in {topic}, and {share(cut, worst['answers'])} of the "
            f"answers with records of partition {worst['partition']} ended at the consumer's own limit for "
            f"{limit}. Each round trip brings no more.",
            count=sum(max(row["cut"], row["full"]) for row in capped),
            measure=100 * cut / worst["answers"],
            unit="%",
            threshold=100 * facts.limit("share"),
            first_ns=min(row["first_ns"] for row in capped),
            last_ns=max(row["last_ns"] for row in capped),
            connections=[row["connection"] for row in capped],
            filter=having(client_id=client_id, api="Fetch", topic=topic),
        )


def _is_capped(facts: Facts, row: Row) -> bool:
    answers, cut = row["answers"], max(row["cut"], row["full"])
    return bool(
        answers >= facts.limit("answers")
        and cut >= facts.limit("share") * answers
        and (row["max_lag"] or 0) > 0
    )


@rule(
    "fetch-sessions-lost",
    NOTICE,
    CERTAIN,
    needs=(Repeats, Positions),
    times=3,
    share=0.5,
    partitions=50,
    requests=10,
)
def fetch_sessions_lost(facts: Facts) -> Iterator[Finding]:
    """Brokers forget the sessions of consumers and followers, so that every Fetch names all partitions again.
    Each connection is reported once: its broker forgot its sessions, or the client drops them, or its broker
    keeps none."""
    refused = [row for row in facts.rows(Repeats) if row["api"] == "Fetch" and row["error"] in LOST]
    lost = [row for row in refused if row["count"] >= facts.limit("times")]
    forgotten = {row["connection"] for row in lost}
    goes_on = {row["connection"] for row in refused}  # otherwise no broker could have refused its session
    anew = [
        rows
        for rows in group_rows(facts.rows(Positions), "connection").values()
        if rows[0]["connection"] not in forgotten and _begins_anew(facts, rows)
    ]
    thrown = [rows[0] for rows in anew if rows[0]["session_id"] and rows[0]["connection"] not in goes_on]
    away = {row["connection"] for row in thrown}
    unkept = [
        rows[0]
        for rows in anew
        if rows[0]["connection"] not in away and len(rows) >= facts.limit("partitions")
    ]
    lost_by, unkept_by = group_rows(lost, "broker"), group_rows(unkept, "broker")
    for at, rows in lost_by.items():
        yield _forgotten(facts, rows, unkept_by.get(at, []))
    yield from _thrown_away(facts, thrown)
    for at, rows in unkept_by.items():
        if at not in lost_by:
            yield _unkept(facts, rows)


def _forgotten(facts: Facts, rows: list[Row], unkept: list[Row]) -> Finding:
    """The finding on a broker that forgot sessions.

    :param unkept: the first rows of connections for which the broker keeps no session.
    """
    count = sum(row["count"] for row in rows)
    more = f" For {plural(len(unkept), 'other connection')} it keeps no session at all." if unkept else ""
    return facts.finding(
        FindingSubject(broker=rows[0]["broker"]),
        f"The broker forgot fetch sessions of {plural(len(rows), 'connection')} {count:,} times. Each time "
        f"the consumer (or follower) has to name all of its partitions again.{more}",
        count=count,
        measure=count,
        unit="times",
        threshold=facts.limit("times"),
        first_ns=min(row["first_ns"] for row in (*rows, *unkept)),
        last_ns=max([*(row["last_ns"] for row in rows), *(row["fetched_last_ns"] for row in unkept)]),
        exchanges=[number for row in rows for number in row["exchanges"]],
        connections=[row["connection"] for row in (*rows, *unkept)],
        filter=f"api == Fetch and error in {{{', '.join(sorted({row['error'] for row in rows}))}}}",
    )


def _unkept(facts: Facts, firsts: list[Row]) -> Finding:
    """The finding on a broker that keeps no sessions.

    :param firsts: the first row of each of the connections.
    """
    begun = sum(row["sessions"] for row in firsts)
    connections = [row["connection"] for row in firsts]
    return facts.finding(
        FindingSubject(broker=firsts[0]["broker"]),
        f"The broker keeps no fetch session for {plural(len(firsts), 'connection')}: most "
        f"of their requests name all of their {facts.limit('partitions'):.0f} and more partitions.",
        count=begun,
        measure=begun,
        unit="requests",
        first_ns=min(row["first_ns"] for row in firsts),
        last_ns=max(row["fetched_last_ns"] for row in firsts),
        connections=connections,
        filter=f"api == Fetch and {of_connections(connections)}",
    )


def _begins_anew(facts: Facts, rows: list[Row]) -> bool:
    """Whether many of a connection's fetches begin a session."""
    requests = max(row["fetches"] for row in rows)
    enough = requests >= facts.limit("requests")
    return bool(enough and rows[0]["sessions"] >= facts.limit("share") * requests)


def _thrown_away(facts: Facts, firsts: list[Row]) -> Iterator[Finding]:
    for (client_id, client), rows in _by_client(firsts).items():
        begun = sum(row["sessions"] for row in rows)
        connections = [row["connection"] for row in rows]
        yield facts.finding(
            FindingSubject(client=client, client_id=client_id),
            f"{client_id or 'A consumer'} began a new fetch session {begun:,} times on "
            f"{plural(len(rows), 'connection')}, although the broker gave it one. It names all of "
            "its partitions again and again.",
            count=begun,
            measure=begun,
            unit="sessions",
            first_ns=min(row["first_ns"] for row in rows),
            last_ns=max(row["fetched_last_ns"] for row in rows),
            connections=connections,
            filter=f"api == Fetch and {of_connections(connections)}",
            cause=_THROWN_AWAY_WHY,
            fix=_THROWN_AWAY_DO,
            configs=(),
        )


_THROWN_AWAY_WHY = (
    "The client library does not go on with the session that the broker gave it. Each new session takes a "
    "place in the broker (1,000 by default), and sessions of other clients are dropped for it."
)
_THROWN_AWAY_DO = (
    "Update the client library. It should send the number of its session with the next fetch, or ask for no "
    "session (epoch -1). Until then, raise max.incremental.fetch.session.cache.slots of the brokers."
)


def _by_client(rows: list[Row]) -> dict[tuple[str | None, str], list[Row]]:
    found: dict[tuple[str | None, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row["client_id"], address(row["client"])), []).append(row)
    return found


@rule("response-too-large", NOTICE, CERTAIN, needs=(Pace,))
@once_per_subject
def response_too_large(facts: Facts) -> Iterator[Finding]:
    """An answer is larger than the client asked for, or than clients accept."""
    for row in facts.rows(Pace):
        subject = FindingSubject(client=row["client"], client_id=row["client_id"])
        who = row["client_id"] or "a client"
        if row["large_count"]:
            yield facts.finding(
                subject,
                f"{plural(row['large_count'], 'answer')} to {row['api']} of {who} had up to "
                f"{row['large_bytes']:,} bytes. Clients built on librdkafka refuse more than "
                f"{LARGE_BYTES:,} by "
                "default and close the connection.",
                count=row["large_count"],
                measure=row["large_bytes"],
                unit="bytes",
                threshold=LARGE_BYTES,
                first_ns=row["first_ns"],
                last_ns=row["last_ns"],
                exchanges=row["large_exchanges"],
                filter=of_numbers(row["large_exchanges"]),
            )
        elif row["beyond_count"]:
            yield facts.finding(
                subject,
                f"{plural(row['beyond_count'], 'answer')} to {who} brought up to {row['beyond_bytes']:,} "
                f"bytes of records, though it asked for {row['beyond_limit_bytes']:,} at the most. One "
                "batch alone is larger, and brokers send the first batch whole.",
                count=row["beyond_count"],
                measure=row["beyond_bytes"],
                unit="bytes",
                threshold=row["beyond_limit_bytes"],
                first_ns=row["first_ns"],
                last_ns=row["last_ns"],
                exchanges=row["beyond_exchanges"],
                filter=of_numbers(row["beyond_exchanges"]),
            )
