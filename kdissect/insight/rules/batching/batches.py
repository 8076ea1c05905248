"""How many records travel together, in which format, and how evenly they are spread."""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.analysis.cluster import ClusterTopics
from kdissect.analysis.connections import Connections
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.medians import median_low
from kdissect.analysis.producers import Producers
from kdissect.analysis.topics import Topics
from kdissect.insight.finding import CERTAIN, INFO, NOTICE, WARNING, Finding, FindingSubject
from kdissect.insight.rule import Facts, rule
from kdissect.insight.rules.produce import common_fields, group_by
from kdissect.insight.words import having, named, share, showing
from kdissect.wording import plural

OWN_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata")


def _median(rows: list[Row], name: str) -> int:
    """The median of the medians of several rows, each counted as often as its row has batches."""
    weighed = sorted((row[name], row["batches"]) for row in rows if row[name] is not None)
    left = sum(batches for _, batches in weighed) / 2
    for value, batches in weighed:
        left -= batches
        if left <= 0:
            return int(value)
    return 0


@rule("tiny-batches", WARNING, CERTAIN, needs=(Producers,), batches=500, per_s=25, records=2, bytes=1024)
def tiny_batches(facts: Facts) -> Iterator[Finding]:
    """Records travel nearly one by one."""
    for subject, rows in group_by(facts.rows(Producers), "client", "client_id", "topic").items():
        batches = sum(row["batches"] for row in rows)
        from_ns, to_ns = min(row["first_ns"] for row in rows), max(row["last_ns"] for row in rows)
        lasted_ns = to_ns - from_ns - facts.context.halted_ns(from_ns, to_ns)
        if batches < facts.limit("batches") or (batches - 1) * SECOND < facts.limit("per_s") * lasted_ns:
            continue
        records, size = _median(rows, "records_p50"), _median(rows, "bytes_p50")
        if records > facts.limit("records") or size > facts.limit("bytes"):
            continue
        rate = batches * SECOND / max(lasted_ns, SECOND)
        whole = sum(row["bytes"] for row in rows)
        yield facts.finding(
            subject,
            f"{subject.client_id or 'A producer'} sends the records of {subject.topic} nearly one by one: "
            f"{batches:,} batches, {rate:,.0f} a second. Half of them have at most "
            f"{plural(records, 'record')} and {size:,} bytes. {share(_HEADER * batches, whole)} of all bytes "
            "are batch headers.",
            count=batches,
            measure=records,
            unit="records/batch",
            threshold=facts.limit("records"),
            filter=having(client_id=subject.client_id, api="Produce"),
            **common_fields(rows),
        )


_HEADER = 61
"""The size of a batch without its records."""


@rule("mixed-codecs", INFO, CERTAIN, needs=(Producers,), share_pct=10)
def mixed_codecs(facts: Facts) -> Iterator[Finding]:
    """Producers of a topic disagree on compression."""
    for subject, rows in group_by(facts.rows(Producers), "topic").items():
        batches = sum(row["batches"] for row in rows)
        by_codec: dict[str, list[Row]] = {}
        for row in rows:
            if len(row["codecs"]) == 1:
                by_codec.setdefault(row["codecs"][0], []).append(row)
        common = {
            codec: some
            for codec, some in by_codec.items()
            if 100 * sum(row["batches"] for row in some) >= facts.limit("share_pct") * batches
        }
        clients = {(row["client"], row["client_id"]) for some in common.values() for row in some}
        if len(common) < 2 or len(clients) < 2:
            continue
        told = []
        for codec, some in sorted(common.items()):
            who = named(sorted({row["client_id"] or "a client" for row in some}))
            told.append(f"{'no compression' if codec == 'none' else codec} by {who}")
        yield facts.finding(
            subject,
            f"Producers of {subject.topic} compress in different ways: {named(told)}.",
            count=len(common),
            measure=len(common),
            unit="codecs",
            filter=having(topic=subject.topic, api="Produce"),
            **common_fields(rows),
        )


@rule("broker-recompresses", WARNING, CERTAIN, needs=(Producers,))
def broker_recompresses(facts: Facts) -> Iterator[Finding]:
    """The broker unpacks what producers compressed, and compresses it again."""
    changed = [row for row in facts.rows(Producers) if row["recompressed"] and not row["converted"]]
    for subject, rows in group_by(changed, "topic").items():
        clients = sorted({row["client_id"] for row in rows if row["client_id"]})
        before = sorted({codec for row in rows for codec in row["codecs"]})
        after = sorted({codec for row in rows for codec in row["codecs_fetched"]})
        count = sum(row["recompressed"] for row in rows)
        yield facts.finding(
            subject._replace(client_id=clients[0] if len(clients) == 1 else None),
            f"Batches of {subject.topic} are produced with {named(before)} and read with {named(after)} "
            f"({plural(count, 'batch', 'batches')}). The broker unpacks and packs each one again, which "
            "costs processor time and delays writes.",
            count=count,
            measure=count,
            unit="batches",
            filter=having(topic=subject.topic),
            **common_fields(rows),
        )


