"""The benchmarks run where pytest is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.run import ROOT

PROGRAMS = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py") if path.stem != "__init__")


@pytest.mark.skipif(sys.platform != "linux", reason="live benchmarks make network namespaces")
def test_every_benchmark_is_imported_without_pytest() -> None:
    script = "import sys, importlib; sys.modules['pytest'] = None\n"
    script += "\n".join(f"importlib.import_module('benchmarks.{name}')" for name in PROGRAMS)
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
