"""What groups, topics and transactional ids are called: by their names, and by their clusters where several
have one of that name.
"""

from __future__ import annotations

from collections.abc import Iterable

from kdissect.analysis.fold import Row

Whose = tuple[str | None, str | None]
"""A name, and a cluster if the name alone does not tell."""


class NamesOfClusters:
    """The names in a column of some rows.

    :param rows: with that column and ``cluster_id``.
    :param column: ``group``, ``topic`` or ``transactional_id``.
    """

    def __init__(self, rows: Iterable[Row], column: str) -> None:
        clusters: dict[str | None, set[str | None]] = {}
        for row in rows:
            clusters.setdefault(row[column], set()).add(row["cluster_id"])
        self._column = column
        self.shared = frozenset(name for name, found in clusters.items() if len(found) > 1)
        """Names that several clusters have."""

    def whose(self, row: Row) -> Whose:
        """What tells the name of a row from others: the name, and its cluster if that is needed."""
        return row[self._column], self.cluster_of(row)

    def cluster_of(self, row: Row) -> str | None:
        """The cluster of a row, if another cluster has that name too."""
        return row["cluster_id"] if row[self._column] in self.shared else None

    def text(self, row: Row, unknown: str = "") -> str:
        """The name in words.

        :param unknown: stands for a name that is not known.
        """
        name, cluster = self.whose(row)
        name = unknown if name is None else name
        return name if cluster is None else f"{name} of {cluster}"


def told_apart(rows: Iterable[Row], column: str) -> list[Row]:
    """Rows that name a cluster only where another one has the same name in a column."""
    rows = list(rows)
    names = NamesOfClusters(rows, column)
    return [{**row, "cluster_id": names.cluster_of(row)} for row in rows]
