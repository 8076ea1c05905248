"""Libraries are put beside their sources."""

from __future__ import annotations

import runpy
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from tests.compiled.test_utilities import TOP

SUFFIX = EXTENSION_SUFFIXES[0]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows replaces no open file")
def test_who_runs_an_old_library_keeps_it(tmp_path: Path) -> None:
    put_in_place = runpy.run_path(str(TOP / ".build" / "compile.py"))["_put_in_place"]
    folder = tmp_path / "kdissect"
    folder.mkdir()
    made = tmp_path / "made"
    made.write_bytes(b"new")
    leaf, leftover = folder / f"leaf{SUFFIX}", folder / f"leftover{SUFFIX}"
    leaf.write_bytes(b"old")
    leftover.write_bytes(b"old")
    with leaf.open("rb") as running:
        put_in_place([(made, f"kdissect/leaf{SUFFIX}")], tmp_path)
        assert running.read() == b"old"
    assert leaf.read_bytes() == b"new"
    assert [*folder.iterdir()] == [leaf]
