"""Starting Spark."""

from __future__ import annotations

import sys

import pytest

from kdissect.spark.launch import _no_java_left


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
