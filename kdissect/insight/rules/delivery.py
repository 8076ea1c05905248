"""Where records spend their time on the way from producer to consumer."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kdissect.analysis.delivery import Delivery
from kdissect.analysis.fold import MILLISECOND
from kdissect.analysis.lingers import MARGIN, Lingers
from kdissect.insight.finding import CERTAIN, NOTICE, Finding, FindingSubject
from kdissect.insight.grouping import group_rows
from kdissect.insight.rule import Facts, rule
from kdissect.insight.words import quoted, span

_OF_STREAMS = re.compile(r"-StreamThread-\d+(-\d+_\d+)?-producer$")


@rule("linger-long", NOTICE, CERTAIN, needs=(Lingers, Delivery), linger_ms=500, share=0.5, records=20)
def linger_long(facts: Facts) -> Iterator[Finding]:
    """Records are late because the producer waits for more of them."""
    least_ns = facts.limit("linger_ms") * MILLISECOND
    lingering = {row["topic"] for row in facts.rows(Lingers) if MARGIN * row["linger_max_ns"] >= least_ns}
    if not lingering:
        return  # no topic needs the rows of delivery
    delivered = (row for row in facts.rows(Delivery) if row["topic"] in lingering)
    for (topic,), rows in group_rows(delivered, "topic").items():
        waiting = [row for row in rows if _waits(facts, row)]
        if not waiting:
            continue
        row = max(waiting, key=lambda each: each["records"])
        producers = sorted({name for each in waiting for name in each["producers"]})
        linger, whole = row["linger_p50_ns"], row["create_to_fetched_p50_ns"]
        where = f" and client_id == {quoted(producers[0])}" if len(producers) == 1 else ""
        yield facts.finding(
            FindingSubject(client_id=producers[0] if len(producers) == 1 else None, topic=topic),
            f"The producer keeps the first record of a batch for {span(linger)} before it sends the batch; "
            f"the way to the consumer takes {span(row['send_to_fetched_p50_ns'])}. Half of the records are "
            f"older than {span(whole)} when they are read.",
            count=sum(each["sets"] for each in waiting),
            measure=linger / MILLISECOND,
            unit="ms",
            threshold=facts.limit("linger_ms"),
            filter=f"api == Produce and topic == {quoted(topic or '')}{where}",
        )


def _waits(facts: Facts, row: dict[str, object]) -> bool:
    """Whether records spend most of the time in the producer, because it waits on purpose: the newest record
    of a batch is young when it is sent. If all records are old, their timestamps are not the times of their
    creation. Kafka Streams writes records with the timestamps of its input."""
    linger, whole, youngest = (
        row[name] for name in ("linger_p50_ns", "create_to_fetched_p50_ns", "youngest_p50_ns")
    )
    if not (isinstance(linger, int) and isinstance(whole, int) and isinstance(youngest, int)):
        return False
    assert isinstance(row["records"], int)
    producers = row["producers"]
    assert isinstance(producers, list)
    if producers and all(_OF_STREAMS.search(name) for name in producers):
        return False
    return (
        row["send_to_fetched_p50_ns"] is not None
        and row["records"] >= facts.limit("records")
        and linger >= facts.limit("linger_ms") * MILLISECOND
        and linger >= facts.limit("share") * whole
        and 2 * youngest < linger
    )
