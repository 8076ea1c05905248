"""Starting Spark."""

from __future__ import annotations

import os
import socket
import sys
import tarfile
from pathlib import Path

import pytest

from kdissect.spark.launch import NoSparkError, _no_java_left, _refuse_archives, choose_python, session


def test_an_interrupt_while_spark_starts_ends_its_java() -> None:
    gateway = pytest.importorskip("pyspark.java_gateway")
    before, started = gateway.Popen, []

    def start() -> None:
        with _no_java_left():
            started.append(gateway.Popen([sys.executable, "-c", "import time; time.sleep(600)"]))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        start()
    assert started[0].returncode is not None
    assert gateway.Popen is before


def test_the_configuration_names_the_python_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "ours")
    monkeypatch.setenv("PYSPARK_PYTHON", "before")
    choose_python({})
    assert os.environ["PYSPARK_PYTHON"] == "before"
    choose_python({"spark.pyspark.python": "named"})
    assert os.environ["PYSPARK_PYTHON"] == "named"


def test_only_archives_of_this_machine_that_cannot_be_unpacked_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "a.tar.gz"
    with tarfile.open(archive, "w:gz"):
        pass
    _refuse_archives({"spark.archives": f"{archive}#environment,hdfs://name/b.zip, local:/opt/c.zip"})

    def refuse(_: str) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tarfile.is_tarfile", refuse)
    with pytest.raises(NoSparkError, match="cannot be read: Permission denied"):
        _refuse_archives({"spark.archives": str(archive)})


class StoppedError(Exception):
    """As PySpark raises it."""

    __module__ = "pyspark.errors"


class Failing:
    """A builder whose application ends while Spark starts."""

    def appName(self, _: str) -> Failing:  # noqa: N802
        return self

    def master(self, _: str) -> Failing:
        return self

    def config(self, *_: str) -> Failing:
        return self

    def getOrCreate(self) -> None:  # noqa: N802
        os.write(2, b"ERROR Application has been killed. Reason: Master removed our application: FAILED\n")
        raise StoppedError(": IllegalStateException: Cannot call methods on a stopped SparkContext.")


def test_executors_that_fail_at_once_are_not_taken_for_a_master_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setattr("pyspark.sql.SparkSession.builder", Failing())
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"spark://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(NoSparkError, match="executors fail before they take a task") as raised:
            session(url, {}, str(tmp_path / "log"))
    assert "does not answer" not in str(raised.value)
