"""Rows in compressed chunks."""

from __future__ import annotations

import io
import pickle

import pytest

from kdissect.cli.states import _Unpickler
from kdissect.row_chunks import pack, rows_of, unpack


def test_rows_are_unpacked_as_they_were() -> None:
    rows = [(1, "a", None, (2.5, b"c")), (2, "a", True, ())]
    assert unpack(pack(rows)) == rows


def test_rows_that_resemble_each_other_take_little_together() -> None:
    rows = [b"10.0.0.1:%d, 10.0.0.2:9092, kafka" % port for port in range(40_000, 40_128)]
    chunk = pack(rows)
    assert rows_of(chunk) == rows
    assert len(chunk) < sum(map(len, rows)) / 4


def test_a_forged_state_cannot_unpack_bytes() -> None:
    forged = pickle.dumps(_Forged(), protocol=5)
    with pytest.raises(pickle.UnpicklingError, match="does not belong"):
        _Unpickler(io.BytesIO(forged)).load()


class _Forged:
    def __reduce__(self) -> tuple[object, ...]:
        return unpack, (pack([1]),)
