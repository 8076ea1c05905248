"""Findings as they change from batch to batch of a stream.

Each batch is judged together with all batches before it. Changed findings become rows. The latest row of a
``key``, by ``batch_number``, has the current state of that finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kdissect.present.columns import Table, dict_column
from kdissect.present.findings import FINDINGS
from kdissect.spark.tables import POINT

if TYPE_CHECKING:
    import pyarrow as pa

NEW, CHANGED, OVER = "new", "changed", "over"

FINDING_CHANGES = Table(
    "findings",
    (
        dict_column("batch_number", "int64", "number of the batch that was judged last"),
        dict_column(
            "change",
            "text",
            "new: not found before; changed: its row differs from the one before; over: not found any more, "
            "and the row is the last one",
        ),
        *FINDINGS.columns,
    ),
)


def changes(before: dict[str, dict[str, Any]], rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The changes since the findings of the batch before. Afterwards ``before`` has the new findings.

    :param before: findings by key.
    :param rows: all current findings, as columns.
    :returns: rows of new, changed and ended findings, the ended ones as they were; ``change`` says which.
    """
    found: list[dict[str, Any]] = []
    now: dict[str, dict[str, Any]] = {}
    for row in rows:
        old = before.get(row["key"])
        if old != row:
            found.append({"change": NEW if old is None else CHANGED, **row})
        now[row["key"]] = row
    found += [{"change": OVER, **row} for key, row in before.items() if key not in now]
    before.clear()
    before.update(now)
    return found


def as_columns(findings: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Findings as plain values, by the names of columns."""
    from kdissect.present.arrow import RowBatches

    rows = RowBatches(FINDINGS)
    batches = [rows.add(each) for each in findings]
    for batch in (*batches, rows.take()):
        if batch is not None:
            yield from batch.to_pylist()


def change_batch(
    table: Table, point: str | None, number: int, rows: Iterable[dict[str, Any]]
) -> pa.RecordBatch | None:
    """The rows of :func:`changes` for Spark; None without rows.

    :param number: the number of the batch.
    """
    import pyarrow as pa

    from kdissect.present.arrow import arrow_schema

    values = [{POINT: point, "batch_number": number, **row} for row in rows]
    return pa.RecordBatch.from_pylist(values, arrow_schema(table)) if values else None
