"""Faults and losses by capture point and hour."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kdissect.cli import main
from kdissect.spark.quality import quality
from tests.amount import LONG
from tests.spark.same import CAPTURES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HOUR = 3_600_000_000_000

EXCHANGES = (
    "capture_point string, request_packet bigint, request_time_ns bigint, response_packet bigint, "
    "response_time_ns bigint, missing string"
)
CONNECTIONS = (
    "capture_point string, connection bigint, start_ns bigint, gap_bytes bigint, skipped_bytes bigint, "
    "retransmitted bigint"
)
FAULTS = "capture_point string, connection bigint, packet bigint, layer string, kind string"


def rows(spark: SparkSession, faults: list[tuple[Any, ...]]) -> dict[tuple[str, str | None], dict[str, Any]]:
    exchanges = [("a", 10, HOUR, 20, HOUR + 5, None), ("a", 30, 2 * HOUR, None, None, "gap")]
    connections = [("a", 0, HOUR, 7, 0, 3), ("b", 0, 26 * HOUR, 0, 2, 0)]
    frames: list[DataFrame] = [
        spark.createDataFrame(exchanges, EXCHANGES),
        spark.createDataFrame(connections, CONNECTIONS),
        spark.createDataFrame(faults, FAULTS),
    ]
    found = [row.asDict() for row in quality(*frames).collect()]
    return {(row.pop("capture_point"), row.pop("hour")): row for row in found}


@pytest.fixture
def elsewhere(spark: SparkSession) -> Iterator[SparkSession]:
    """A session whose time zone does not count."""
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


def test_faults_and_losses_count_in_their_hours(elsewhere: SparkSession) -> None:
    faults = [
        ("a", 0, 20, "tcp", "gap"),  # of the packet that an exchange ended with
        ("a", 0, 29, "frame", "skipped"),  # between two exchanges: the one before tells the hour
        ("a", 0, 31, "tcp", "gap"),
        ("a", 0, 5, "link", "not-ip"),  # before the first exchange
        ("b", 0, None, "session", "x"),  # without packet: its connection tells the hour
        ("b", None, None, "file", "cut-short"),
    ]
    found = rows(elsewhere, faults)
    assert list(found) == [
        ("a", "1970-01-01 01:00"),
        ("a", "1970-01-01 02:00"),
        ("b", "1970-01-02 02:00"),
        ("b", None),
    ]
    first, second, third, unknown = found.values()
    assert (first["exchanges"], first["not_captured"], first["gap_bytes"], first["retransmitted"]) == (
        1,
        0,
        7,
        3,
    )
    assert (first["faults"], first["tcp_faults"], first["frame_faults"], first["link_faults"]) == (3, 1, 1, 1)
    assert first["kinds"] == "gap, not-ip, skipped"
    assert (second["exchanges"], second["not_captured"], second["faults"]) == (1, 1, 1)
    assert (third["exchanges"], third["faults"], third["skipped_bytes"]) == (0, 1, 2)
    assert (unknown["faults"], unknown["file_faults"], unknown["kinds"]) == (1, 1, "cut-short")


@pytest.mark.usefixtures("spark")
def test_strict_ends_with_code_4_where_there_are_faults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has a reason that one can read: the line of the run, or the rows of the report."""
    tables = ("--table", "exchanges", "--table", "connections", "--table", "faults")
    batch = ("spark", "batch", str(CAPTURES / "loss.pcapng"), "--append", "--out", str(tmp_path), *tables)
    assert main([*batch, "--strict", "--master", "local[2]"]) == 4
    assert re.search(r"run 1: 1 file, \d+ rows, \d faults?\n", capsys.readouterr().err)
    command = ["spark", "report", str(tmp_path), "--section", "quality", "-q", "--master", "local[2]"]
    assert main([*command, "--strict"]) == 4
    title, heading, *lines = capsys.readouterr().out.splitlines()
    assert title == "faults and losses of each capture point and hour"
    assert "gap_bytes" in heading
    assert lines
    if LONG:
        assert main(command) == 0


def test_without_the_table_of_faults_it_says_how_to_make_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("exchanges", "connections"):
        (tmp_path / name).mkdir()
    for more in (("--section", "quality"), ("--strict",)):
        assert main(["spark", "report", str(tmp_path), *more]) == 3
        (line,) = capsys.readouterr().err.splitlines()
        assert "has no table faults" in line
