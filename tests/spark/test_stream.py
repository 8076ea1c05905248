"""``kdissect spark stream``: tables that grow, each row exactly once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import kdissect
from kdissect.cli import main
from kdissect.spark import compaction, plan, views
from kdissect.spark import stream as streaming
from kdissect.spark.run_request import first, stored_request
from kdissect.spark.settings import TableSettings
from kdissect.spark.states import States
from tests.amount import only_long, times
from tests.spark.cuts import cut
from tests.spark.same import CAPTURES, in_order, read_rows, without_moments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BASIC = CAPTURES / "basic-kafka43.pcapng"
ERRORS = CAPTURES / "errors.pcapng"
TABLES = ("exchanges", "connections", "faults")
NOW = ("--available-now", "--master", "local[2]", "-q")
PATIENT = ("--settle", "1h", "--max-bytes-per-batch", 60_000)
"""Half a file is damage after a while, and a busy machine takes long."""


def run(folder: Path, out: Path, *more: object) -> int:
    return main(["spark", "stream", str(folder), "--out", str(out), *NOW, *map(str, more)])


def rows(out: Path, name: str) -> list[str]:
    """The rows of a stream's table, whatever batch they came in."""
    found: list[dict[str, Any]] = []
    for file in (out / name).glob("batch=*/*.parquet"):
        found += pq.ParquetFile(file).read().to_pylist()
    return in_order(without_moments(found))


def in_time(files: list[Path]) -> list[Path]:
    """Files that :func:`cut` made, the earliest first."""
    return sorted(files, key=lambda path: path.read_bytes()[24:28][::-1] + path.read_bytes()[28:32][::-1])


