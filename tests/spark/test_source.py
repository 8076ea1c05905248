"""The data source: options, filters that are handed down, damage, many files."""

from __future__ import annotations

import gzip
import json
import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

import kdissect.spark
from kdissect.capture.files import read_packets
from kdissect.model import CaptureError, Packet
from kdissect.spark.progress import done
from kdissect.spark.source import CaptureSource
from tests.spark.cuts import cut
from tests.spark.same import CAPTURES, read_rows, spark_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BASIC = CAPTURES / "basic-kafka43.pcapng"
API = StructType([StructField("api", StringType())])


def test_rotated_files_are_one_capture(spark: SparkSession, tmp_path: Path) -> None:
    whole = cut(BASIC, tmp_path, 1)
    (tmp_path / "pieces").mkdir()
    pieces = cut(BASIC, tmp_path / "pieces", 20)
    pieces[3].write_bytes(gzip.compress(pieces[3].read_bytes()))
    frame = kdissect.spark.table(spark, tmp_path / "pieces", "exchanges", tasks=2)
    assert spark_rows(frame) == read_rows("exchanges", whole)


def test_a_damaged_file_costs_a_row_of_faults(spark: SparkSession, tmp_path: Path) -> None:
    pieces = cut(BASIC, tmp_path, 10)
    pieces[4].write_bytes(b"\0" * 1000)
    frame = kdissect.spark.table(spark, tmp_path, "faults", tasks=2)
    (row,) = [row for row in frame.collect() if row.layer == "file"]
    assert (row.kind, pieces[4].name in row.message) == ("not-a-capture", True)
    others = [piece for piece in pieces if piece != pieces[4]]
    frame = kdissect.spark.exchanges(spark, tmp_path, tasks=2)
    assert spark_rows(frame) == read_rows("exchanges", sorted(others))


def test_a_file_that_is_no_capture_is_a_row_too(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "empty.pcap").write_bytes(b"")
    frame = kdissect.spark.table(spark, [BASIC, tmp_path], "faults", layer="file")
    assert [row.kind for row in frame.collect()] == ["not-a-capture"]


def test_files_of_which_none_is_a_capture_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    kdissect.spark.register(spark)
    (path := tmp_path / "text.pcap").write_text("not a capture")
    words = "text.pcap: is not a capture (it begins with 6e 6f 74 20)"
    for stats in ({}, {"stats": "srt"}):
        with pytest.raises(Exception, match=re.escape(words)):
            spark.read.format("kdissect").options(**stats).load(str(path)).count()
    for call in (kdissect.spark.exchanges, partial(kdissect.spark.stats, asked="srt")):
        with pytest.raises(CaptureError, match=re.escape(words)):
            call(spark, path)
        with pytest.raises(CaptureError, match=r"^none of 2 files is a capture: "):
            call(spark, [path, "/nowhere.pcap"])


def test_without_the_data_source_the_rows_are_the_same(spark: SparkSession, tmp_path: Path) -> None:
    cut(BASIC, tmp_path, 3)
    (tmp_path / "none.pcap").write_bytes(bytes(99))
    for name in ("packets", "faults"):
        options: dict[str, Any] = {"layer": "file"} if name == "faults" else {}
        frames = [
            kdissect.spark.table(spark, tmp_path, name, pushdown=pushdown, tasks=2, **options)
            for pushdown in (True, False)
        ]
        usual, other = map(spark_rows, frames)
        assert usual == other != []


def test_capture_points_are_captures_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        cut(BASIC, tmp_path / name, 3)
    folders = [tmp_path / "one", tmp_path / "two"]
    frame = kdissect.spark.exchanges(spark, folders, capture_point=r"/(one|two)/", tasks=2)
    counts = {row.capture_point: row["count"] for row in frame.groupBy("capture_point").count().collect()}
    expected = read_rows("exchanges", sorted(folders[0].iterdir()), without=["capture_point"])
    assert counts == {"one": len(expected), "two": len(expected)}
    one = frame.where("capture_point = 'one'").drop("capture_point")
    assert spark_rows(one) == expected


def test_packets_are_those_of_the_capture(spark: SparkSession) -> None:
    frame = kdissect.spark.table(spark, BASIC, "packets", tasks=2)
    rows = frame.orderBy("packet").collect()
    packets = [item for item in read_packets([BASIC]) if isinstance(item, Packet)]
    assert [(row.packet, row.time_ns, row.wire_size) for row in rows] == [
        (packet.number, packet.timestamp_ns, packet.wire_length) for packet in packets
    ]
    assert all(row.source and row.destination for row in rows)


