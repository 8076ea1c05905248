"""The names of groups, topics and transactional ids, with their cluster if several clusters use the name."""

from __future__ import annotations

from collections.abc import Iterable

from kdissect.analysis.fold import Row

QualifiedName = tuple[str | None, str | None]
"""A name, and a cluster if the name alone is ambiguous."""


class NamesOfClusters:
    """The names in a column of some rows.

    :param rows: rows with that column and ``cluster_id``.
    :param column: ``group``, ``topic`` or ``transactional_id``.
    """

    def __init__(self, rows: Iterable[Row], column: str) -> None:
        clusters: dict[str | None, set[str | None]] = {}
        for row in rows:
            clusters.setdefault(row[column], set()).add(row["cluster_id"])
        self._column = column
        self.shared = frozenset(name for name, found in clusters.items() if len(found) > 1)
        """Names that several clusters have."""

    def name_of(self, row: Row) -> QualifiedName:
        """The name of a row, and its cluster if the name alone is ambiguous."""
        return row[self._column], self.cluster_of(row)

    def cluster_of(self, row: Row) -> str | None:
        """The cluster of a row, if another cluster has the name too."""
        return row["cluster_id"] if row[self._column] in self.shared else None

    def text(self, row: Row, unknown: str = "") -> str:
        """The name in words.

        :param unknown: the text for an unknown name.
        """
        name, cluster = self.name_of(row)
        name = unknown if name is None else name
        return name if cluster is None else f"{name} of {cluster}"


def with_ambiguous_clusters(rows: Iterable[Row], column: str) -> list[Row]:
    """Rows that name a cluster only if another one has the same name in a column."""
    rows = list(rows)
    names = NamesOfClusters(rows, column)
    return [{**row, "cluster_id": names.cluster_of(row)} for row in rows]
