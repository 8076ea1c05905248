"""What modules share is compiled apart only if that works: otherwise each module has all it needs."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.compiled.test_utilities import TOP, function, modules

FAILS = [sys.executable, "-c", "raise SystemExit(1)"]
WORKS = [sys.executable, "-c", ""]


def says(text: str) -> list[str]:
    """A program that writes a line to its standard error, and works."""
    return [sys.executable, "-c", f"import sys; print({text!r}, file=sys.stderr)"]


def apart(work: Path, compiler: list[str], linker: list[str], texts: dict[str, str]) -> Any:
    """What ``.build/compile.py`` does with these programs in place of GCC."""
    made = runpy.run_path(str(TOP / ".build" / "compile.py"))["_apart"]
    made.__globals__["_is_gcc"] = lambda: True
    programs = SimpleNamespace(compiler_so=compiler, linker_so=linker)
    return made(SimpleNamespace(compiler=programs, include_dirs=["a folder"]), texts, work, lambda _: [])


def test_what_compiles_is_linked_to_all_modules(tmp_path: Path) -> None:
    found = apart(tmp_path, WORKS, says("undefined reference to `PyTuple_New'"), modules(function("__Pyx_A")))
    assert len(found.objects) == 1
    assert not any("return 0" in text for text in found.texts.values())


@pytest.mark.parametrize(
    ("compiler", "linker"),
    [
        (FAILS, WORKS),
        (WORKS, FAILS),
        (WORKS, says("a.o: warning: undefined reference to `__Pyx_B'")),
        (WORKS, says("ld.lld: warning: undefined symbol: __Pyx_B")),
    ],
)
def test_otherwise_each_module_has_all_it_needs(
    tmp_path: Path, compiler: list[str], linker: list[str]
) -> None:
    assert apart(tmp_path, compiler, linker, modules(function("__Pyx_A"))) is None


def test_so_has_it_if_another_cython_writes_other_c(tmp_path: Path) -> None:
    assert apart(tmp_path, WORKS, WORKS, {"m.a": "int main(void);\n"}) is None