@pytest.mark.usefixtures("spark")
def test_a_stream_gives_what_a_batch_gives(tmp_path: Path) -> None:
    source, folder, out = (tmp_path / name for name in ("source", "folder", "out"))
    source.mkdir()
    folder.mkdir()
    *files, last = in_time(cut(BASIC, source, 5))
    for at, file in enumerate(files):
        # The files of a folder are read in the order of their packets; half of one is there first.
        target = folder / file.name
        data = file.read_bytes()
        target.write_bytes(data[: len(data) // 2])
        if at == 2:
            assert run(folder, out, *PATIENT) == 0
        target.write_bytes(data)
    assert run(folder, out, *PATIENT, "--close") == 0
    check_rows(folder, out)
    assert len(list((out / "exchanges").glob("batch=*"))) > 3
    # A stream that was closed may go on.
    shutil.copy(last, folder)
    assert run(folder, out, *PATIENT, "--close") == 0
    check_rows(folder, out)


def test_findings_change_and_what_was_read_goes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with several tasks for a capture point, and after folders of batches became one."""
    monkeypatch.setattr(plan, "BYTES_A_TASK", 1)
    monkeypatch.setattr(compaction, "TOGETHER", 2)
    folder, out, old = (tmp_path / name for name in ("folder", "out", "old"))
    folder.mkdir()
    pieces = in_time(cut(ERRORS, tmp_path, 3))
    for piece in pieces:
        os.rename(piece, folder / piece.name)
    options = ("--findings", "--max-bytes-per-batch", "1", "--when-read", f"move:{old}")
    for more in ((), ("--close",)):
        assert run(folder, out, *options, *more) == 0
    assert {path.name for path in old.iterdir()} == {piece.name for piece in pieces[:2]}
    for name in TABLES:
        assert rows(out, name) == read_rows(name, [*old.iterdir(), *folder.iterdir()]), name
    # Three batches, and what was open: the first two became one.
    assert sorted(path.name for path in (out / "exchanges").iterdir()) == ["batch=1", "batch=2", "batch=3"]
    # The first task dissected, the second made rows.
    assert [path.name[:10] for path in (out / "connections" / "batch=2").glob("*.parquet")] == ["part-00000"]
    assert [path.name[:10] for path in (out / "exchanges" / "batch=2").glob("*.parquet")] == ["part-00001"]
    assert not list(out.glob("_staged*"))
    assert set(views(spark, out)) == {*TABLES, "findings"}
    latest = spark.sql(
        "select * from (select *, row_number() over (partition by key order by batch_number desc) as latest"
        " from findings) where latest = 1 and change <> 'over'"
    )
    found = sorted(row.key for row in latest.collect())
    assert found == sorted(
        finding.key for finding in kdissect.explain([*old.iterdir(), *folder.iterdir()]).findings
    )


def check_rows(folder: Path, out: Path) -> None:
    for name in TABLES:
        assert rows(out, name) == read_rows(name, sorted(folder.iterdir())), name


@only_long
@pytest.mark.usefixtures("spark")
def test_a_stream_that_was_closed_in_the_middle_may_go_on(tmp_path: Path) -> None:
    source, folder, out = (tmp_path / name for name in ("source", "folder", "out"))
    source.mkdir()
    folder.mkdir()
    for file in in_time(cut(BASIC, source, 2)):
        shutil.copy(file, folder)
        assert run(folder, out, "--close") == 0
        check_rows(folder, out)


@pytest.mark.usefixtures("spark")
def test_what_is_drained_is_there_once_and_another_release_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, folder, out = (tmp_path / name for name in ("source", "folder", "out"))
    only = ("--table", "exchanges")
    source.mkdir()
    folder.mkdir()
    pieces = in_time(cut(BASIC, source, 2))
    shutil.copy(pieces[0], folder)
    with monkeypatch.context() as patch:
        patch.setattr(States, "end_drain", None)  # it dies: rows are there, and do not count yet
        assert run(folder, out, *only, "--drain") != 0
    for _ in range(2):
        assert run(folder, out, *only, "--drain") == 0
    drained = read_rows("exchanges", [pieces[0]])
    assert rows(out, "exchanges") == drained
    assert (out / "exchanges" / "batch=-1").is_dir()
    for state in (out / "_checkpoint" / "state").glob("*/*.state"):
        state.write_bytes(state.read_bytes().replace(b'"kdissect": "', b'"kdissect": "0.', 1))
    pieces[0].unlink()
    shutil.copy(pieces[1], folder)
    assert run(folder, out, *only, "--close") == 0
    found = rows(out, "exchanges")
    assert set(drained) < set(found)
    after = read_rows("exchanges", [pieces[1]])
    assert len(found) == len(drained) + len(after)
    numbers = pq.read_table(out / "exchanges")["number"].to_pylist()
    assert sorted(numbers) == list(range(1, len(found) + 1))


@only_long
@pytest.mark.usefixtures("spark")
def test_the_state_of_another_release_is_ended_if_its_captures_are_gone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source, folder, out = (tmp_path / name for name in ("source", "folder", "out"))
    only = ("--table", "exchanges")
    source.mkdir()
    folder.mkdir()
    pieces = in_time(cut(BASIC, source, 2))
    shutil.copy(pieces[0], folder)
    os.utime(folder / pieces[0].name, (0, 0))  # nobody writes to it any more
    assert run(folder, out, *only) == 0
    for state in (out / "_checkpoint" / "state").glob("*/*.state"):
        state.write_bytes(state.read_bytes().replace(b'"kdissect": "', b'"kdissect": "0.', 1))
    (folder / pieces[0].name).unlink()
    shutil.copy(pieces[1], folder)
    capfd.readouterr()
    assert run(folder, out, *only) != 0
    assert (
        "to go on without it, give the same command once with --available-now --drain"
        in capfd.readouterr().err
    )
    assert run(folder, out, *only, "--drain") == 0
    assert "what it had left open has rows" in capfd.readouterr().err
    assert not list((out / "exchanges").glob("batch=-*"))  # connections begin again once
    assert run(folder, out, *only, "--close") == 0
    before = read_rows("exchanges", [pieces[0]])
    found = rows(out, "exchanges")
    assert set(before) < set(found)
    assert len(found) == len(before) + len(read_rows("exchanges", [pieces[1]]))


@only_long
@pytest.mark.usefixtures("spark")
def test_a_drain_that_died_is_forgotten_when_more_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, source, out = (tmp_path / name for name in ("folder", "source", "out"))
    folder.mkdir()
    source.mkdir()
    for at, piece in enumerate(in_time(cut(BASIC, source, 2))):
        shutil.copy(piece, folder)
        with monkeypatch.context() as patch:
            patch.setattr(States, "end_drain", None)
            assert run(folder, out, "--drain") != 0
        assert len(list((out / "exchanges").glob("batch=-*"))) == 1, at
    assert run(folder, out, "--drain") == 0
    assert rows(out, "exchanges") == read_rows("exchanges", sorted(folder.iterdir()))


@pytest.mark.usefixtures("spark")
def test_a_late_file_is_told_and_read(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source, folder, out = (tmp_path / name for name in ("source", "folder", "out"))
    source.mkdir()
    folder.mkdir()
    first, second, third = in_time(cut(BASIC, source, 3))
    for files in ((first, third), (second,)):
        for file in files:
            shutil.copy(file, folder)
        assert run(folder, out) == 0
    (row,) = [row for row in rows(out, "faults") if "late-file" in row]
    assert second.name in row
    assert second.name in capfd.readouterr().err


def test_a_batch_that_fails_anywhere_is_repeated(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, out = tmp_path / "folder", tmp_path / "out"
    folder.mkdir()
    files = times(2, 3)
    cut(BASIC, folder, files)
    add = streaming.Tables.add
    left = [0, files - 1]  # a batch is written and then not committed

    def breaking(self: streaming.Tables, frame: Any, batch: int) -> None:
        add(self, frame, batch)
        if batch in left:
            left.remove(batch)
            raise RuntimeError("pulled the plug")

    monkeypatch.setattr(streaming.Tables, "add", breaking)
    codes = [run(folder, out, "--max-bytes-per-batch", 1) for _ in range(2)]
    assert codes == [2, 2]
    assert run(folder, out, "--max-bytes-per-batch", 1, "--close") == 0
    for name in TABLES:
        assert rows(out, name) == read_rows(name, sorted(folder.iterdir())), name


SMALL = ("--max-bytes-per-batch", "1", "--close")
"""A batch for every file."""


def kill(folder: Path, out: Path, is_time: Callable[[], bool]) -> None:
    """Run it as a process of its own, which is killed when it is time, if it did not end before."""
    command = [sys.executable, "-m", "kdissect", "spark", "stream", str(folder), "--out", str(out), *NOW]
    process = subprocess.Popen([*command, *SMALL], start_new_session=True)
    while not is_time() and process.poll() is None:
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@only_long
@pytest.mark.usefixtures("spark")  # skips where there is no Java
def test_a_stream_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    folder, out = tmp_path / "folder", tmp_path / "out"
    folder.mkdir()
    cut(BASIC, folder, 4)
    # In the middle of the second batch: one of its tables is there.
    kill(folder, out, (out / "exchanges" / "batch=1" / "_SUCCESS").exists)
    assert not (out / "faults" / "batch=2").exists()
    assert run(folder, out, *SMALL) == 0
    for name in TABLES:
        assert rows(out, name) == read_rows(name, sorted(folder.iterdir())), name


@only_long
@pytest.mark.usefixtures("spark")  # skips where there is no Java
def test_ctrl_c_ends_it_without_a_word(tmp_path: Path) -> None:
    folder, out = tmp_path / "folder", tmp_path / "out"
    folder.mkdir()
    shutil.copy(BASIC, folder)
    command = [sys.executable, "-m", "kdissect", "spark", "stream", str(folder), "--out", str(out)]
    process = subprocess.Popen([*command, "--master", "local[2]"], stderr=subprocess.PIPE, process_group=0)
    while not (out / "faults" / "batch=0" / "_SUCCESS").exists() and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=60)[1] == b""
    assert process.returncode == 130


@pytest.mark.parametrize(
    ("folder", "more", "words"),
    [
        ("in", ("--master", "sc://127.0.0.1"), "not a Spark Connect server"),
        ("in", ("--out", "in/tables"), "whose files are read"),
        ("in", ("--checkpoint", "in/kept"), "whose files are read"),
        ("in", ("--when-read", "burn"), "keep, delete or move:DIR"),
        ("in", ("--when-read", "move:in/old"), "whose files are read"),
        ("in", ("--close",), "--available-now"),
        ("nowhere", (), "nowhere: there is no such folder"),
        ("in/file", (), "in/file: is a file; name the folder of the captures"),
        ("abc://bucket/in", (), "files may be at s3://"),
    ],
)
def test_what_cannot_be_a_stream_is_told_before_spark_starts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    folder: str,
    more: tuple[str, ...],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("in/file").touch()
    assert main(["spark", "stream", folder, "--out", "out", *more]) in (2, 3)
    (line, *_) = capsys.readouterr().err.splitlines()
    assert words in line
    assert list(tmp_path.iterdir()) == [tmp_path / "in"]


def test_tables_of_another_stream_are_not_mixed_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Batches would be counted from 0 again, and what is left of those that there were would stay."""
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("out/exchanges/batch=7").mkdir(parents=True)
    assert main(["spark", "stream", "in", "--out", "out", "--available-now"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "out/exchanges exists already" in line
    assert not Path("out/_checkpoint").exists()


def test_other_options_than_before_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, checkpoint = tmp_path / "folder", tmp_path / "out" / "_checkpoint"
    folder.mkdir()
    checkpoint.mkdir(parents=True)
    first(str(checkpoint), stored_request(TABLES, (), TableSettings(payload="none")))
    assert run(folder, tmp_path / "out", "--payload", "full") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--payload is not given; give none, as in the batches before" in line
