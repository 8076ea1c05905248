"""Rules on log directories of brokers. A log directory shows only what one broker stores."""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.analysis.fold import Row
from kdissect.insight.finding import (
    CERTAIN,
    CRITICAL,
    LIKELY,
    NOTICE,
    POSSIBLE,
    WARNING,
    Finding,
    FindingSubject,
)
from kdissect.insight.logs import INTERNAL, Logs, OpenTransaction
from kdissect.insight.rule import Facts, rule
from kdissect.wording import plural

_MS = 1_000_000


def _place(row: Row) -> str:
    return row["topic"] if row["partition"] is None else f"{row['topic']}-{row['partition']}"


def _subject(row: Row) -> FindingSubject:
    return FindingSubject(topic=row["topic"], partition=row["partition"])


@rule("log-transaction-open", CRITICAL, LIKELY, needs=(Logs,), open_s=900)
def transaction_open(facts: Facts) -> Iterator[Finding]:
    """A transaction has records and no end."""
    rows = facts.rows(Logs)
    newest = max((row["newest_ms"] for row in rows if row["newest_ms"] is not None), default=0)
    for row in rows:
        old = [each for each in row["open"] if _age_s(each, newest) >= facts.limit("open_s")]
        young = [each for each in row["open"] if each not in old]
        if old:
            yield _open(facts, row, old, newest, CRITICAL, LIKELY)
        elif young:
            yield _open(facts, row, young, newest, NOTICE, POSSIBLE)


def _age_s(each: OpenTransaction, newest_ms: int) -> float:
    return 0.0 if each.last_ms is None else (newest_ms - each.last_ms) / 1_000


def _open(
    facts: Facts, row: Row, found: list[OpenTransaction], newest_ms: int, severity: str, confidence: str
) -> Finding:
    first = found[0]
    age = max(_age_s(each, newest_ms) for each in found)
    told = f"was not ended for {age:,.0f} s" if severity == CRITICAL else "is not ended where the log ends"
    more = "" if len(found) == 1 else f", and {plural(len(found) - 1, 'other')} more"
    return facts.finding(
        _subject(row),
        f"A transaction of producer {first.producer_id} in {_place(row)} {told}: readers of committed "
        f"records get nothing from offset {first.offset:,} on{more}.",
        severity=severity,
        confidence=confidence,
        count=len(found),
        measure=age,
        unit="s",
        threshold=facts.limit("open_s"),
        first_ns=None if first.last_ms is None else first.last_ms * _MS,
        last_ns=newest_ms * _MS,
    )


@rule("log-offset-gaps", NOTICE, POSSIBLE, needs=(Logs,))
def offset_gaps(facts: Facts) -> Iterator[Finding]:
    """Offsets between batches are missing."""
    for row in facts.rows(Logs):
        if row["gaps"] and row["topic"] not in INTERNAL:
            yield facts.finding(
                _subject(row),
                f"{_place(row)} lacks {plural(row['missing'], 'offset')} in "
                f"{plural(row['gaps'], 'place')}, the first at offset {row['gap_offset']:,}.",
                count=row["gaps"],
                measure=row["missing"],
                unit="offsets",
            )


@rule("log-damaged", CRITICAL, CERTAIN, needs=(Logs,))
def damaged(facts: Facts) -> Iterator[Finding]:
    """A batch does not match its checksum."""
    for row in facts.rows(Logs):
        if row["bad"]:
            yield facts.finding(
                _subject(row),
                f"{plural(row['bad'], 'batch', 'batches')} of {_place(row)} "
                f"{'does' if row['bad'] == 1 else 'do'} not match the checksum, the first at offset "
                f"{row['bad_offset']:,}.",
                count=row["bad"],
                measure=row["bad"],
                unit="batches",
            )


@rule(
    "log-skew",
    WARNING,
    CERTAIN,
    needs=(Logs,),
    partitions=4,
    records=10_000,
    bytes=10 << 20,
    share=0.3,
    times=3,
)
def skew(facts: Facts) -> Iterator[Finding]:
    """One partition holds most of a topic."""
    topics: dict[str, list[Row]] = {}
    for row in facts.rows(Logs):
        if row["topic"] not in INTERNAL and row["partition"] is not None:
            topics.setdefault(row["topic"], []).append(row)
    for topic, rows in topics.items():
        total, records = sum(row["bytes"] for row in rows), sum(row["records"] for row in rows)
        enough = records >= facts.limit("records") or total >= facts.limit("bytes")
        if len(rows) < facts.limit("partitions") or not enough:
            continue
        largest = max(rows, key=lambda row: row["bytes"])
        share = largest["bytes"] / total
        least = max(facts.limit("share"), facts.limit("times") / len(rows))
        if share >= least:
            yield facts.finding(
                _subject(largest),
                f"{_place(largest)} holds {100 * share:.0f} % of the bytes of the {len(rows):,} partitions "
                f"of {topic} in this directory.",
                measure=100 * share,
                unit="%",
                threshold=100 * least,
            )


@rule("log-large-batch", NOTICE, LIKELY, needs=(Logs,), bytes=1_048_588)
def large_batch(facts: Facts) -> Iterator[Finding]:
    """A batch is larger than the default limits allow."""
    for row in facts.rows(Logs):
        if row["largest_bytes"] > facts.limit("bytes"):
            yield facts.finding(
                _subject(row),
                f"A batch of {row['largest_bytes']:,} bytes is in {_place(row)} at offset "
                f"{row['largest_offset']:,}; brokers and clients with default limits would refuse it.",
                measure=row["largest_bytes"],
                unit="bytes",
                threshold=facts.limit("bytes"),
            )
