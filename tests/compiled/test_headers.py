"""GCC reads Python's headers once for all modules with the same flags, where it can."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.compiled.test_utilities import TOP

WORKS = [sys.executable, "-c", "import sys; open(sys.argv[-1], 'x')"]
"""A compiler that writes what it is told to, but nothing twice."""
FAILS = [sys.executable, "-c", "raise SystemExit(1)"]
MODULES: tuple[list[str], ...] = (["-O1", "-w"], ["-Og", "-w"], ["-O1", "-w"], [])


def headers(work: Path, compiler: list[str], is_gcc: bool = True) -> Callable[[list[str]], list[str]]:
    """What ``.build/compile.py`` makes for these modules with this program in place of GCC."""
    made = runpy.run_path(str(TOP / ".build" / "compile.py"))["_headers"]
    made.__globals__["_is_gcc"] = lambda: is_gcc
    modules = [SimpleNamespace(extra_compile_args=flags) for flags in MODULES]
    command = SimpleNamespace(
        compiler=SimpleNamespace(compiler_so=compiler), include_dirs=["a folder"], extensions=modules
    )
    with ThreadPoolExecutor(2) as pool:
        found: Callable[[list[str]], list[str]] = made(command, work, pool)
    return found


def test_headers_are_made_once_for_the_same_flags(tmp_path: Path) -> None:
    found = headers(tmp_path, WORKS)
    options = [found(flags) for flags in MODULES]
    assert [each[0] for each in options] == ["-include"] * len(MODULES)
    assert options[0] == options[2]
    assert len({each[1] for each in options}) == 3
    assert all(Path(f"{each[1]}.gch").exists() for each in options)


@pytest.mark.parametrize(("compiler", "is_gcc"), [(FAILS, True), (WORKS, False)])
def test_where_they_cannot_be_made_each_module_reads_them(
    tmp_path: Path, compiler: list[str], is_gcc: bool
) -> None:
    found = headers(tmp_path, compiler, is_gcc)
    assert [found(flags) for flags in MODULES] == [[]] * len(MODULES)


def test_other_flags_have_no_headers(tmp_path: Path) -> None:
    assert headers(tmp_path, WORKS)(["-O3"]) == []
