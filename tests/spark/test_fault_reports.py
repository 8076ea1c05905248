"""A damaged capture is told where its rows are used."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import kdissect.spark
from kdissect.model import Fault
from kdissect.spark.fault_names import named
from kdissect.spark.fault_reports import MOST, _FaultNews, line_of
from tests.spark.same import CAPTURES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TELLS = "the table faults says what is wrong"


def damaged(path: Path) -> Path:
    path.write_bytes((CAPTURES / "errors.pcapng").read_bytes()[:40_000])
    return path


def test_who_uses_a_data_frame_is_warned_once(spark: SparkSession, tmp_path: Path) -> None:
    one, other = damaged(tmp_path / "one.pcapng"), damaged(tmp_path / "other.pcapng")
    kdissect.spark.register(spark)
    frame = spark.read.format("kdissect").load(str(one))
    with pytest.warns(UserWarning, match=f"one.pcapng: the file ends inside a block.*{TELLS}") as seen:
        assert frame.count() > 0
    assert len(seen) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert frame.count() > 0
        assert kdissect.spark.exchanges(spark, one, pushdown=False).count() > 0
    for each in (
        spark.read.format("kdissect").option("stats", "srt").load(str(other)),
        kdissect.spark.exchanges(spark, damaged(tmp_path / "third.pcapng"), pushdown=False),
    ):
        with pytest.warns(UserWarning, match=TELLS):
            assert each.count() > 0


def test_who_follows_a_folder_is_warned(spark: SparkSession, tmp_path: Path) -> None:
    (spool := tmp_path / "in").mkdir()
    damaged(spool / "cut.pcapng")
    kdissect.spark.register(spark)
    reader = spark.readStream.format("kdissect").option("state", str(tmp_path / "state"))
    writer = reader.option("settle_seconds", "0").load(str(spool)).writeStream.format("noop")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    with pytest.warns(UserWarning, match=f"cut.pcapng: the file ends inside a block.*{TELLS}"):
        writer.start().awaitTermination()


def test_who_asks_for_statistics_is_warned(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=f"one.pcapng: the file ends inside a block.*{TELLS}"):
        kdissect.spark.stats(spark, damaged(tmp_path / "one.pcapng"), "srt", tasks=2)


def test_many_faults_are_one_line() -> None:
    assert line_of(["a", "b"]).startswith("2 faults of files; the first is: a; ")
    assert line_of(["a"] * MOST).startswith("1,000 faults or more of files")
    one = Fault("file", "cut-short", "the file ends")
    assert named(one, ["x.pcap"]).message == "x.pcap: the file ends"
    assert named(one._replace(message="x.pcap: gone"), ["x.pcap"]).message == "x.pcap: gone"
    assert named(one, ["x.pcap", "y.pcap"]) == one


def test_tasks_add_and_the_driver_tells() -> None:
    driver = _FaultNews()
    task = pickle.loads(pickle.dumps(driver))
    told: list[str] = []
    for word in "aab":
        told = task.addInPlace(told, [word])
    assert told == ["a", "a", "b"]
    assert len(task.addInPlace(told, ["c"] * 2 * MOST)) == MOST
    with pytest.warns(UserWarning, match="^2 faults of files"):
        assert driver.addInPlace([], told) == []
    with warnings.catch_warnings(record=True) as again:
        warnings.simplefilter("always")
        driver.addInPlace([], told)
    assert again == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        driver.addInPlace([], ["new"])  # an error here would end Spark's job


def test_the_driver_remembers_no_more_than_it_warns_of() -> None:
    driver = _FaultNews()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for number in range(30):
            driver.addInPlace([], [f"fault {number}"])
    assert len(told) == 10
    assert driver._known == {f"fault {number}" for number in range(10)}
