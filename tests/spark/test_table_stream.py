"""``spark.readStream.format("kdissect")``: the rows of captures that appear in a folder."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import kdissect.spark
from kdissect.model import CaptureError
from kdissect.spark import launch
from kdissect.spark.settings import TableSettings
from kdissect.spark.source import CaptureSource
from kdissect.spark.table_stream import BatchTask, TableStream
from tests.spark.cuts import cut
from tests.spark.same import CAPTURES, in_order, read_rows
from tests.spark.test_stream import in_time

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

BASIC = CAPTURES / "basic-kafka43.pcapng"


class Folders:
    """A folder whose files come one by one, and what a query has beside it."""

    def __init__(self, place: Path, pieces: int) -> None:
        (place / "source").mkdir()
        self.waiting = in_time(cut(BASIC, place / "source", pieces))
        self.spool, self.state, self.checkpoint = (place / name for name in ("in", "state", "checkpoint"))
        self.spool.mkdir()
        self.first = self.waiting[0].read_bytes()

    def put(self, count: int) -> None:
        for file in self.waiting[:count]:
            (self.spool / file.name).write_bytes(file.read_bytes())
        del self.waiting[:count]

    @property
    def files(self) -> list[Path]:
        return sorted(self.spool.iterdir())


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path, 4)


def run(spark: SparkSession, folders: Folders, take: Any, **options: str) -> None:
    """A query up to what is there now; ``take`` gets each batch."""
    kdissect.spark.register(spark)
    reader = spark.readStream.format("kdissect").option("state", str(folders.state))
    reader = reader.option("max_bytes_per_batch", "1").option("settle_seconds", "3600").options(**options)
    writer = reader.load(str(folders.spool)).writeStream.foreachBatch(take)
    writer = writer.option("checkpointLocation", str(folders.checkpoint)).trigger(availableNow=True)
    writer.start().awaitTermination()


def test_a_stream_has_the_rows_of_a_batch(spark: SparkSession, folders: Folders) -> None:
    """Also across the end of a query, and where a batch is looked at in part, twice or not at all."""
    found: dict[int, list[dict[str, Any]]] = {}

    def take(frame: DataFrame, batch: int) -> None:
        if batch == 1:
            frame.limit(1).collect()
        for _ in range(batch == 3 or 1 + (batch == 2)):
            rows = frame.toArrow().to_pylist()
        found[batch] = rows

    folders.put(2)
    run(spark, folders, take)
    folders.put(2)
    run(spark, folders, take)
    assert sorted(found) == [0, 1, 2, 3]
    rows = in_order(row for batch in found.values() for row in batch)
    expected = read_rows("exchanges", folders.files)
    # What is still open at the end is no row yet.
    assert set(rows) <= set(expected)
    assert len(rows) == len(set(rows)) >= len(expected) - 3


def test_what_nobody_took_is_read_for_the_next_batch(spark: SparkSession, folders: Folders) -> None:
    whole: list[dict[str, Any]] = []
    last: list[dict[str, Any]] = []
    folders.put(4)
    run(spark, folders, lambda frame, _: whole.extend(frame.toArrow().to_pylist()))
    folders.checkpoint = folders.checkpoint.with_name("another")

    def take(frame: DataFrame, batch: int) -> None:
        if batch == 3:
            last.extend(frame.toArrow().to_pylist())

    run(spark, folders, take)
    assert last
    assert set(in_order(last)) < set(in_order(whole))
    # Two queries. What a batch leaves goes when the batch after the next is planned.
    found = {tuple(sorted(path.name for path in query.glob("state/*"))) for query in folders.state.iterdir()}
    assert found == {("2", "3", "4"), ("1", "2", "3", "4")}


def test_tables_columns_and_capture_points(spark: SparkSession, folders: Folders) -> None:
    rows: list[dict[str, Any]] = []
    folders.put(4)
    options = {"table": "records", "columns": "capture_point,offset", "capture_point": "in"}
    run(spark, folders, lambda frame, _: rows.extend(frame.toArrow().to_pylist()), **options)
    frame = kdissect.spark.table(spark, folders.files, "records", columns="offset")
    assert sorted(row["offset"] for row in rows) == sorted(row.offset for row in frame.collect())
    assert {tuple(row) for row in rows} == {("capture_point", "offset")}


def of(folders: Folders, drain: str = "false", **options: Any) -> TableStream:
    settings = TableSettings.of(options)
    own = {"path": str(folders.spool), "state": str(folders.state), "max_bytes_per_batch": "1"}
    own["drain"] = drain
    return TableStream(own, settings, settings.chosen_table())


def batches(stream: TableStream) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Where the batches begin and end."""
    found, start = [], stream.initialOffset()
    while (end := stream.latestOffset(start, stream.getDefaultReadLimit())) != start:
        found.append((start, end))
        start = end
    return found


