"""What several capture points saw of one exchange."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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


ONE = row("a", 1, 0, api_key=1, request_size=10, response_size=5)
BY_ORDER = {
    each: [row(point, number, number, each) for point in "ab" for number in (1, 2, 3)] for each in (1, None)
}
"""With the same correlation id in all rows, or with none."""
SEEN: dict[str, tuple[Sequence[tuple[Any, ...]], list[str]]] = {
    "correlation ids come again": (
        (row("a", 1, 0), row("b", 7, 1), row("a", 2, 70), row("b", 9, 70)),
        ["a1 b7", "a2 b9"],
    ),
    "two of one point are two": ((row("a", 1, 0), row("a", 2, 1)), ["a1", "a2"]),
    "one id for all is told by order": (BY_ORDER[1], ["a1 b1", "a2 b2", "a3 b3"]),
    "no id is told by order": (BY_ORDER[None], ["a1 b1", "a2 b2", "a3 b3"]),
    "nothing tells which of three another point did not see": (
        BY_ORDER[1][:-1],
        ["a1", "a2", "a3", "b1", "b2"],
    ),
    "without ids, too": (BY_ORDER[None][:-1], ["a1", "a2", "a3", "b1", "b2"]),
    "other sizes are of another exchange": (
        (ONE, row("b", 1, 0, api_key=1, request_size=11)),
        ["a1", "b1"],
    ),
    "a copy may lack a size": ((ONE, row("b", 1, 0, api_key=1, request_size=10)), ["a1 b1"]),
    "other clients are of another exchange": ((ONE, row("b", 1, 0, client="c:2")), ["a1", "b1"]),
    "the copy that lacks the least is kept": (
        (row("a", 1, 0, missing="gap"), row("b", 2, 0, faults=["x"]), row("c", 3, 0), row("d", 4, 0)),
        ["a1 b2 c3 d4"],
    ),
}
"""Rows, and which of them are copies of one exchange. Each case has a broker of its own: one job has all."""


@pytest.fixture(scope="module")
def kept(spark: SparkSession) -> dict[str, list[Any]]:
    """The rows of each case that merging keeps."""
    broker = COLUMNS.split(", ").index("broker string")
    rows = [
        (*each[:broker], case, *each[broker + 1 :]) for case, (given, _) in SEEN.items() for each in given
    ]
    found: dict[str, list[Any]] = {}
    for each in merged(spark.createDataFrame(rows, COLUMNS)).collect():
        found.setdefault(each.broker, []).append(each)
    return found


@pytest.mark.parametrize("case", SEEN)
def test_copies_are_told(kept: dict[str, list[Any]], case: str) -> None:
    copies = [[f"{copy.capture_point}{copy.number}" for copy in each.seen_at] for each in kept[case]]
    assert sorted(" ".join(each) for each in copies) == SEEN[case][1]


def test_the_copy_that_lacks_the_least_is_kept(kept: dict[str, list[Any]]) -> None:
    (one,) = kept["the copy that lacks the least is kept"]
    assert one.capture_point == "c"


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
