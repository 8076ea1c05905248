"""An error of Spark's in one line."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from py4j.clientserver import (  # type: ignore[import-untyped]
    ClientServerConnection,
    JavaParameters,
    PythonParameters,
)
from py4j.java_gateway import GatewayProperty  # type: ignore[import-untyped]
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

from kdissect.cli.errors import Unreadable, Wrong
from kdissect.cli.spark_sessions import running
from kdissect.spark.spark_errors import how_executors_end, why, why_in, why_killed, why_not_started

JAVA = """An error occurred while calling o68.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure
\tat org.apache.spark.Some.method(Some.scala:1)
Caused by: java.io.IOException: Mkdirs failed to create file:/proc/x
\tat org.apache.hadoop.Some.method(Some.java:2)
"""


def test_the_cause_is_told() -> None:
    assert why(Exception(JAVA)) == "IOException: Mkdirs failed to create file:/proc/x"
    assert (
        why(Exception("An error occurred\n: java.lang.Exception: Could not parse"))
        == "Exception: Could not parse"
    )
    assert why(Exception("[PATH] is there\nmore")) == "[PATH] is there"
    assert why(KeyError()) == "KeyError"
    unfound = (
        'x\nCaused by: java.io.IOException: Cannot run program "py": error=2\nCaused by: java.io.E: error=2'
    )
    assert why(Exception(unfound)) == 'IOException: Cannot run program "py": error=2'
    task = "Lost task 0.3 in stage 0.0 (TID 6) (10.0.0.7 executor 0): java.io.IOException: Cannot run program"
    told = f'x\n: org.apache.spark.SparkException: Job aborted due to stage failure: {task} "py": error=2'
    assert why(Exception(told)) == '10.0.0.7: IOException: Cannot run program "py": error=2'


def test_a_worker_is_heard_first() -> None:
    assert why(Exception('x\n  File "a.py", line 1, in read\nValueError: no such column')) == "no such column"


def test_a_worker_without_a_package_is_heard() -> None:
    """Python marks no column under a call that is the whole line, as an import is."""
    told = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/spark/worker.py", line 4207, in invoke_udf
    func, profiler = read_udfs(
                     ^^^^^^^^^^
  File "/spark/worker.py", line 1920, in read_udfs
    import pyarrow as pa
ModuleNotFoundError: No module named 'pyarrow'
"""
    assert why(Exception(told)) == "No module named 'pyarrow'"


class PassedOnError(Exception):
    """An error of a worker, as PySpark passes it on."""

    __module__ = "pyspark.errors.exceptions.captured"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("kdissect.spark.states.StateError", Wrong),
        ("kdissect.spark.states.OtherBuildError", Wrong),
        ("kdissect.model.CaptureError", Unreadable),
    ],
)
def test_an_error_of_kdissect_in_a_worker_is_not_one_of_spark(
    monkeypatch: pytest.MonkeyPatch, name: str, kind: type[Exception]
) -> None:
    monkeypatch.setattr("kdissect.spark.launch.session", lambda *_: None)
    given = {"master": "local", "conf": (), "spark_log": None, "scratch": None}
    told = f"An exception was thrown\n  File 'a.py', line 1\n    raise it\n{name}: /s is damaged\n\tat x"
    with pytest.raises(kind) as raised, running(given):
        raise PassedOnError(told)
    assert str(raised.value) == "/s is damaged"
    with pytest.raises(Wrong, match="Spark failed: /s is damaged"), running(given):
        raise PassedOnError(told.replace(name, "ValueError"))


def test_an_application_that_its_master_ended_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("kdissect.spark.launch.session", lambda *_: None)
    log = tmp_path / "log"
    log.write_text("ERROR StandaloneSchedulerBackend: Application has been killed. Reason: It FAILED.\n")
    given = {"master": "spark://a:7077", "conf": (), "spark_log": str(log), "scratch": None}
    told = r"^Spark failed: its application has ended \(It FAILED\); kdissect doctor spark --cluster spark://a:7077"
    with pytest.raises(Wrong, match=told), running(given):
        raise PassedOnError(
            "x\n: java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext"
        )


