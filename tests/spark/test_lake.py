"""Where tables go, and runs that add what is new: Parquet, Delta, Iceberg."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kdissect.spark.stream_state
from kdissect.cli import main
from kdissect.cli.errors import Wrong
from kdissect.cli.spark_sessions import refuse_unwritable
from kdissect.spark.tables import full_table
from kdissect.spark.targets import Delta, ParquetFolder, target_of
from tests.amount import LONG
from tests.spark.cuts import cut
from tests.spark.same import CAPTURES, in_order, read_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BASIC = CAPTURES / "basic-kafka43.pcapng"
ERRORS = CAPTURES / "errors.pcapng"
LOSS = CAPTURES / "loss.pcapng"
ALL = ("exchanges", "records", "batches", "connections", "faults")


def batch(*arguments: object) -> int:
    return main(["spark", "batch", *map(str, arguments), "--master", "local[2]"])


def of(names: Sequence[str]) -> list[str]:
    return [word for name in names for word in ("--table", name)]


def plain(rows: list[dict[str, Any]], name: str) -> list[str]:
    """Rows without what a layout adds, as :func:`read_rows` gives them."""
    names = [column.name for column in full_table(name, False, False).columns]
    return in_order({column: row[column] for column in names} for row in rows)


@pytest.mark.usefixtures("spark")
def test_all_tables_are_partitioned_and_have_moments(tmp_path: Path) -> None:
    by = ("--partition-by", "date", "--partition-by", "broker")
    assert batch(LOSS, "--out", tmp_path, *of(ALL), *by, "-q") in (0, 3)
    for name in ALL:
        if not read_rows(name, [LOSS]):
            continue
        folders = [path for path in (tmp_path / name).glob("date=*/broker=*") if any(path.glob("*.parquet"))]
        assert folders, name
        assert all(len(list(path.glob("*.parquet"))) == 1 for path in folders)
        assert "HIVE_DEFAULT" not in str(folders)
        rows = [
            {"broker": path.name.partition("=")[2].replace("%3A", ":"), **row}
            for path in folders
            for file in path.glob("*.parquet")
            for row in pq.ParquetFile(file).read().to_pylist()
        ]
        assert plain(rows, name) == read_rows(name, [LOSS])
        for row in rows:
            for key in row:
                if key.endswith("_ts") and row[key] is not None:
                    ns = row[key.removesuffix("ts") + "ns"]
                    assert row[key] == datetime.fromtimestamp(ns // 10**9, UTC).replace(
                        microsecond=ns // 1000 % 10**6
                    )
        assert any(key.endswith("_ts") for key in rows[0])


@pytest.mark.usefixtures("spark")
def test_a_delta_table_is_whole_and_evolves_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deltalake = pytest.importorskip("deltalake")
    lake = f"delta:{tmp_path}/lake"
    command = ("--to", lake, *of(("exchanges", "faults")), "--partition-by", "date", "-q")
    assert batch(ERRORS, *command) == 0
    table = deltalake.DeltaTable(str(tmp_path / "lake" / "exchanges"))
    assert plain(table.to_pyarrow_table().to_pylist(), "exchanges") == read_rows("exchanges", [ERRORS])
    assert table.metadata().partition_columns == ["date"]
    day = table.to_pyarrow_table().column("date")[0].as_py()
    assert table.file_uris(file_pruning_predicate=f"date = '{day}'")
    assert table.file_uris(file_pruning_predicate="date = '1999-01-01'") == []
    assert batch(ERRORS, *command) == 2  # it is there
    assert batch(ERRORS, *command, "--overwrite", "--capture-point", "errors") == 0
    again = deltalake.DeltaTable(str(tmp_path / "lake" / "exchanges")).to_pyarrow_table()
    assert again.num_rows == table.to_pyarrow_table().num_rows
    assert set(again.column("capture_point").to_pylist()) == {"errors"}
    capsys.readouterr()
    for capture, words in (
        (LOSS, "was made from other captures (errors.pcapng)"),
        (ERRORS, "with --capture-point"),
    ):
        assert batch(capture, "--to", lake, "--table", "records") == 2
        assert words in capsys.readouterr().err


def test_an_iceberg_table_is_whole(
    spark: SparkSession, catalog: Callable[[], Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("--to", "iceberg:lake.kafka", "--table", "exchanges", "-q")
    by = ("--partition-by", "date", "--partition-by", "broker")
    assert batch(ERRORS, *command, *by) == 0
    table = catalog().load_table("kafka.exchanges")
    assert [field.name for field in table.spec().fields] == ["date", "broker"]
    # Its first commit has the partitions: a run that died behind that would never add them.
    first = Path(table.metadata.metadata_log[0].metadata_file.removeprefix("file://"))
    assert [len(spec["fields"]) for spec in json.loads(first.read_text())["partition-specs"]][-1] == 2
    rows = table.scan().to_arrow().to_pylist()
    assert plain(rows, "exchanges") == read_rows("exchanges", [ERRORS])
    assert not list(table.scan("date == '1999-01-01'").plan_files())
    assert batch(ERRORS, *command) == 2
    assert batch(ERRORS, *command, *by, "--overwrite") == 0
    assert catalog().load_table("kafka.exchanges").scan().to_arrow().num_rows == len(rows)
    assert kdissect.spark.views(spark, "iceberg:lake.kafka") == ["exchanges"]
    view = spark.table("exchanges")
    assert plain(view.toArrow().to_pylist(), "exchanges") == read_rows("exchanges", [ERRORS])
    assert {"date", "broker"} <= set(view.columns)
    spark.catalog.dropTempView("exchanges")

    report = ("spark", "report", "-T", "ndjson", "-q", "--strict", "--master", "local[2]")
    capsys.readouterr()
    assert main([*report, "iceberg:lake.kafka"]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("batch … --to iceberg:lake.kafka --table connections makes it")
    rest = of(("connections", "faults"))
    assert batch(LOSS, "--to", "iceberg:lake.kafka", *rest) == 2
    assert "exchanges was made from other captures (errors.pcapng)" in capsys.readouterr().err
    assert batch(ERRORS, "--to", "iceberg:lake.kafka", *rest, "-q") == 0
    if not LONG:
        assert main([*report, "--section", "hours", "iceberg:lake.kafka"]) == 0
        hours = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert sum(hour["exchanges"] for hour in hours) == len(rows)
        return
    assert batch(ERRORS, "--out", tmp_path, "--table", "exchanges", *rest, "-q") == 0
    found = []
    for place in ("iceberg:lake.kafka", str(tmp_path), f"parquet:{tmp_path}"):
        assert main([*report, place]) == 0
        found.append(capsys.readouterr().out)
    assert set(found) == {found[0]} != {""}


def test_what_a_run_that_died_left_is_no_obstacle(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "_staged" / "faults" / "_temporary").mkdir(parents=True)
    ParquetFolder(str(tmp_path)).write(spark.range(3), "exchanges", (), 1, False)
    assert pq.read_table(tmp_path / "exchanges").num_rows == 3
    assert [path.name for path in tmp_path.iterdir()] == ["exchanges"]


def test_a_catalog_of_spark_takes_tables(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    assert batch(ERRORS, "--to", "table:nowhere", *of(("exchanges",))) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("kdissect: table:nowhere: the catalog has no namespace nowhere; ")
    spark.sql("create database if not exists kafka")
    assert batch(ERRORS, "--to", "table:kafka", *of(("exchanges", "connections")), "-q") == 0
    assert batch(ERRORS, "--to", "table:kafka", *of(("connections",)), "-q") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        "kdissect: kafka: connections is there already: --overwrite replaces it; to add to tables later, "
        "make them with --append in another place"
    )
    assert batch(LOSS, "--to", "table:kafka", *of(("faults",)), "--overwrite") == 2
    assert "exchanges was made from other captures (errors.pcapng)" in capsys.readouterr().err
    try:
        assert spark.table("kafka.connections").count() == len(read_rows("connections", [ERRORS]))
        command = ("spark", "report", "table:kafka", "-q", "--master", "local[2]")
        assert main([*command, "--section", "hours", "-T", "ndjson"]) == 0
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert sum(row["exchanges"] for row in rows) == len(read_rows("exchanges", [ERRORS]))
        assert main([*command, "--strict"]) == 3
        assert capsys.readouterr().err == "kdissect: table:kafka: has no table faults\n"
    finally:
        spark.sql("drop database kafka cascade")


@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"] if LONG else ["delta"])
def test_runs_read_what_is_new_and_die_harmlessly(
    spark: SparkSession,
    tmp_path: Path,
    catalog: Callable[[], Any],
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Three nights; the second dies after one of its tables; the third is of another release."""
    (tmp_path / "all").mkdir()
    pieces = cut(BASIC, tmp_path / "all", 6)
    for piece in pieces:
        os.utime(piece, (0, 0))  # nobody writes to them any more
    spool, out = tmp_path / "in", tmp_path / "out"
    spool.mkdir()
    to = "iceberg:lake.nights" if kind == "iceberg" else f"{kind}:{out}"
    names = ("exchanges", "faults", "connections")
    runs = tmp_path / "runs"
    command = ("--to", to, *of(names), "--append", "--runs", runs, "--partition-by", "date")

    def night(*files: Path) -> int:
        for file in files:
            os.link(file, spool / file.name)
        return batch(spool, *command)

    def rows(name: str) -> list[dict[str, Any]]:
        if kind == "parquet":
            return pq.read_table(out / name).to_pylist()  # type: ignore[no-any-return]
        if kind == "delta":
            import deltalake

            found: pa.Table = deltalake.DeltaTable(str(out / name)).to_pyarrow_table()
        else:
            found = catalog().load_table(f"nights.{name}").scan().to_arrow()
        return found.to_pylist()  # type: ignore[no-any-return]

    def kept() -> set[int]:
        """What Spark keeps in memory."""
        return set(spark.sparkContext._jsc.getPersistentRDDs())

    before = kept()
    owner: Any = {"parquet": ParquetFolder, "delta": Delta}.get(kind, type(target_of("iceberg:lake.kafka")))
    write = owner.write

    def dies(self: Any, frame: Any, name: str, *more: Any) -> None:
        if name == "faults":
            raise RuntimeError("the machine went down")
        write(self, frame, name, *more)

    with monkeypatch.context() as patch:
        patch.setattr(owner, "write", dies)
        assert night(*pieces[:2]) != 0
    assert batch(spool, *command) == 0
    assert "run 1 (a repeat, because the first try did not finish)" in capsys.readouterr().err
    assert batch(spool, *command) == 0
    assert "nothing new" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(owner, "write", dies)
        assert night(*pieces[2:4]) != 0
    assert "RuntimeError" in capsys.readouterr().err
    assert kept() == before
    with monkeypatch.context() as patch:
        if kind == "parquet":  # the workers must know the other version too
            for state in (runs / "state").glob("*/*.state"):
                head, _, data = state.read_bytes().partition(b"\n")
                old = json.dumps({**json.loads(head), "kdissect": "0.0.1"}).encode()
                state.write_bytes(old + b"\n" + data)
        assert night(pieces[4]) == 0
    told = capsys.readouterr().err
    assert "run 2 (a repeat, because the first try did not finish): 3 files" in told
    assert "run 3: 2 files" in told
    os.link(pieces[0], spool / "copy.pcapng")
    assert batch(spool, *command) == 0
    assert "has the same bytes as" in capsys.readouterr().err
    assert batch(spool, *command, "--capture-point", "pcap") == 2
    assert "--capture-point is pcap; leave it out, as in run 3" in capsys.readouterr().err
    *read, unread = pieces
    whole = read_rows("exchanges", read)
    known = plain(rows("exchanges"), "exchanges")
    assert len(known) == len(set(known))  # each once
    assert set(known) <= set(whole)
    assert len(rows("connections")) < len(read_rows("connections", read))  # some are open
    with monkeypatch.context() as patch:
        patch.setattr(owner, "write", dies)
        assert batch(spool, *command, "--close") != 0
    assert batch(spool, *command, "--close") == 0
    assert (
        "run 4 (a repeat, because the first try did not finish): open exchanges and connections"
        in capsys.readouterr().err
    )
    assert batch(spool, *command, "--close") == 0
    assert "nothing new" in capsys.readouterr().err
    found = rows("exchanges")
    for name in names:
        assert plain(rows(name), name) == read_rows(name, read)
    os.link(unread, spool / unread.name)
    assert batch(spool, *command) == 2
    assert "run 4 closed these tables" in capsys.readouterr().err
    made = kdissect.spark.views(spark, to)
    assert sorted(made) == sorted(names)
    assert spark.table("exchanges").count() == len(whole)
    for name in made:
        spark.catalog.dropTempView(name)
    assert main(["spark", "runs", str(runs), "-T", "ndjson"]) == 0
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["run"] for row in listed] == [1, 2, 3, 4]
    assert sum(row["exchanges"] for row in listed) == len(found)
    assert [row["files"] for row in listed] == [2, 3, 2, 0]  # the last of each night is looked at again
    assert {row["kdissect"] for row in listed} == {kdissect.__version__}
    assert all(row["cpu_seconds"] > 0 for row in listed)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--out DIR or --to"),
        (("--out", "x", "--to", "delta:y"), "give one of them"),
        (("--to", "hudi:x"), "the form is parquet:DIR"),
        (("--to", "iceberg:x"), "iceberg:CATALOG.NAMESPACE"),
        (("--to", "table:x", "--append"), "keeps no runs"),
        (("--to", "iceberg:a.b", "--append"), "--runs names the folder"),
        (("--out", "x", "--append", "--runs", "s3://b/runs"), "--runs s3://b/runs: must be a folder on this"),
        (("--out", "x", "--append", "--overwrite"), "--overwrite cannot be combined with --append"),
        (("--out", "x", "--append", "-Y", "api == Fetch"), "-Y cannot be combined with --append"),
        (("--out", "x", "--runs", "y"), "--runs needs --append"),
        (("--out", "x", "--close"), "--close needs --append"),
        (("--out", f"{ERRORS}/x/y"), f"{ERRORS} is a file; name a folder"),
    ],
)
def test_what_cannot_be_is_told_before_spark_starts(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert batch(ERRORS, *arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no folder in which even root makes none")
@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("batch", ERRORS, "--out", "/proc/x/y"), "--out /proc/x/y"),
        (("batch", ERRORS, "--to", "delta:/proc/x"), "--to delta:/proc/x"),
        (("batch", ERRORS, "--out", "x", "--append", "--runs", "/proc/x"), "--runs /proc/x"),
        (("stream", ERRORS.parent, "--out", "/proc/x"), "--out /proc/x"),
        (("stream", ERRORS.parent, "--out", "/x", "--checkpoint", "/proc/x"), "--checkpoint /proc/x"),
    ],
)
def test_a_folder_that_cannot_be_made_is_told_before_spark_starts(
    capsys: pytest.CaptureFixture[str], arguments: tuple[object, ...], option: str
) -> None:
    assert main(["spark", *map(str, arguments)]) == 2
    told = "this folder cannot be made (No such file or directory); name another one"
    assert capsys.readouterr().err == f"kdissect: {option}: {told}\n"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no folder in which even root makes none")
