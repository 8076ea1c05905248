"""A session of a Spark Connect server: it shares no files and no JVM with us."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdissect.cli import main
from kdissect.spark.launch import NoSparkError, check
from tests.spark.conftest import CHEAPER
from tests.spark.home import unzipped
from tests.spark.same import CAPTURES, read_rows, written_rows

ERRORS = CAPTURES / "errors.pcapng"
_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_STARTED = re.compile(r"Spark Connect server started at: \S*?:(\d+)\b")
_START_SECONDS = 120
_SETTINGS = {
    "spark.connect.grpc.binding.port": "0",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.ui.enabled": "false",
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """A server on this machine; gives the master that names it."""
    pytest.importorskip("grpc_status")
    try:
        check("local[2]")
    except NoSparkError as error:
        pytest.skip(str(error))
    home, log = unzipped(tmp_path / "home"), tmp_path / "server.log"
    top = str(Path(__file__).resolve().parents[2])
    settings = {**_SETTINGS, **CHEAPER}
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--class", _SERVER]
    command += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    variables = {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": top}
    with log.open("wb") as file:
        running = subprocess.Popen(
            [*command, "spark-internal"],
            stdout=file,
            stderr=file,
            env={**os.environ, **variables, "SPARK_LOCAL_IP": "127.0.0.1"},
            cwd=tmp_path,
        )
    try:
        end = time.monotonic() + _START_SECONDS
        while (found := _STARTED.search(log.read_text())) is None:
            assert running.poll() is None, log.read_text()[-2_000:]
            assert time.monotonic() < end, log.read_text()[-2_000:]
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{found[1]}"
    finally:
        running.kill()
        running.wait()


@pytest.mark.timeout(300)
def test_tables_and_statistics_are_those_of_one_process(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a process of its own: one cannot have both kinds of session."""
    batch = [
        "spark",
        "batch",
        str(ERRORS),
        "--out",
        str(tmp_path),
        "--table",
        "exchanges",
        "--table",
        "faults",
    ]
    stats = ["spark", "stats", str(ERRORS), "-z", "errors", "-T", "ndjson"]
    lines = [f"assert main({[*each, '--master', server]!r}) == 0" for each in (batch, stats)]
    # It is a file: if a package of Connect is missing, Spark ends a program from -c in silence, with code 0.
    program = tmp_path / "program.py"
    program.write_text("\n".join(["from kdissect.cli import main", *lines]))
    ran = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    size = ERRORS.stat().st_size
    assert f"2 tables, 52 rows; {size:,} bytes of captures were read, 1.00 times their size" in ran.stderr
    for name in ("exchanges", "faults"):
        assert written_rows(tmp_path / name) == read_rows(name, [ERRORS])
    assert main(["stats", str(ERRORS), "-z", "errors", "-T", "ndjson"]) == 0
    assert ran.stdout == capsys.readouterr().out
