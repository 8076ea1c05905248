"""Records that groups fetch more than once. Rules judge by this. Whether a record was processed twice is not
on the wire."""

from __future__ import annotations

from typing import Any

from kdissect.analysis.declared import (
    GROUP_COLUMN,
    PARTITION_COLUMN,
    TOPIC_CLUSTER_COLUMN,
    TOPIC_COLUMN,
    column,
    time_column,
)
from kdissect.analysis.fold import Row, View
from kdissect.analysis.transit import Transit


class Rereads(View[Transit]):
    """A row for each group, topic and partition."""

    basis_type = Transit
    name = "rereads"
    about = "records that the members of a group fetched more than once"
    columns = (
        GROUP_COLUMN,
        TOPIC_COLUMN,
        TOPIC_CLUSTER_COLUMN,
        PARTITION_COLUMN,
        column("records", "int64", "different offsets that its members fetched"),
        column("again", "int64", "repeated fetches of these offsets"),
        column("clients", "texts", "client ids of the members that fetched again"),
        time_column("first_ns", "time of the first repeated fetch"),
        time_column("last_ns", "time of the last repeated fetch"),
    )

    def result(self) -> list[Row]:
        rows = [
            {
                "group": group,
                "topic": topic,
                "cluster_id": cluster or None,
                "partition": partition,
                "records": found.records,
                "again": found.again,
                "clients": found.clients,
                "first_ns": found.first_ns,
                "last_ns": found.last_ns,
            }
            for group, (topic, partition, cluster), found in self.basis.read_by_groups()
            if found.again
        ]
        return sorted(rows, key=_order)


def _order(row: Row) -> tuple[Any, ...]:
    return row["group"], row["topic"] or "", row["partition"], row["cluster_id"] or ""
