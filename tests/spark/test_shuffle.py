"""The packed shuffle: when it is done, and when it is not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kdissect.spark.plan import plan
from kdissect.spark.settings import Settings
from kdissect.spark.shuffle import shuffled
from tests.spark.cuts import cut, packets_of, pcap
from tests.spark.same import CAPTURES, read_rows, spark_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BASIC = CAPTURES / "basic-kafka43.pcapng"


def shuffle(
    spark: SparkSession, path: Path, table: str = "exchanges", split: int = 150_000
) -> DataFrame | None:
    settings = Settings(table=table, tasks=3)
    planned = plan([str(path)], settings, 2, "shuffle")
    return shuffled(spark, settings, planned.points, planned.tasks, split)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file of half a megabyte: captures one after another, at other addresses."""
    packets = []
    start = 1_700_000_000_000_000_000
    for number in range(5):
        own = packets_of(BASIC)
        for packet in own:
            data = packet.data[:26] + 2 * bytes((10, 0, 0, number)) + packet.data[34:]
            time = start + packet.timestamp_ns - own[0].timestamp_ns
            packets.append(packet._replace(data=data, timestamp_ns=time))
        start = packets[-1].timestamp_ns
    file = tmp_path_factory.mktemp("large") / "large.pcap"
    file.write_bytes(pcap(packets))
    return file


@pytest.mark.parametrize("table", ["exchanges", "connections"])
def test_a_file_in_parts_gives_the_same_rows(spark: SparkSession, large: Path, table: str) -> None:
    frame = shuffle(spark, large, table)
    assert frame is not None
    assert spark_rows(frame) == read_rows(table, [large])


def test_many_files_give_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    pieces = cut(BASIC, tmp_path, 6)
    pieces[2].write_bytes(pieces[2].read_bytes()[:-3])
    pieces[5].write_bytes(bytes(99))
    for table in ("exchanges", "faults"):
        frame = shuffle(spark, tmp_path, table)
        assert frame is not None
        assert spark_rows(frame) == read_rows(table, sorted(pieces)), table


def test_a_file_that_is_not_well_formed_is_read_as_one(
    spark: SparkSession, large: Path, tmp_path: Path
) -> None:
    file = tmp_path / "cut.pcap"
    file.write_bytes(large.read_bytes()[:-7])
    frame = shuffle(spark, file, "faults")
    assert frame is not None
    assert spark_rows(frame) == read_rows("faults", [file])
    assert "cut-short" in str(spark_rows(frame))


def test_files_that_overlap_and_clocks_that_go_back_are_left_to_buckets(
    spark: SparkSession, tmp_path: Path
) -> None:
    packets = packets_of(BASIC)
    (tmp_path / "a.pcap").write_bytes(pcap(packets[::2]))
    assert shuffle(spark, tmp_path) is not None
    (tmp_path / "b.pcap").write_bytes(pcap(packets[1::2]))
    assert shuffle(spark, tmp_path) is None
    (tmp_path / "b.pcap").unlink()
    (tmp_path / "a.pcap").write_bytes(pcap([*packets[5:], *packets[:5]]))
    assert shuffle(spark, tmp_path) is None
