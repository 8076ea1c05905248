"""Whether compression is used where it would help, and helps where it is used."""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.producers import Producers
from kdissect.insight.finding import CERTAIN, NOTICE, Finding, FindingSubject
from kdissect.insight.rule import Facts, rule
from kdissect.insight.rules.batching.batches import OWN_TOPICS
from kdissect.insight.rules.produce import common_fields, group_by
from kdissect.insight.words import having, named

_MIB = 1 << 20


def _mean(rows: list[Row], ratio: str, weight: dict[int, int]) -> float | None:
    """The mean of a ratio, weighted by bytes; None if no records were examined."""
    known = [(row[ratio], weight[at]) for at, row in enumerate(rows) if row[ratio] is not None]
    whole = sum(size for _, size in known)
    return sum(value * size for value, size in known) / whole if whole else None


def _of_topics(facts: Facts) -> Iterator[tuple[FindingSubject, list[Row]]]:
    for subject, rows in group_by(facts.rows(Producers), "topic").items():
        if subject.topic not in OWN_TOPICS:
            yield subject, rows


def _writers(rows: list[Row]) -> str:
    return named(sorted({row["client_id"] for row in rows if row["client_id"]})) or "its producers"


@rule(
    "uncompressed",
    NOTICE,
    CERTAIN,
    needs=(Producers,),
    bytes=10 * _MIB,
    bytes_per_s=100_000,
    seconds=60,
    compressible_to=0.6,
)
def uncompressed(facts: Facts) -> Iterator[Finding]:
    """Much is sent uncompressed although it would compress well."""
    for subject, all_rows in _of_topics(facts):
        rows = [row for row in all_rows if row["uncompressed_bytes"]]
        if not rows:
            continue
        size = sum(row["uncompressed_bytes"] for row in rows)
        lasted_ns = max(row["last_ns"] for row in rows) - min(row["first_ns"] for row in rows)
        is_steady = (
            lasted_ns >= facts.limit("seconds") * SECOND
            and size * SECOND >= facts.limit("bytes_per_s") * lasted_ns
        )
        if size < facts.limit("bytes") and not is_steady:
            continue
        ratio = _mean(rows, "compressible_to", {at: row["uncompressed_bytes"] for at, row in enumerate(rows)})
        if ratio is None or ratio > facts.limit("compressible_to"):
            continue
        saved = size * (1 - ratio)
        per_day = (
            f", {saved * 86_400 * SECOND / lasted_ns / 1e9:,.1f} GB a day" if lasted_ns >= SECOND else ""
        )
        yield facts.finding(
            subject,
            f"{_writers(rows)} sent {size / _MIB:,.1f} MiB to {subject.topic} uncompressed. Even a fast "
            f"codec compresses a sample of it to {100 * ratio:.0f} %. That saves about {saved / _MIB:,.1f} "
            f"MiB{per_day}, and as much again for each replica and each group that reads it.",
            count=sum(row["batches"] for row in rows),
            measure=100 * ratio,
            unit="%",
            threshold=100 * facts.limit("compressible_to"),
            filter=having(topic=subject.topic, api="Produce"),
            **common_fields(rows),
        )


@rule("compression-ineffective", NOTICE, CERTAIN, needs=(Producers,), bytes=10 * _MIB, ratio=0.9)
def compression_ineffective(facts: Facts) -> Iterator[Finding]:
    """Records are compressed, and hardly get smaller."""
    for subject, all_rows in _of_topics(facts):
        packed = [row["bytes"] - row["uncompressed_bytes"] for row in all_rows]
        rows = [
            row for row, size in zip(all_rows, packed, strict=True) if size > 0 and row["ratio"] is not None
        ]
        sizes = {at: row["bytes"] - row["uncompressed_bytes"] for at, row in enumerate(rows)}
        ratio = _mean(rows, "ratio", sizes)
        if ratio is None or ratio < facts.limit("ratio") or sum(sizes.values()) < facts.limit("bytes"):
            continue
        codecs = sorted({codec for row in rows for codec in row["codecs"]} - {"none"})
        yield facts.finding(
            subject,
            f"{_writers(rows)} compress what they send to {subject.topic} ({named(codecs)}), but a sample "
            f"of it shrinks only to {100 * ratio:.0f} %. Compression costs processor time and saves next "
            "to nothing.",
            count=sum(row["batches"] for row in rows),
            measure=100 * ratio,
            unit="%",
            threshold=100 * facts.limit("ratio"),
            filter=having(topic=subject.topic, api="Produce"),
            **common_fields(rows),
        )
