"""The screen of topics and partitions."""

from __future__ import annotations

from collections.abc import Iterable

from kdissect.analysis.fold import Row
from kdissect.analysis.summary import by_topic
from kdissect.present.form import plural, size
from kdissect.tui.feed.counting import Asked
from kdissect.tui.filtering import quoted
from kdissect.tui.lists.figures import (
    Column,
    Figures,
    graded,
    grave_tone,
    in_bytes,
    listed,
    number,
    rare,
    rate,
    words,
)
from kdissect.tui.pages.statistics import GroupedPage
from kdissect.tui.statistics import Counted

TOPIC, PARTITION = "topic", "partition"


def _batch_sizes(row: Row) -> str:
    smallest, largest = row["batch_bytes_min"], row["batch_bytes_max"]
    if smallest is None or smallest == largest:
        return "" if smallest is None else size(smallest)
    return f"{size(smallest)}…{size(largest)}"


def _lag(row: Row) -> str:
    if row["lag_min"] is None or row["lag_min"] == row["lag_max"]:
        return "" if row["lag_max"] is None else f"{row['lag_max']:,}"
    return f"{row['lag_min']:,}…{row['lag_max']:,}"


TOPIC_COLUMNS = (
    words("Topic", "topic", least=20),
    number("Part", "partitions"),
    number("Produced", "produced_records", 3),
    rate("rec/s in", "produced_records_per_s", 1),
    number("Fetched", "fetched_records", 3),
    rate("rec/s out", "fetched_records_per_s", 1),
    in_bytes("Bytes in", "produced_bytes", 2),
    in_bytes("Bytes out", "fetched_bytes", 2),
    in_bytes("Replicated", "replicated_bytes", 8),
    listed("Codec", "codecs", 4, most=16),
    Column("Batch", _batch_sizes, lambda row: row["batch_bytes_max"], 6),
    Column("Lag", _lag, lambda row: row["lag_max"]),
    *graded(),
)

PARTITION_COLUMNS = (
    words("Topic", "topic", least=20),
    number("Part", "partition"),
    words("Direction", "direction", most=10),
    number("Exchanges", "exchanges", 5),
    number("Batches", "batches", 4),
    number("Records", "records"),
    rate("rec/s", "records_per_s", 1),
    in_bytes("Bytes", "bytes"),
    Column(
        "Bytes/s",
        lambda row: "" if row["bytes_per_s"] is None else f"{size(round(row['bytes_per_s']))}/s",
        lambda row: row["bytes_per_s"],
        3,
    ),
    listed("Codec", "codecs", 2, most=16),
    Column("Batch", _batch_sizes, lambda row: row["batch_bytes_max"], 6),
    Column("Lag", lambda row: _lag(row) if row["direction"] == "fetch" else "", lambda row: row["lag_max"]),
    rare("Control", "control_batches", 8),
    rare("Cut", "partial_batches", 8),
    *graded(),
)


def figures() -> Figures:
    """The rows, empty."""
    return Figures(
        TOPIC_COLUMNS,
        lambda row: (row["topic"], row.get("partition"), row.get("direction")),
        grave_tone,
    )


def topic_rows(topics: Iterable[Row], positions: Iterable[Row]) -> list[Row]:
    """A row a topic."""
    return by_topic(topics, positions)


def partition_rows(topics: Iterable[Row], positions: Iterable[Row]) -> list[Row]:
    """A row a partition and direction, with the lag of who fetches it."""
    by_partition: dict[tuple[str | None, int | None], list[Row]] = {}
    for row in positions:
        by_partition.setdefault((row["topic"], row["partition"]), []).append(row)
    out = []
    for row in topics:
        here = by_topic((), by_partition.get((row["topic"], row["partition"]), ()))
        lag = (here[0]["lag_min"], here[0]["lag_max"]) if here else (None, None)
        out.append({**row, "lag_min": lag[0], "lag_max": lag[1]})
    return out


ASKED = ("topics", "positions")


class TopicsPage(GroupedPage):
    """Topics, or their partitions; Enter shows the exchanges of one."""

    GROUPINGS = (TOPIC, PARTITION)

    def figures(self) -> Figures:
        return figures()

    def asked_by(self, grouping: str) -> Asked:
        return ASKED

    def fill(self, counted: Counted) -> None:
        tables = counted.tables
        if self.grouping == TOPIC:
            rows = topic_rows(tables["topics"], tables["positions"])
            self.rows.show(rows, TOPIC_COLUMNS)
        else:
            rows = partition_rows(tables["topics"], tables["positions"])
            self.rows.show(rows, PARTITION_COLUMNS)

    def what(self) -> str:
        one = "topic" if self.grouping == TOPIC else "partition and direction"
        many = None if self.grouping == TOPIC else "partitions and directions"
        return plural(len(self.rows), one, many)

    def filter_of(self, row: Row) -> str | None:
        if row["topic"] is None:
            return None
        text = f"topic == {quoted(row['topic'])}"
        if row.get("partition") is not None:
            text += f" and partition == {row['partition']}"
        return text
