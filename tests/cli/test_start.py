"""Commands load what they need, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.cli.run import CAPTURES, ROOT

CAPTURE = CAPTURES / "errors.pcapng"
HEAVY = ("cryptography", "numpy", "pyarrow", "pyspark", "rich", "scapy", "textual")
NEEDLESS = (
    *("kdissect.payload.decoder", "kdissect.present.tree", "kdissect.tls.decrypting", "tempfile", "pickle"),
    *("kdissect.embedded.fields", "kdissect.present.body", "kdissect.present.record_lines"),
    *("kdissect.capture.cuts", "kdissect.capture.points", "kdissect.points.dissector"),
    *("kdissect.jobs.workers", "kdissect.parts.stitch", "kdissect.tls.crypto", "kdissect.tls.records"),
    *("kdissect.cli.shown_packets", "kdissect.settings.list_columns"),
)
"""What lines of text do not need."""
MOST_OF_CLICK = 4
"""What ``kdissect --help`` may cost, in what it costs to import click."""


@pytest.mark.parametrize("form", ["parquet", "records.parquet", "arrow"])
def test_parquet_and_arrow_load_no_pandas_and_leave_it_usable(form: str) -> None:
    code = (
        "import sys; from kdissect.cli import main\n"
        f"print(main(['read', {str(CAPTURE)!r}, '-T', {form!r}, '-o', '/dev/null']))\n"
        "print('pandas' in sys.modules)\n"
        "import pyarrow as pa; print(type(pa.table({'a': [1]}).to_pandas()).__name__)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, check=True, text=True)
    assert ran.stdout.split() == ["0", "False", "DataFrame"]


@pytest.mark.parametrize(
    "arguments",
    [["--help"], *(["read", str(CAPTURE), "-T", form] for form in ("text", "ndjson", "tree"))],
    ids=lambda arguments: arguments[-1],
)
def test_reading_and_help_load_no_screens_no_capturing_and_no_tls(arguments: list[str]) -> None:
    code = (
        f"import sys; from kdissect.cli import main; main({arguments!r})\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, check=True)
    assert ran.stdout
    assert ran.stderr.splitlines()[-1] == b"[]"


def test_lines_need_neither_decoders_of_payloads_nor_trees_nor_tls() -> None:
    code = (
        f"import sys; from kdissect.cli import main; main(['read', {str(CAPTURE)!r}, '-T', 'text'])\n"
        f"print(sorted(set({NEEDLESS!r}) & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, check=True)
    assert ran.stdout
    assert ran.stderr.splitlines()[-1] == b"[]"


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="needs the CPU time of one process")
def test_help_costs_little_more_than_the_library_that_prints_it() -> None:
    assert _seconds("-m", "kdissect", "--help") < MOST_OF_CLICK * _seconds("-c", "import click")


def _seconds(*arguments: str) -> float:
    """CPU time of Python, the least of three runs."""
    times = []
    for _ in range(3):
        process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL, cwd=ROOT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        times.append(usage.ru_utime + usage.ru_stime)
    return min(times)