def test_a_folder_of_statistics_that_cannot_be_made_is_told_before_spark_starts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["spark", "stats", str(ERRORS), "-z", "srt", "--out", "/proc/x"]) == 2
    told = "/proc/x/stats cannot be made (No such file or directory); name another one"
    assert capsys.readouterr().err == f"kdissect: --out /proc/x: {told}\n"


def test_statistics_need_only_their_own_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stats").mkdir()
    usual = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != str(tmp_path) and usual(path, mode))
    refuse_unwritable(f"{tmp_path}/stats", "local", f"--out {tmp_path}")
    (tmp_path / "stats").rmdir()
    (tmp_path / "stats").write_text("")
    assert main(["spark", "stats", str(ERRORS), "-z", "srt", "--out", str(tmp_path)]) == 2
    told = f"--out {tmp_path}: {tmp_path}/stats is a file; name a folder"
    assert capsys.readouterr().err == f"kdissect: {told}\n"


def test_what_is_no_folder_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(Wrong, match="link: is no folder; name another one"):
        refuse_unwritable(f"{tmp_path}/link", "local")
    with pytest.raises(Wrong, match=f"link/x: {tmp_path}/link is no folder; name another one"):
        refuse_unwritable(f"{tmp_path}/link/x", "local")


@pytest.mark.parametrize("moment", ["mkdir", "rmdir"])
def test_two_runs_may_begin_at_once_below_a_new_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    parent, usual = tmp_path / "new", getattr(os, moment)
    calls: list[object] = []

    def meanwhile(path: str, *given: int) -> None:
        """The other run takes away the folder above, or makes its own folder."""
        calls.append(path)
        if len(calls) == 1 and moment == "mkdir":
            parent.rmdir()
        elif moment == "rmdir":
            (parent / "other").mkdir()
        usual(path, *given)

    if moment == "mkdir":
        parent.mkdir()
    monkeypatch.setattr(os, moment, meanwhile)
    refuse_unwritable(f"{parent}/mine", "local")
    assert calls


