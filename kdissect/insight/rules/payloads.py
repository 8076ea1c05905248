"""Rules on the contents of records: mixed formats, unknown schemas, needless bytes, keys.

These rules run with ``explain --deep`` only. They name topics, formats, schema ids and producers, and never
the contents of a key or value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kdissect.analysis.cluster import ClusterConfigs, ClusterTopics
from kdissect.analysis.fold import Row
from kdissect.analysis.payloads import MOST_UNKNOWN_IDS, NULL, Payloads
from kdissect.insight.causes import explains
from kdissect.insight.finding import CERTAIN, INFO, LIKELY, NOTICE, WARNING, Finding, FindingSubject
from kdissect.insight.grouping import group_rows
from kdissect.insight.rule import Facts, rule
from kdissect.insight.words import named, of_numbers, share
from kdissect.lazy import Later
from kdissect.wording import plural

if TYPE_CHECKING:
    from kdissect.payload import decoder
else:
    decoder = Later("kdissect.payload.decoder")

explains("payload-mixed", "payload-undecodable", shares=("topic",))
explains("schema-unknown", "payload-undecodable", shares=("topic",))
explains("hot-key", "hot-partition", shares=("topic", "partition"))

FRAMED, JSON, TEXT, BINARY = "with a schema id", "JSON", "text", "binary"
_TEXTS = ("text", "uuid", "xml", "empty")
_SAYS_ITSELF = ("avro-file", "java", "smile")


@rule("payload-mixed", WARNING, LIKELY, needs=(Payloads,), most_pct=20, at_least=10)
def payload_mixed(facts: Facts) -> Iterator[Finding]:
    """A topic holds records in several formats."""
    for (topic, part), rows in group_rows(_unique_rows(facts), "topic", "part").items():
        known = [row for row in rows if row["format"] not in (NULL, "empty", "raw")]
        counts: dict[str, int] = {}
        for row in known:
            family = _family(row)
            counts[family] = counts.get(family, 0) + row["records"]
        total = sum(counts.values())
        if len(counts) < 2 or total < facts.limit("at_least"):
            continue
        usual = max(counts, key=lambda family: counts[family])
        odd = [row for row in known if _family(row) != usual and _is_odd(_family(row), usual)]
        count = sum(row["records"] for row in odd)
        if not count or count * 100 > facts.limit("most_pct") * total:
            continue
        first = min(odd, key=lambda row: row["first_ns"])
        producers = sorted({name for row in odd for name in row["producers"]})
        by = f" {named(producers)} wrote {'it' if count == 1 else 'them'}." if producers else ""
        kinds = named(sorted({_family(row) for row in odd}))
        yield facts.finding(
            FindingSubject(topic=topic),
            f"{total - count:,} {part}s of {topic} are {usual}, but {count:,} {_is(count)} {kinds}, "
            f"the first at {_where(first)}.{by}",
            count=count,
            measure=count,
            unit="records",
            threshold=1,
            **_evidence(odd),
        )


def _is_odd(family: str, usual: str) -> bool:
    """Whether values of one format do not belong in a topic of another format. Text may be anything, even
    JSON, and any bytes may look like a number or start like a framing."""
    if usual == TEXT:
        return family not in (JSON, BINARY, FRAMED)
    return usual != BINARY or family == JSON


@rule("hot-key", WARNING, CERTAIN, needs=(Payloads, ClusterTopics), share_pct=20, records=1000, partitions=2)
def hot_key(facts: Facts) -> Iterator[Finding]:
    """One key has so many records that its partition gets most of the topic's records. The finding names a
    record with the key, and not the key."""
    partitions = {row["topic"]: row["partitions"] or 0 for row in facts.rows(ClusterTopics)}
    keys = [row for row in _unique_rows(facts) if row["part"] == "key"]
    for (topic,), rows in group_rows(keys, "topic").items():
        total = sum(row["records"] for row in rows)
        worst = max(rows, key=lambda row: row["top_records"] or 0)
        count = worst["top_records"] or 0
        if total < facts.limit("records") or count * 100 < facts.limit("share_pct") * total:
            continue
        number, partition, offset = partitions.get(topic, 0), worst["top_partition"], worst["top_offset"]
        if number < facts.limit("partitions") or partition is None:
            continue  # all records go there anyway, or not all records of this key do
        place = f"{topic}-{partition}"
        which = "" if offset is None else f" The record at offset {offset:,} of {place} has this key."
        producers = f" Its producers: {named(worst['producers'])}." if worst["producers"] else ""
        yield facts.finding(
            FindingSubject(topic=topic, partition=partition),
            f"One key is in {share(count, total)} of the records of {topic} ({count:,} of {total:,}). All "
            f"of them go to {place}, one of {number} partitions.{which}{producers}",
            count=count,
            measure=100 * count / total,
            unit="% of the records",
            threshold=facts.limit("share_pct"),
            **_evidence([worst]),
        )


@rule("payload-compressed-twice", NOTICE, CERTAIN, needs=(Payloads,), share_pct=90, at_least=10)
def payload_compressed_twice(facts: Facts) -> Iterator[Finding]:
    """Values are compressed before their batches are compressed again."""
    values = [row for row in _unique_rows(facts) if row["part"] == "value" and row["format"] != NULL]
    for (topic,), rows in group_rows(values, "topic").items():
        packed = [row for row in rows if row["compression"] is not None]
        count, total = sum(row["records"] for row in packed), sum(row["records"] for row in rows)
        twice = sum(row["packed_records"] for row in packed)
        if total < facts.limit("at_least") or count * 100 < facts.limit("share_pct") * total or not twice:
            continue
        codecs = named(sorted({row["compression"] for row in packed}))
        yield facts.finding(
            FindingSubject(topic=topic),
            f"{count:,} of {total:,} values of {topic} are compressed by the application ({codecs}), and "
            f"{twice:,} of them are in batches that are compressed once more.",
            count=twice,
            measure=100 * count / total,
            unit="% of the values",
            threshold=facts.limit("share_pct"),
            **_evidence(packed),
        )


@rule("schema-unknown", WARNING, CERTAIN, needs=(Payloads,), most_ids=MOST_UNKNOWN_IDS)
def schema_unknown(facts: Facts) -> Iterator[Finding]:
    """Records name a schema id that the registry does not have."""
    # Schemas of AWS, Azure and others are known only if the user gave them.
    framed = [
        row
        for row in _unique_rows(facts)
        if row["registry"] in decoder.ASKABLE or (row["registry"] is not None and row["schemas"] == "given")
    ]
    if framed and all(row["schemas"] is None for row in framed):
        facts.cannot_judge("needs --schemas or --registry, or the topic _schemas from its beginning")
        return
    # A schema that is there and broken makes values undecodable.
    unknown = [
        row
        for row in framed
        if row["format"] == "unknown" and row["subject"] is None and not row["undecodable"]
    ]
    for (topic, part), rows in group_rows(unknown, "topic", "part").items():
        ids = sorted({str(row["schema_id"] or row["schema_guid"]) for row in rows})
        if len(ids) > facts.limit("most_ids"):
            continue  # numbers that start like a framing
        count = sum(row["records"] for row in rows)
        first = min(rows, key=lambda row: row["first_ns"])
        is_given = first["schemas"] == "given"
        where = "among the schemas that are given" if is_given else "in the schema registry"
        yield facts.finding(
            FindingSubject(topic=topic),
            f"{plural(count, part)} of {topic} {'names' if count == 1 else 'name'} "
            f"{'schema' if len(ids) == 1 else 'schemas'} {named(ids)}, "
            f"which {'is' if len(ids) == 1 else 'are'} not {where}. The first is at {_where(first)}.",
            confidence=LIKELY if is_given else CERTAIN,
            count=count,
            measure=count,
            unit="records",
            threshold=1,
            **_evidence(rows),
        )


@rule("payload-undecodable", WARNING, CERTAIN, needs=(Payloads,))
def payload_undecodable(facts: Facts) -> Iterator[Finding]:
    """Records do not have the form of the schema that they name."""
    bad = [row for row in _unique_rows(facts) if row["undecodable"]]
    for (topic, part), rows in group_rows(bad, "topic", "part").items():
        count = sum(row["undecodable"] for row in rows)
        problems = sorted({problem for row in rows for problem in row["problems"]})
        yield facts.finding(
            FindingSubject(topic=topic),
            f"{plural(count, part)} of {topic} {_trouble(problems[0], count)}.",
            count=count,
            measure=count,
            unit="records",
            threshold=1,
            **_evidence(rows),
        )


@rule("payload-schema-inside", INFO, CERTAIN, needs=(Payloads,), at_least=10, share_pct=30)
def payload_schema_inside(facts: Facts) -> Iterator[Finding]:
    """Every message contains its schema as JSON."""
    inside = [row for row in _unique_rows(facts) if row["schema_bytes"]]
    for (topic,), rows in group_rows(inside, "topic").items():
        records = sum(row["records"] for row in rows if row["part"] == "value")
        size, schema = sum(row["bytes"] for row in rows), sum(row["schema_bytes"] for row in rows)
        share = 100 * schema / size
        if records < facts.limit("at_least") or share < facts.limit("share_pct"):
            continue
        yield facts.finding(
            FindingSubject(topic=topic),
            f"Each of {plural(records, 'record')} of {topic} has its JSON schema inside: {schema:,} of "
            f"{size:,} bytes, {share:.0f} %, repeat the same text.",
            count=records,
            measure=share,
            unit="% of the bytes",
            threshold=facts.limit("share_pct"),
            **_evidence(rows),
        )


@rule("tombstones", INFO, CERTAIN, needs=(Payloads, ClusterConfigs), at_least=10, share_pct=10)
def tombstones(facts: Facts) -> Iterator[Finding]:
    """Many values are null in a topic that is not compacted."""
    policies = {
        row["resource"]: row["value"]
        for row in facts.rows(ClusterConfigs)
        if (row["resource_type"], row["config"]) == ("topic", "cleanup.policy") and row["value"]
    }
    values = [row for row in _unique_rows(facts) if row["part"] == "value"]
    for (topic,), rows in group_rows(values, "topic").items():
        policy = policies.get(topic)
        if policy is None or "compact" in policy:
            continue
        nulls = [row for row in rows if row["format"] == NULL]
        count, total = sum(row["records"] for row in nulls), sum(row["records"] for row in rows)
        if count < facts.limit("at_least") or count * 100 < facts.limit("share_pct") * total:
            continue
        yield facts.finding(
            FindingSubject(topic=topic),
            f"{count:,} of {total:,} values of {topic} are null, but the topic is not compacted "
            f"(cleanup.policy={policy}): they delete nothing.",
            count=count,
            measure=100 * count / total,
            unit="% of the values",
            threshold=facts.limit("share_pct"),
            **_evidence(nulls),
        )


def _unique_rows(facts: Facts) -> list[Row]:
    """The rows in which each record counts once: produced records, and for topics without captured producers,
    fetched records."""
    rows = facts.rows(Payloads)
    written = {row["topic"] for row in rows if row["direction"] == "produce"}
    return [row for row in rows if row["direction"] == "produce" or row["topic"] not in written]


def _family(row: Row) -> str:
    """The family of formats that one deserializer of a consumer can read."""
    if row["registry"] is not None:
        return FRAMED
    if row["compression"] is not None:
        return f"packed with {row['compression']}"
    if row["format"] == "json":
        return JSON
    if row["format"] in _TEXTS:
        return TEXT
    return str(row["format"]) if row["format"] in _SAYS_ITSELF else BINARY


def _trouble(problem: str, count: int) -> str:
    what, _, reason = problem.partition(": ")
    if what != decoder.MISFIT:
        return f"cannot be decoded: {problem}"
    verb, whose = ("does", "its") if count == 1 else ("do", "their")
    return f"{verb} not match {whose} schema: {reason}"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _where(row: Row) -> str:
    offset, partition = row["first_offset"], row["first_partition"]
    if offset is None:
        return "an offset that is not known" if partition is None else f"partition {partition}"
    return f"offset {offset:,} of partition {partition}"


def _evidence(rows: Iterable[Row]) -> dict[str, object]:
    rows = list(rows)
    exchanges = sorted({number for row in rows for number in row["exchanges"]})
    return {
        "first_ns": min(row["first_ns"] for row in rows),
        "last_ns": max(row["last_ns"] for row in rows),
        "exchanges": exchanges,
        "filter": of_numbers(exchanges[:8]),
    }
