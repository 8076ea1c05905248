"""One Spark session for all tests that need one: to start it takes longer than most of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kdissect.cli import main
from kdissect.spark.launch import NoSparkError, check, session
from kdissect.spark.targets import target_of
from tests.spark.home import unzipped
from tests.spark.same import CAPTURES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SOMEBODY = {
    "AWS_ACCESS_KEY_ID": "somebody",
    "AWS_SECRET_ACCESS_KEY": "s3cr3t",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""Who we are to an object store of the tests."""


CHEAPER = {
    "spark.sql.shuffle.partitions": "3",
    # Each query of a test runs once: to make and compile code for it takes longer than to interpret it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # With the usual 48 MB for compiled code, Java throws away what it needs again in the next test.
    "spark.driver.extraJavaOptions": (
        "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
    ),
}
"""What makes small jobs quick."""

CONNECT = {
    "spark.connect.grpc.binding.port": "0",
    "spark.connect.grpc.binding.address": "127.0.0.1",
}
"""Where the server of test_connect listens."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on this machine; without Spark or Java the tests are skipped, with the reason."""
    try:
        check("local[2]")
    except NoSparkError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as environment, warnings.catch_warnings():
        # Workers have the environment of the JVM, and the JVM that of its start.
        for name, value in SOMEBODY.items():
            environment.setenv(name, value)
        environment.setenv("SPARK_HOME", str(unzipped(folder / "home")))
        warnings.simplefilter("ignore")  # pyspark's own, while it is imported
        conf = {**CHEAPER, **CONNECT, "spark.sql.warehouse.dir": str(folder / "warehouse")}
        made = session("local[2]", conf, str(folder / "spark.log"))
    yield made
    made.stop()


@pytest.fixture(scope="session")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Any]]:
    """The catalog ``lake`` of Iceberg, in a file. pyiceberg reads its configuration once in a process."""
    pytest.importorskip("pyiceberg")
    folder = tmp_path_factory.mktemp("iceberg")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYICEBERG_CATALOG__LAKE__TYPE", "sql")
        environment.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{folder}/catalog.db")
        environment.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", f"file://{folder}")
        yield lambda: target_of("iceberg:lake.kafka")._known  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """The folder of ``stats --all --out``, of a capture with transactions."""
    assert spark
    out = tmp_path_factory.mktemp("stored")
    capture = str(CAPTURES / "transactions-kafka39.pcapng")
    command = ["spark", "stats", capture, "--all", "--out", str(out), "--tasks", "3", "-q"]
    assert main([*command, "--master", "local[2]"]) == 0
    return out


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What pyspark says of pandas is not about us: no pandas object is ever made."""
    for item in items:
        if "tests/spark" in str(item.path):
            item.add_marker(pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"))