def test_a_folder_that_is_not_ours_is_told_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != str(tmp_path) and usual(path, mode))
    assert batch(ERRORS, "--out", tmp_path) == 2
    told = "this folder cannot be written to (Permission denied); name another one"
    assert capsys.readouterr().err == f"kdissect: --out {tmp_path}: {told}\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("spark")
def test_a_damaged_delta_table_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("deltalake")
    log = tmp_path / "exchanges" / "_delta_log" / "00000000000000000000.json"
    log.parent.mkdir(parents=True)
    log.write_text("damaged")
    place = f"delta:{tmp_path}"
    assert batch(ERRORS, "--to", place, "--table", "exchanges", "--overwrite") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "exchanges: cannot be read as a Delta table: " in line
    (tmp_path / "connections").mkdir()
    assert main(["spark", "report", place, "--section", "hours", "--master", "local[2]"]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "exchanges: cannot be read as a Delta table: " in line


@pytest.mark.usefixtures("catalog")  # the configuration is read once
@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("iceberg:x", "the form is iceberg:CATALOG.NAMESPACE"),
        ("delta:", "the form is parquet:DIR, delta:PATH"),
        (
            "iceberg:nobody.knows",
            "nobody cannot be used: no configuration of pyiceberg names it",
        ),
        ("delta:/nowhere", "delta:/nowhere: there is no such folder"),
        ("/nowhere", "/nowhere: there is no such folder"),
    ],
)
def test_a_report_of_a_place_that_is_not_there_is_one_line(
    capsys: pytest.CaptureFixture[str], place: str, words: str
) -> None:
    assert main(["spark", "report", place]) in (2, 3)
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
    assert main(["spark", "report", place, "-T", "html"]) in (2, 3)
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_folder_without_runs_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark", "runs", str(tmp_path)]) == 3
    assert "has no runs" in capsys.readouterr().err
