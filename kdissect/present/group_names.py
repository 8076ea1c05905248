"""What groups are called: by their names, and by their clusters where several have a group of that name."""

from __future__ import annotations

from collections.abc import Iterable

from kdissect.analysis.fold import Row


class GroupNames:
    """The names of groups in some rows.

    :param rows: with the columns ``group`` and ``cluster_id``.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        clusters: dict[str | None, set[str | None]] = {}
        for row in rows:
            clusters.setdefault(row["group"], set()).add(row["cluster_id"])
        self._shared = frozenset(name for name, found in clusters.items() if len(found) > 1)

    def whose(self, row: Row) -> tuple[str | None, str | None]:
        """What tells the group of a row from others: its name, and its cluster if that is needed."""
        return row["group"], self.cluster_of(row)

    def cluster_of(self, row: Row) -> str | None:
        """The cluster of a row, if another cluster has a group of that name."""
        return row["cluster_id"] if row["group"] in self._shared else None

    def text(self, row: Row) -> str:
        """The group in words."""
        name, cluster = self.whose(row)
        return (name or "") if cluster is None else f"{name or ''} of {cluster}"


def told_apart(rows: Iterable[Row]) -> list[Row]:
    """Rows of groups that name a cluster only where another one has a group of that name."""
    rows = list(rows)
    names = GroupNames(rows)
    return [{**row, "cluster_id": names.cluster_of(row)} for row in rows]