def test_a_jvm_that_ended_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may end it for want of memory. Nothing is wrong with stdout then."""
    monkeypatch.setattr("kdissect.spark.launch.session", lambda *_: None)
    given = {"master": "local", "conf": (), "spark_log": "-", "scratch": None}
    told = "Spark failed: its JVM has ended"
    with pytest.raises(Wrong, match=told), running(given):
        raise Py4JNetworkError("Answer is empty")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    pools = GatewayProperty(auto_field=False, pool=None)
    to_jvm = ClientServerConnection(JavaParameters(port=port), PythonParameters(), pools, None)
    with pytest.raises(Wrong, match=told), running(given):
        to_jvm.connect_to_java_server()
    for error in (BrokenPipeError, ConnectionRefusedError, ConnectionResetError):
        with pytest.raises(error), running(given):
            raise error
    with pytest.raises(ConnectionRefusedError), running(given):
        socket.create_connection(("127.0.0.1", port))  # which does not lead to the JVM


def test_a_log_tells_why_a_jvm_did_not_come_up(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("WARNING: something\nInvalid maximum heap size: -Xmxlots\nError: Could not create it\n")
    assert why_in(str(log)) == "Invalid maximum heap size: -Xmxlots"
    log.write_text('Exception in thread "main" org.apache.spark.SparkException: Master must be\n\tat it\n')
    assert why_in(str(log)) == "SparkException: Master must be"
    assert why_in(str(tmp_path / "none")) is None


def test_a_log_tells_why_a_master_ended_the_application(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "INFO StandaloneAppClient$ClientEndpoint: Executor updated: app-1/0 is now RUNNING\n"
        "INFO StandaloneAppClient$ClientEndpoint: Executor updated: app-1/0 is now FAILED"
        ' (java.io.IOException: Cannot run program "/opt/java/bin/java" (in directory "/w"): error=2)\n'
        "ERROR StandaloneSchedulerBackend: Application has been killed. Reason: Master removed it: FAILED\n"
    )
    assert why_killed(str(log)) == "Master removed it: FAILED"
    ended = 'IOException: Cannot run program "/opt/java/bin/java" (in directory "/w"): error=2'
    assert how_executors_end(str(log)) == ended
    log.write_text("INFO something\n")
    for path in (log, tmp_path / "none"):
        assert why_killed(str(path)) is how_executors_end(str(path)) is None


UPDATED = "INFO StandaloneAppClient$ClientEndpoint: Executor updated: app-7/0 is now "
ENDED = "ERROR StandaloneSchedulerBackend: Application has been killed. Reason: "


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (
            f"{ENDED}All masters are unresponsive! Giving up.\n",
            "spark://a:7077 does not answer as a master of Spark (All masters are unresponsive! Giving up)",
        ),
        (
            f"{UPDATED}FAILED (Error running executor: java.lang.IllegalStateException: Cannot find it.)\n"
            f"{ENDED}Master removed our application: FAILED\n",
            "workers cannot start executors (IllegalStateException: Cannot find it): check Spark and Java on "
            "the workers (SPARK_HOME, JAVA_HOME); the log of a worker says more",
        ),
        (
            "INFO StandaloneSchedulerBackend: Connected to Spark cluster with app ID app-7\n"
            f"{UPDATED}EXITED (Command exited with code 1)\n"
            f"{ENDED}Master removed our application: FAILED\n",
            "executors end before they take a task (Command exited with code 1): look for the reason on a "
            "worker, in the file work/app-7/0/stderr of its Spark",
        ),
        (
            f"{ENDED}Master removed our application: FAILED\n",
            "executors fail before they take a task; kdissect doctor spark --cluster spark://a:7077 says how",
        ),
        (
            f"{ENDED}Master removed our application: KILLED\n",
            "its application has ended (Master removed our application: KILLED)",
        ),
        ("INFO something\n", None),
    ],
)
def test_an_application_that_ends_while_spark_starts_is_told(
    lines: str, told: str | None, tmp_path: Path
) -> None:
    """A master that removed the application answers as one. Only its executors fail."""
    log = tmp_path / "log"
    log.write_text(lines)
    words = why_not_started("spark://a:7077", str(log))
    if told is None:
        assert words is None
    else:
        assert words is not None
        assert words.startswith(told)
