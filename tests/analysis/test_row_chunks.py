"""Rows in compressed chunks."""

from __future__ import annotations

from kdissect.analysis.row_chunks import pack, rows_of, unpack


def test_rows_are_unpacked_as_they_were() -> None:
    rows = [(1, "a", None, (2.5, b"c")), (2, "a", True, ())]
    assert unpack(pack(rows)) == rows


def test_rows_that_resemble_each_other_take_little_together() -> None:
    rows = [b"10.0.0.1:%d, 10.0.0.2:9092, kafka" % port for port in range(40_000, 40_128)]
    chunk = pack(rows)
    assert rows_of(chunk) == rows
    assert len(chunk) < sum(map(len, rows)) / 4