def rows_of(stream: TableStream, task: Any) -> list[Any]:
    found: list[pa.RecordBatch] = list(stream.read(task))
    return [row for batch in found for row in batch.to_pylist()]


def test_batches_that_nobody_took_need_their_files(folders: Folders) -> None:
    folders.put(3)
    stream = of(folders)
    ends = batches(stream)
    assert [end["batch"] for _, end in ends] == [1, 2, 3]
    tasks = [task for start, end in ends for task in stream.partitions(start, end)]
    for _, end in ends:
        stream.commit(end)  # what nobody took is still to be done
    expected = [rows_of(of(folders), task) for task in tasks]
    assert all(expected)
    for path in folders.state.rglob("*.state"):
        path.unlink()
    assert rows_of(stream, tasks[2]) == expected[2]
    for path in folders.state.rglob("*.state"):
        path.unlink()
    (first,) = ends[0][1]["files"]
    Path(first).rename(folders.state / "elsewhere")
    with pytest.raises(ValueError, match=r"is missing, but nobody has taken all rows of batch 1"):
        rows_of(stream, tasks[2])
    (folders.state / ends[0][1]["query"] / "batches" / "2.json").unlink()
    with pytest.raises(ValueError, match=r"batches/2\.json: is not there; begin a query"):
        rows_of(stream, tasks[2])


def test_the_state_of_another_release_is_ended_if_its_captures_are_gone(folders: Folders) -> None:
    folders.put(2)
    stream = of(folders)
    tasks = [task for start, end in batches(stream) for task in stream.partitions(start, end)]
    before = rows_of(stream, tasks[0])
    for state in folders.state.rglob("*.state"):
        state.write_bytes(state.read_bytes().replace(b'"kdissect": "', b'"kdissect": "0.', 1))
    (path,) = (each for each in folders.files if each.read_bytes() == folders.first)
    path.unlink()
    with pytest.raises(ValueError, match=r'start the query once with \.option\("drain", "true"\)'):
        rows_of(stream, tasks[1])
    after = rows_of(of(folders, "true"), tasks[1])
    numbers = [row["number"] for row in [*before, *after]]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert before
    assert after


def test_what_was_taken_is_forgotten(folders: Folders) -> None:
    folders.put(3)
    stream = of(folders)
    for start, end in batches(stream):
        # The first batch runs again: Spark begins anew, and only its end is what it was.
        for begin in (start, stream.initialOffset() if end["batch"] == 1 else start):
            (task,) = stream.partitions(begin, end)
            assert rows_of(stream, task)
        stream.commit(end)
        assert not list(folders.state.rglob("batches/*.json"))


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"table": "packets"}, "table: a stream has no packets"),
        ({"table": "connections", "filter": "api == Fetch"}, "filter: chooses connections by exchanges"),
        ({"stats": "srt"}, "stats: a stream has tables"),
        ({"two_pass": "true"}, "two_pass: a stream is read once"),
        ({"keylog": "keys.log"}, "keylog: readStream takes none"),
        ({"rsa_key": "key.pem"}, "rsa_key: readStream takes none"),
        ({"filter": "api ="}, "filter: "),
        ({"state": "s3://me:secret@x/y"}, "s3://…@x/y: everybody sees a password in a URI"),
        ({"path": "s3://me:secret@x/y"}, "s3://…@x/y: everybody sees a password in a URI"),
        ({"state": None}, "state: is missing; name a folder"),
        ({"state": "in/below"}, "whose files are read; take another folder"),
        ({"path": "nowhere"}, "nowhere: there is no such folder"),
        ({"maxBytesPerBatch": "0"}, "max_bytes_per_batch: a whole number above 0, not '0'"),
        ({"drain": "yes"}, "drain: true or false, not 'yes'"),
        ({"settleSeconds": "1m"}, "settle_seconds: a number of seconds, not '1m'"),
        ({"when_read": "delete"}, "there is no option 'when_read'"),
        ({"maxBytesPerBatch": "²"}, "max_bytes_per_batch: a whole number above 0, not '²'"),
        ({"settleSeconds": "²"}, "settle_seconds: a number of seconds, not '²'"),
        ({"paths": '["a", "b"]'}, "a stream reads one folder"),
        ({"paths": "[]"}, r"paths: a list of paths in JSON, not '\[\]'"),
        ({"paths": '"in"'}, "paths: a list of paths in JSON"),
        ({"paths": "in"}, "paths: a list of paths in JSON"),
    ],
)
def test_what_a_stream_cannot_do_is_one_line(
    folders: Folders, monkeypatch: pytest.MonkeyPatch, options: dict[str, str | None], line: str
) -> None:
    monkeypatch.chdir(folders.spool.parent)
    monkeypatch.setitem(os.environ, "SPARK_HIDE_TRACEBACK", "")  # is set, and goes again
    given = {"path": "in", "state": "state", **options}
    source = CaptureSource({key: value for key, value in given.items() if value is not None})
    schema = kdissect_schema(options)
    with pytest.raises((ValueError, CaptureError), match=line.replace("(", r"\(")):
        source.streamReader(schema).initialOffset()


