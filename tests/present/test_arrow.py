"""Rows → record batches: when one is full."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.present import arrow
from kdissect.present.columns import Column, Table


@pytest.mark.parametrize(
    ("kind", "value"), [("bytes", bytes(400)), ("text", "x" * 400), ("headers", [("name", bytes(396))])]
)
def test_a_batch_is_full_when_its_bytes_are_many(
    kind: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow, "BYTES_A_BATCH", 1_000)
    rows = arrow.RowBatches(Table("one", (Column("only", kind, "", lambda *_: value),)))
    assert [rows.add(None) is None for _ in range(3)] == [True, True, False]
    assert rows.take() is None
