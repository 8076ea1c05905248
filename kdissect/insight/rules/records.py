"""Rules on the fate of records: damaged, read in an open transaction, silently lost."""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.analysis.connections import Connections
from kdissect.analysis.errors import Errors
from kdissect.analysis.fold import MILLISECOND, SECOND, Row
from kdissect.analysis.positions import Positions
from kdissect.analysis.speakers import address
from kdissect.analysis.tcp import Tcp
from kdissect.analysis.topics import Topics
from kdissect.insight.causes import explains
from kdissect.insight.finding import CERTAIN, CRITICAL, LIKELY, WARNING, Finding, FindingSubject
from kdissect.insight.gaps import without_gaps
from kdissect.insight.grouping import group_rows
from kdissect.insight.rule import Facts, rule
from kdissect.insight.words import having, named, of_numbers
from kdissect.wording import plural

explains(
    "corrupt-records", "produce-refused", "produce-retries-exhausted", "consumer-stalled", shares=("topic",)
)

READING = ("fetch", "replicate", "share", "snapshot")
CORRUPT = "CORRUPT_MESSAGE"


@rule("corrupt-records", CRITICAL, CERTAIN, needs=(Topics, Errors))
def corrupt_records(facts: Facts) -> Iterator[Finding]:
    """Records are damaged."""
    unreadable = [
        row for row in facts.rows(Errors) if row["error"] == CORRUPT and row["api"] in ("Fetch", "ShareFetch")
    ]
    refused = group_rows(unreadable, "topic", "partition")
    damaged = group_rows((row for row in facts.rows(Topics) if row["corrupt_batches"]), "topic", "partition")
    for place in dict.fromkeys((*damaged, *refused)):
        rows, errors = damaged.get(place, []), refused.get(place, [])
        topic, partition = place
        where = f"{topic}-{partition}" if partition is not None else str(topic)
        count = sum(row["corrupt_batches"] for row in rows) + sum(row["count"] for row in errors)
        sides = {row["direction"] for row in rows}
        if not rows:
            what = (
                f"The broker cannot read records of {where} any more ({CORRUPT}, {plural(count, 'time')}): "
                "they are damaged on its disk."
            )
        elif "produce" in sides and sides & set(READING):
            what = f"{_batches(count, where)} damaged when written, and came damaged when read."
        elif "produce" in sides:
            what = f"{_batches(count, where)} damaged on the way to the broker."
        else:
            what = (
                f"{_batches(count, where)} damaged when they came from the broker: its disk, its memory or "
                "the network damaged them."
            )
        yield facts.finding(
            FindingSubject(topic=topic, partition=partition),
            what,
            count=count,
            measure=count,
            unit="batches" if rows else "times",
            threshold=1,
            first_ns=min(row["first_ns"] for row in (*rows, *errors)),
            last_ns=max(row["last_ns"] for row in (*rows, *errors)),
            exchanges=_evidence(rows, errors),
            filter=of_numbers(_evidence(rows, errors)[:8]),
        )


def _batches(count: int, where: str) -> str:
    return f"One batch of {where} was" if count == 1 else f"{count:,} batches of {where} were"


def _evidence(rows: list[Row], errors: list[Row]) -> list[int]:
    found = {number for row in rows for number in row["corrupt_exchanges"]}
    return sorted(found | {row[end] for row in errors for end in ("first_exchange", "last_exchange")})


@rule("aborted-records-read", CRITICAL, CERTAIN, needs=(Positions,))
def aborted_records_read(facts: Facts) -> Iterator[Finding]:
    """A reader with read_committed got records of an aborted or undecided transaction."""
    given = [row for row in facts.rows(Positions) if row["beyond_stable"] or row["aborted_unnamed"]]
    for (client_id, topic), rows in group_rows(given, "client_id", "topic").items():
        beyond, unnamed = (
            sum(row["beyond_stable"] for row in rows),
            sum(row["aborted_unnamed"] for row in rows),
        )
        exchanges = sorted(
            {
                number
                for row in rows
                for name in ("beyond_stable_exchanges", "aborted_unnamed_exchanges")
                for number in row[name]
            }
        )
        what = []
        if beyond:
            what.append(f"whose transactions were still open, in {plural(beyond, 'answer')}")
        if unnamed:
            what.append(
                f"of aborted transactions that the response does not list, in {plural(unnamed, 'answer')}"
            )
        yield facts.finding(
            FindingSubject(
                client_id=client_id, client=address(rows[0]["client"]), group=rows[0]["group"], topic=topic
            ),
            f"{client_id or 'A consumer'} reads with read_committed, but the broker gave it records of "
            f"{topic} {', and '.join(what)}.",
            count=beyond + unnamed,
            measure=beyond + unnamed,
            unit="answers",
            threshold=1,
            first_ns=min(row["first_ns"] for row in rows),
            last_ns=max(row["last_ns"] for row in rows),
            exchanges=exchanges,
            connections=[row["connection"] for row in rows],
            filter=of_numbers(exchanges[:8]),
        )


@rule("acks0-closed", WARNING, LIKELY, needs=(Tcp, Connections), within_ms=100, apart_s=1)
def acks0_closed(facts: Facts) -> Iterator[Finding]:
    """A broker closed a connection because a write failed for which the producer wanted no answer. If bytes
    of the connection are missing, they may contain the client's end."""
    rows = facts.rows(Tcp)
    closed = [row for row in rows if row["closed_by"] == "broker"]
    found = [row for row in closed if _after_silent_write(facts, row)]
    others = [row for row in closed if row not in found]
    for (client_id, host), failed in group_rows(
        ({**row, "host": address(row["client"])} for row in found), "client_id", "host"
    ).items():
        alone = [row for row in failed if _broker_lives(facts, row, rows, others)]
        alone = without_gaps(facts, alone, "the client's end")
        if not alone:
            continue
        yield facts.finding(
            FindingSubject(client=host, client_id=client_id),
            f"{client_id or 'A producer'} asks for no answers (acks=0), and "
            f"{named(sorted({row['broker'] for row in alone}))} closed its connection right after a write, "
            f"{plural(len(alone), 'time')}. That is how a broker says that such a write failed. Its "
            "records are lost.",
            count=len(alone),
            measure=len(alone),
            unit="connections",
            threshold=1,
            first_ns=min(row["closed_ns"] for row in alone),
            last_ns=max(row["closed_ns"] for row in alone),
            exchanges=[row["last_exchange"] for row in alone],
            connections=[row["connection"] for row in alone],
            filter=having(client_id=client_id, api="Produce"),
        )


def _after_silent_write(facts: Facts, row: Row) -> bool:
    return (
        (row["last_api"], row["last_missing"]) == ("Produce", "acks=0")
        and row["idle_ns"] is not None
        and 0 <= row["idle_ns"] <= facts.limit("within_ms") * MILLISECOND
    )


def _broker_lives(facts: Facts, row: Row, rows: list[Row], others: list[Row]) -> bool:
    """Whether the broker went on, so that it closed only this connection."""
    near_ns = facts.limit("apart_s") * SECOND
    same = [
        each for each in rows if each["broker"] == row["broker"] and each["connection"] != row["connection"]
    ]
    goes_on = any(each["last_ns"] > row["closed_ns"] + near_ns for each in same)
    stops = any(
        each["broker"] == row["broker"] and abs(each["closed_ns"] - row["closed_ns"]) <= near_ns
        for each in others
    )
    return goes_on and not stops
