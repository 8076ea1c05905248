"""Starting Spark."""

from __future__ import annotations

import os
import sys

import pytest

from kdissect.spark.launch import _no_java_left, choose_python


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
