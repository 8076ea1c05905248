"""Rows that several processes make end up in the batches that one process makes."""

from __future__ import annotations

import io
import random
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")

from kdissect.present import arrow  # noqa: E402 - only where pyarrow is
from kdissect.present.arrow_parts import Columns  # noqa: E402
from kdissect.present.columns import Column, Table  # noqa: E402
from tests.amount import times  # noqa: E402

TABLE = Table(
    "some",
    (
        Column("text", "text", "", lambda row, _: row),
        Column("size", "int64", "", lambda row, _: None if row is None else len(row)),
        Column("texts", "texts", "", lambda row, _: [row or "", "é"]),
    ),
)


class Sent:
    """What a process hands on."""

    def __init__(self) -> None:
        self.columns: list[Any] = []

    def write(self, columns: Columns) -> None:
        self.columns.append(columns)


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "ROWS_A_BATCH", 7)
    monkeypatch.setattr(arrow, "BYTES_A_BATCH", 100)


@pytest.mark.parametrize("kind", [arrow.ArrowWriter, arrow.ParquetWriter])
def test_a_file_is_the_same_wherever_its_rows_were_made(kind: type[arrow.ArrowWriter]) -> None:
    for seed in range(times(60, 2_000)):
        chance = random.Random(seed)
        rows = [
            None if chance.random() < 0.1 else "é" * chance.choice((0, 1, 3, 50, 120))
            for _ in range(chance.randrange(60))
        ]
        assert joined(kind, rows, chance) == alone(kind, rows)


def alone(kind: type[arrow.ArrowWriter], rows: list[str | None]) -> bytes:
    out = io.BytesIO()
    writer = kind(TABLE, out)
    for row in rows:
        writer.write(row)
    writer.close()
    return out.getvalue()


def joined(kind: type[arrow.ArrowWriter], rows: list[str | None], chance: random.Random) -> bytes:
    """The first rows are the writer's own; others come from processes that end anywhere."""
    out = io.BytesIO()
    writer = kind(TABLE, out)
    own = chance.choice((0, len(rows) // 3))
    for row in rows[:own]:
        writer.write(row)
    at = own
    while at < len(rows):
        end = at + chance.randrange(1, 25)
        sent: Any = Sent()
        process = arrow.RowColumns(TABLE, sent)
        for row in rows[at:end]:
            process.write(row)
        process.close()
        for columns in sent.columns:
            writer.join(columns)
        at = end
    writer.close()
    return out.getvalue()