def test_a_query_changes_nothing_for_the_next(spark: SparkSession) -> None:
    """Spark keeps the filters that it hands down to a source in Python, for all queries of the DataFrame."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = kdissect.spark.exchanges(spark, BASIC)
        every = [row.api for row in frame.collect()]
        fetches, others = frame.where("api = 'Fetch'"), frame.where("api <> 'Fetch'")
        assert fetches.count() == every.count("Fetch") > 0
        assert frame.count() == len(every)
        assert fetches.unionAll(others).count() == len(every)
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_a_display_filter_saves_decoding(spark: SparkSession, tmp_path: Path) -> None:
    def decoded(filter_: str | None) -> tuple[int, int]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        frame = kdissect.spark.exchanges(spark, BASIC, tasks=2, progress=str(folder), filter=filter_)
        return len(frame.collect()), done(str(folder)).decoded

    every_count, every_byte = decoded(None)
    assert every_count == len(read_rows("exchanges", [BASIC]))
    fetches = sum("'api': 'Fetch'" in row for row in read_rows("exchanges", [BASIC]))
    for filter_, expected in (("api == Fetch", fetches), ("number < 4", 3)):
        count, size = decoded(filter_)
        assert count == expected, filter_
        assert size < every_byte, filter_


def test_payload_may_be_left_out_or_cut(spark: SparkSession) -> None:
    keys = [row.value for row in kdissect.spark.table(spark, BASIC, "records").collect() if row.value]
    none = kdissect.spark.table(spark, BASIC, "records", payload="none")
    assert {row.value for row in none.collect()} == {None}
    head = kdissect.spark.table(spark, BASIC, "records", payload="head:3")
    cuts = [row.value for row in head.collect() if row.value]
    assert sorted(map(bytes, cuts)) == sorted(bytes(value[:3]) for value in keys)
    bodies = kdissect.spark.exchanges(spark, BASIC, payload="none").where("request is not null")
    assert bodies.isEmpty()


def test_each_session_may_register_the_source(spark: SparkSession) -> None:
    """Spark looks for the name in the active session, which is another one here."""
    count = len(read_rows("exchanges", [BASIC]))
    for session in (spark.newSession(), spark):
        kdissect.spark.register(session)
        assert session.read.format("kdissect").load(str(BASIC)).count() == count
        assert kdissect.spark.exchanges(session, BASIC).count() == count
        session.sql(f"CREATE TEMPORARY VIEW of_session USING kdissect OPTIONS (path '{BASIC}')")
        assert session.table("of_session").count() == count
    spark.catalog.dropTempView("of_session")


def test_a_display_filter_chooses_rows(spark: SparkSession) -> None:
    frame = kdissect.spark.exchanges(spark, BASIC, filter="api == Metadata", tasks=2)
    assert {row.api for row in frame.collect()} == {"Metadata"}


def test_the_user_s_schema_chooses_columns(spark: SparkSession) -> None:
    kdissect.spark.register(spark)
    frame = spark.read.format("kdissect").schema("api string, number bigint").load(str(BASIC))
    assert frame.columns == ["api", "number"]
    assert frame.count() == len(read_rows("exchanges", [BASIC]))


def test_a_schema_with_other_types_is_told() -> None:
    with pytest.raises(ValueError, match=r"^the schema has other types than kdissect: `api` string$"):
        CaptureSource({"path": str(BASIC)}).reader(StructType().add("api", IntegerType()))


def test_key_logs_decrypt(spark: SparkSession) -> None:
    case = Path(__file__).resolve().parents[1] / "data" / "lab" / "tls13"
    (capture,) = case.glob("capture.pcap*")
    keylog = str(case / "keys.log")
    frame = kdissect.spark.table(spark, capture, "exchanges", keylog=keylog, tasks=2)
    assert frame.count() > 0
    assert kdissect.spark.exchanges(spark, capture, tasks=2).isEmpty()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"keylog": "/nowhere"}, "/nowhere: there is no such key log"),
        ({"rsa_key": "/nowhere"}, "/nowhere: cannot be read"),
        ({"schemas": "/nowhere"}, "schemas: /nowhere: not there"),
        ({"decode_as": "orders=none"}, "decode_as: orders=none: there is no form 'none'"),
    ],
)
def test_what_options_name_is_looked_for_before_tasks_start(options: dict[str, str], words: str) -> None:
    with pytest.raises((CaptureError, ValueError), match=f"^{re.escape(words)}"):
        CaptureSource({**options, "path": str(BASIC)}).reader(API)
    with pytest.raises((CaptureError, ValueError), match=f"^{re.escape(words)}"):
        CaptureSource({**options, "path": str(BASIC), "stats": "srt"}).reader(API)


def test_a_worker_that_lacks_a_key_log_says_so_in_one_line(tmp_path: Path) -> None:
    keylog = tmp_path / "keys"
    for stats in ({}, {"stats": "srt"}):
        source = CaptureSource({"path": str(BASIC), "keylog": str(keylog), **stats})
        keylog.write_text("")
        reader = source.reader(API)
        (task, *_) = reader.partitions()
        keylog.unlink()
        with pytest.MonkeyPatch.context() as environment:
            environment.delenv("SPARK_HIDE_TRACEBACK", raising=False)
            with pytest.raises(CaptureError, match="there is no such key log"):
                next(iter(reader.read(task)))
            assert os.environ.pop("SPARK_HIDE_TRACEBACK") == "1"


def test_keys_and_values_are_decoded(spark: SparkSession) -> None:
    frame = kdissect.spark.table(spark, BASIC, "records", decode_as="*=auto", tasks=2)
    rows = [row for row in frame.collect() if row.value is not None]
    texts = [row for row in rows if json.loads(row.valueFormat)["format"] == "text"]
    assert texts
    assert all(json.loads(row.valueDecoded) == row.value.decode() for row in texts)
