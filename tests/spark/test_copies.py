"""What several capture points saw of one exchange."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import kdissect.spark
from kdissect.cli import main
from kdissect.spark.copies import merged
from tests.spark.cuts import packets_of, pcap
from tests.spark.same import CAPTURES, in_order, read_rows, without_moments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BASIC = CAPTURES / "basic-kafka43.pcapng"
AHEAD_NS = 3_000_000
"""How far the clock of the second point is ahead."""
COLUMNS = "capture_point string, number long, connection long, client string, broker string, api_key short, \
api_version short, correlation_id int, request_size long, response_size long, request_time_ns long, \
response_time_ns long, response_start_ns long, latency_ns long, missing string, faults array<string>"


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One conversation captured twice: whole, and by another clock with losses from its middle on."""
    folder = tmp_path_factory.mktemp("points")
    packets = packets_of(BASIC)
    lossy = [packet for at, packet in enumerate(packets) if at < len(packets) // 2 or at % 7]
    for name, own, ahead in (("broker", packets, 0), ("client", lossy, AHEAD_NS)):
        (folder / name).mkdir()
        moved = [packet._replace(timestamp_ns=packet.timestamp_ns + ahead) for packet in own]
        (folder / name / "x.pcap").write_bytes(pcap(moved))
    return folder


def test_each_exchange_is_there_once(points: Path, tmp_path: Path) -> None:
    inputs = [str(points / name) for name in ("client", "broker")]
    tables = ("--table", "exchanges", "--table", "records", "--table", "connections")
    command = ["spark", "batch", *inputs, "--out", str(tmp_path), *tables, "--master", "local[2]", "-q"]
    assert main([*command, "--capture-point", "directory", "--merge-points"]) == 0
    rows = pq.read_table(tmp_path / "exchanges").to_pylist()
    whole = points / "broker" / "x.pcap"
    # The lossy copies lack a side or have faults, or are equal; what is missing nowhere comes out as read.
    expected = read_rows("exchanges", [whole], without=["capture_point"])
    assert in_order(_bare(row) for row in rows) == expected
    seen = Counter(len(row["seen_at"]) for row in rows)
    assert set(seen) == {1, 2}
    assert seen[2] > len(rows) / 2
    both = [row["seen_at"] for row in rows if len(row["seen_at"]) == 2]
    assert all(
        client["request_time_ns"] - broker["request_time_ns"] == AHEAD_NS
        for broker, client in both
        if None not in (client["request_time_ns"], broker["request_time_ns"], client["latency_ns"])
    )
    records = pq.read_table(tmp_path / "records").drop_columns(["capture_point"]).to_pylist()
    assert in_order(records) == read_rows("records", [whole])
    assert len(pq.read_table(tmp_path / "connections")) == 2 * len(read_rows("connections", [whole]))


def test_in_one_capture_copies_of_packets_bring_nothing_twice(spark: SparkSession, points: Path) -> None:
    files = [points / "broker" / "x.pcap", points / "client" / "x.pcap"]
    found = [
        row.missing is not None for row in kdissect.spark.exchanges(spark, files).select("missing").collect()
    ]
    assert sorted(found) == sorted("'missing': None" not in row for row in read_rows("exchanges", files[:1]))
    connections = kdissect.spark.table(spark, files, "connections")
    assert connections.count() == len(read_rows("connections", files[:1]))


def row(point: str, number: int, time: int, correlation: int | None = 1, **more: Any) -> tuple[Any, ...]:
    """An exchange at a capture point; times in seconds."""
    values: dict[str, Any] = dict.fromkeys(name.split()[0] for name in COLUMNS.split(", "))
    values |= {"capture_point": point, "number": number, "connection": 0, "client": "c:1", "broker": "b:2"}
    values |= {"correlation_id": correlation, "request_time_ns": time * 10**9, "faults": [], **more}
    return tuple(values.values())


def seen(spark: SparkSession, *rows: tuple[Any, ...]) -> list[str]:
    """Which rows are copies of which, as ``point:number`` joined."""
    frame = merged(spark.createDataFrame(list(rows), COLUMNS))
    found = [[f"{copy.capture_point}{copy.number}" for copy in each.seen_at] for each in frame.collect()]
    return sorted(" ".join(each) for each in found)


def test_correlation_ids_come_again(spark: SparkSession) -> None:
    assert seen(spark, row("a", 1, 0), row("b", 7, 1), row("a", 2, 70), row("b", 9, 70)) == ["a1 b7", "a2 b9"]


def test_two_of_one_point_are_two(spark: SparkSession) -> None:
    assert seen(spark, row("a", 1, 0), row("a", 2, 1)) == ["a1", "a2"]


@pytest.mark.parametrize("correlation", [1, None])
def test_one_id_for_all_is_told_by_order(spark: SparkSession, correlation: int | None) -> None:
    rows = [row(point, number, number, correlation) for point in "ab" for number in (1, 2, 3)]
    assert seen(spark, *rows) == ["a1 b1", "a2 b2", "a3 b3"]
    # Nothing tells which of a's three is the one that b did not see.
    assert seen(spark, *rows[:-1]) == ["a1", "a2", "a3", "b1", "b2"]


def test_what_differs_on_the_wire_is_not_one_exchange(spark: SparkSession) -> None:
    one = row("a", 1, 0, api_key=1, request_size=10, response_size=5)
    assert seen(spark, one, row("b", 1, 0, api_key=1, request_size=11)) == ["a1", "b1"]
    assert seen(spark, one, row("b", 1, 0, api_key=1, request_size=10)) == ["a1 b1"]
    assert seen(spark, one, row("b", 1, 0, client="c:2")) == ["a1", "b1"]


def test_the_copy_that_lacks_the_least_is_kept(spark: SparkSession) -> None:
    rows = [row("a", 1, 0, missing="gap"), row("b", 2, 0, faults=["x"]), row("c", 3, 0), row("d", 4, 0)]
    (kept,) = merged(spark.createDataFrame(rows, COLUMNS)).collect()
    assert (kept.capture_point, len(kept.seen_at)) == ("c", 4)


def test_exchanges_of_one_capture_have_no_copies(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="capture_point"):
        merged(kdissect.spark.exchanges(spark, BASIC))


def test_merging_is_refused_where_nothing_tells_captures_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["spark", "batch", str(BASIC), "--out", str(tmp_path), "--merge-points"]) == 2
    assert "--capture-point" in capsys.readouterr().err


def _bare(row: dict[str, Any]) -> dict[str, Any]:
    (own,) = without_moments([row])
    return {name: value for name, value in own.items() if name not in ("capture_point", "seen_at")}