@rule("down-converted", WARNING, CERTAIN, needs=(Producers,))
def down_converted(facts: Facts) -> Iterator[Finding]:
    """Readers get records in an older format than they were written in."""
    for subject, rows in group_by(
        (row for row in facts.rows(Producers) if _is_below(row["magic_fetched"], row["magic"])), "topic"
    ).items():
        yield facts.finding(
            subject,
            f"Records of {subject.topic} are written in message format {rows[0]['magic']} and read in "
            f"message format {rows[0]['magic_fetched']}, so the broker converts them. Either old clients "
            "read them, or the topic keeps the old format.",
            count=sum(row["converted"] for row in rows),
            measure=sum(row["converted"] for row in rows),
            unit="batches",
            filter=showing(
                (number for row in rows for number in row["exchanges"]),
                having(topic=subject.topic, api="Fetch"),
            ),
            **common_fields(rows),
        )


@rule("up-converted", NOTICE, CERTAIN, needs=(Producers,))
def up_converted(facts: Facts) -> Iterator[Finding]:
    """Producers write an older format than the broker keeps."""
    for subject, rows in group_by(
        (row for row in facts.rows(Producers) if _is_below(row["magic"], row["magic_fetched"])),
        *("client", "client_id", "topic"),
    ).items():
        yield facts.finding(
            subject,
            f"{subject.client_id or 'A producer'} writes to {subject.topic} in the old format "
            f"{rows[0]['magic']}: the "
            "broker rewrites every batch.",
            count=sum(row["converted"] for row in rows),
            measure=sum(row["converted"] for row in rows),
            unit="batches",
            filter=having(client_id=subject.client_id, api="Produce"),
            **common_fields(rows),
        )


def _is_below(one: int | None, other: int | None) -> bool:
    return one is not None and other is not None and one < other


@rule(
    "hot-partition",
    WARNING,
    CERTAIN,
    needs=(Topics, Producers, ClusterTopics),
    partitions=4,
    records=1000,
    bytes=10 << 20,
    times=3,
    share_pct=30,
)
def hot_partition(facts: Facts) -> Iterator[Finding]:
    """One partition gets most of what is written to a topic."""
    known = {row["topic"]: row["partitions"] or 0 for row in facts.rows(ClusterTopics)}
    produced: dict[str, list[Row]] = {}
    for row in facts.rows(Topics):
        if row["direction"] == "produce" and row["topic"] and row["partition"] is not None:
            produced.setdefault(row["topic"], []).append(row)
    for topic, rows in produced.items():
        number = max(known.get(topic, 0), len(rows))
        records, size = sum(row["records"] for row in rows), sum(row["bytes"] for row in rows)
        if topic in OWN_TOPICS or number < facts.limit("partitions"):
            continue
        if records < facts.limit("records") and size < facts.limit("bytes"):
            continue
        name, whole = ("records", records) if records >= facts.limit("records") else ("bytes", size)
        least = max(facts.limit("times") / number, facts.limit("share_pct") / 100) * whole
        for row in rows:
            if row[name] < least:
                continue
            writers = [
                each
                for each in facts.rows(Producers)
                if (each["topic"], each["partition"]) == (topic, row["partition"])
            ]
            writers.sort(key=lambda each: -each["records"])
            who = writers[0]["client_id"] if writers else None
            mostly = f", mostly from {who}" if who else ""
            yield facts.finding(
                FindingSubject(topic=topic, partition=row["partition"]),
                f"{topic}-{row['partition']} gets {share(row[name], whole)} of the {name} of "
                f"{topic}{mostly}. An even share of its {plural(number, 'partition')} would be "
                f"{share(1, number)}.",
                count=row["records"],
                measure=100 * row[name] / whole,
                unit="%",
                threshold=100 * least / whole,
                first_ns=row["first_ns"],
                last_ns=row["last_ns"],
                exchanges=writers[0]["exchanges"] if writers else (),
                filter=having(topic=topic, api="Produce"),
            )


@rule("hot-broker", NOTICE, CERTAIN, needs=(Connections,), bytes=100 << 20, times=2)
def hot_broker(facts: Facts) -> Iterator[Finding]:
    """One broker serves most of the traffic."""
    traffic: dict[str, int] = {}
    for row in facts.rows(Connections):
        if row["protocol"] == "kafka":
            size = (row["request_bytes"] or 0) + (row["response_bytes"] or 0)
            traffic[row["broker"]] = traffic.get(row["broker"], 0) + size
    whole = sum(traffic.values())
    if whole < facts.limit("bytes") or len(traffic) < 3:
        return
    typical = median_low(traffic.values())
    for broker, size in traffic.items():
        if size >= facts.limit("times") * whole / len(traffic):
            yield facts.finding(
                FindingSubject(broker=broker),
                f"Broker {broker} carries {share(size, whole)} of {whole:,} bytes of {len(traffic)} "
                f"brokers; the median broker carries {share(typical, whole)}.",
                measure=100 * size / whole,
                unit="%",
                threshold=100 * facts.limit("times") / len(traffic),
                first_ns=facts.context.first_ns,
                last_ns=facts.context.last_ns,
                filter=having(broker=broker),
            )