def kdissect_schema(options: dict[str, str | None]) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    from kdissect.present.arrow import arrow_schema

    names = {"table", "stats"} & set(options)
    return from_arrow_schema(
        arrow_schema(TableSettings.of({key: options[key] for key in names}).chosen_table())
    )


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"table": "records"}, "table is records; leave it out"),
        ({"capture_point": "directory"}, "capture_point is not given; give directory"),
        ({"ports": "9092"}, "ports is 9092; leave it out"),
        ({"filter": "api == Fetch"}, "filter is api == Fetch; leave it out"),
    ],
)
def test_a_query_that_goes_on_with_other_options_is_refused(
    folders: Folders, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], line: str
) -> None:
    """Its rows would come twice."""
    monkeypatch.setitem(os.environ, "SPARK_HIDE_TRACEBACK", "")
    folders.put(2)
    point = {"capture_point": "directory"} if "capture_point" in options else {}
    stream = of(folders, **point)
    (begin, first), second = batches(stream)
    stream.partitions(begin, first)
    other = of(folders, **({} if point else options))
    # Before a batch is planned; where it is planned again; and where it is the first one.
    for does in (
        lambda: other.latestOffset(first, other.getDefaultReadLimit()),
        lambda: other.partitions(*second),
        lambda: other.partitions(other.initialOffset(), first),
    ):
        with pytest.raises(ValueError, match=line) as caught:
            does()
        assert str(caught.value).endswith("or begin a query with another checkpointLocation")
    again = of(folders, **point, progress="elsewhere")  # no row depends on it
    assert again.partitions(*second)


def test_a_folder_that_goes_away_is_one_line(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "SPARK_HIDE_TRACEBACK", "")
    stream = of(folders)

    def refuse(*_: object) -> None:
        raise CaptureError("hdfs://host/x: cannot be listed: no answer")

    monkeypatch.setattr(stream, "_spool", SimpleNamespace(next=refuse))
    with pytest.raises(CaptureError, match="no answer"):
        stream.prepareForTriggerAvailableNow()
    assert os.environ["SPARK_HIDE_TRACEBACK"] == "1"


def test_options_of_streams_are_none_of_batches(spark: SparkSession, tmp_path: Path) -> None:
    kdissect.spark.register(spark)
    with pytest.raises(Exception, match="there is no option 'state'"):
        spark.read.format("kdissect").option("state", str(tmp_path)).load(str(BASIC)).count()


def test_an_older_spark_is_told(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "SPARK_HIDE_TRACEBACK", "")
    monkeypatch.setattr("kdissect.spark.source.can_stream", lambda: False)
    source = CaptureSource({"path": str(folders.spool)})
    reader: Any = source.streamReader(kdissect_schema({}))
    # Spark 4.1 asks with availableNow where to end before it asks where to begin; newer ones give arguments.
    for asks in (reader.initialOffset, reader.latestOffset, lambda: reader.latestOffset({}, None)):
        with pytest.raises(ValueError, match=f"a stream needs Spark {launch.STREAMS_SINCE} or newer"):
            asks()


def test_a_plan_that_does_not_fit_is_refused(folders: Folders) -> None:
    folders.put(1)
    stream = of(folders)
    with pytest.raises(ValueError, match="is not there"):
        rows_of(stream, BatchTask("0" * 32, 1, "x"))
