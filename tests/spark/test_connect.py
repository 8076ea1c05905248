"""A session of a Spark Connect server: a process of its own, without a JVM."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kdissect.cli import main
from tests.spark.same import CAPTURES, read_rows, written_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ERRORS = CAPTURES / "errors.pcapng"


@pytest.fixture
def server(spark: SparkSession) -> Iterator[str]:
    """A server in the JVM of the other tests, because to start one takes longer than the test; gives the
    master that names it."""
    pytest.importorskip("grpc_status")
    jvm: Any = spark._jvm
    package = jvm.org.apache.spark.sql.connect.service
    service = getattr(getattr(package, "SparkConnectService$"), "MODULE$")
    service.start(spark.sparkContext._jsc.sc())
    yield f"sc://127.0.0.1:{service.localPort()}"
    nothing = jvm.scala.Option.empty()
    service.stop(nothing, nothing)


_IN_A_SESSION = """
import pyarrow as pa
import kdissect.spark
from kdissect.model import CaptureError
from kdissect.spark.frames import frame_of
from kdissect.spark.launch import session
spark = session({server!r}, {{}}, None)
empty = frame_of(spark, pa.table({{"group": pa.array([], pa.string())}}))
assert (empty.dtypes, empty.count()) == ([("group", "string")], 0)
try:
    kdissect.spark.stats(spark, {missing!r}, "srt")
except CaptureError as error:
    assert str(error) == {missing!r} + ": cannot be read: No such file or directory", error
else:
    raise AssertionError("a path that is not there has statistics")
kdissect.spark.register(spark)
reader = spark.readStream.format("kdissect").option("state", {state!r}).option("settle_seconds", "0")
writer = reader.load({captures!r}).writeStream.option("checkpointLocation", {checkpoint!r})
writer.trigger(availableNow=True).start({streamed!r}).awaitTermination()
"""
"""Statistics may have no rows. That a path is not there, only the workers know. A stream keeps its state
beside the query."""


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
    captures = tmp_path / "captures"
    captures.mkdir()
    (captures / ERRORS.name).write_bytes(ERRORS.read_bytes())
    names = ("missing", "captures", "state", "checkpoint", "streamed")
    places = {name: str(tmp_path / name) for name in names}
    lines.append(_IN_A_SESSION.format(server=server, **places))
    # It is a file: if a package of Connect is missing, Spark ends a program from -c in silence, with code 0.
    program = tmp_path / "program.py"
    program.write_text("\n".join(["from kdissect.cli import main", *lines]))
    ran = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    size = ERRORS.stat().st_size
    assert f"2 tables, 52 rows; {size:,} bytes of captures were read, 1.00 times their size" in ran.stderr
    for name in ("exchanges", "faults"):
        assert written_rows(tmp_path / name) == read_rows(name, [ERRORS])
    assert written_rows(tmp_path / "streamed") == read_rows("exchanges", [ERRORS])
    assert main(["stats", str(ERRORS), "-z", "errors", "-T", "ndjson"]) == 0
    assert ran.stdout == capsys.readouterr().out
