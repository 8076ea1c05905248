from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from kdissect.leaves import LEAVES, PURE
from tests.amount import each_of, some

TOP = Path(import_module("kdissect").__file__ or "").resolve().parents[1]

is_compiled = not (import_module(LEAVES[0]).__file__ or "").endswith(".py")


def said(module: str, *arguments: str, pure: bool) -> list[str]:
    environment = {**os.environ, PURE: str(int(pure)), "PYTHONPATH": str(TOP), "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", module, *arguments]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


@pytest.mark.parametrize("seed", some([1, 2], 1))
@pytest.mark.skipif(not is_compiled, reason="nothing is compiled here: python .build/compile.py does it")
def test_compiled_leaves_do_what_their_sources_do(seed: int) -> None:
    compiled = said("tests.compiled.cases", str(seed), pure=False)
    sources = said("tests.compiled.cases", str(seed), pure=True)
    assert compiled == sources
    assert len(sources) > 6_000


def test_the_sources_run_where_the_user_wants_that() -> None:
    (line,) = (line for line in said("kdissect", "doctor", pure=True) if line.startswith("compiled"))
    assert "pure Python" in line
    assert PURE in line


@each_of(lambda: LEAVES)
def test_every_leaf_has_a_source(name: str) -> None:
    assert (TOP / (name.replace(".", "/") + ".py")).exists()
