"""``kdissect spark batch``."""

from __future__ import annotations

import re
import socket
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kdissect.cli import main
from kdissect.cli.errors import Wrong
from kdissect.cli.spark_sessions import running
from tests.spark.cuts import cut
from tests.spark.same import CAPTURES, TABLES, read_rows, written_rows

ERRORS = CAPTURES / "errors.pcapng"
LOSS = CAPTURES / "loss.pcapng"


def run(*arguments: object) -> int:
    return main(["spark", "batch", *map(str, arguments), "--master", "local[2]", "-q"])


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("tasks", [1, 2])
def test_the_tables_are_those_of_read(tmp_path: Path, tasks: int) -> None:
    """All tables, of one pass."""
    more = [word for name in TABLES for word in ("--table", name)]
    assert run(LOSS, "--out", tmp_path, "--tasks", tasks, *more) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(TABLES)
    for name in TABLES:
        assert written_rows(tmp_path / name) == read_rows(name, [LOSS]), name
        assert (tmp_path / name / "_SUCCESS").exists()


@pytest.mark.usefixtures("spark")
def test_each_byte_is_read_once_for_all_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = [word for name in TABLES for word in ("--table", name)]
    command = ["spark", "batch", str(ERRORS), "--out", str(tmp_path), *more, "--master", "local[2]"]
    for tasks in (1, 2):
        assert main([*command, "--tasks", str(tasks), "--overwrite"]) == 0
        (line,) = capsys.readouterr().err.splitlines()
        rows = sum(len(read_rows(name, [ERRORS])) for name in TABLES)
        read = ERRORS.stat().st_size
        assert f"{len(TABLES)} tables, {rows:,} rows; {read:,} bytes of captures were read" in line
        assert re.search(r"1\.00 times their size, in \d+\.\d s; no faults of files$", line)


@pytest.mark.usefixtures("spark")
def test_one_damaged_file_among_many_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    pieces = cut(ERRORS, tmp_path / "in", 100)
    pieces[50].write_bytes(b"not a capture")
    assert run(tmp_path / "in", "--out", tmp_path / "out") == 3
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("kdissect: ")
    assert pieces[50].name in line
    others = sorted(set(pieces) - {pieces[50]})
    assert written_rows(tmp_path / "out" / "exchanges") == read_rows("exchanges", others)
    assert run(tmp_path / "in", "--out", tmp_path / "more", "--strict", "--table", "connections") == 3


@pytest.mark.usefixtures("spark")
def test_tables_may_be_partitioned_and_are_for_their_owner_only(tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = (
        "--table",
        "exchanges",
        "--table",
        "faults",
        "--partition-by",
        "date",
        "--partition-by",
        "api",
    )
    assert run(ERRORS, "--out", out, *arguments) == 0
    folders = {path.name.partition("=")[0] for path in (out / "exchanges").glob("*/*") if path.is_dir()}
    assert folders == {"api"}
    assert pq.read_table(out / "exchanges").num_rows == len(read_rows("exchanges", [ERRORS]))
    modes = {path: path.stat().st_mode & 0o777 for path in (out, *out.rglob("*"))}
    assert len(modes) > 3
    assert modes == {path: 0o700 if path.is_dir() else 0o600 for path in modes}


def test_what_a_table_cannot_be_partitioned_by_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    tables = ("--table", "exchanges", "--table", "packets", "--table", "faults")
    by = ("--partition-by", "date", "--partition-by", "broker", "--partition-by", "api")
    assert run(ERRORS, "--plan", *tables, *by) == 0
    assert capsys.readouterr().err.splitlines() == [
        "kdissect: --partition-by broker, api: the table packets has no such column",
        "kdissect: --partition-by api: the table faults has no such column",
    ]


def test_the_plan_is_shown_without_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(CAPTURES / "*.pcap", ERRORS, "--out", tmp_path, "--plan", "--tasks", 5) == 0
    first, point, *files = capsys.readouterr().out.splitlines()
    assert first.startswith("1 task to read ")
    assert "2 files" in point
    assert point.endswith("1 task reads it, 5 make its rows")
    assert [Path(line.split()[0]).name for line in files] == ["broker-0.9.pcap", "errors.pcapng"]
    assert list(tmp_path.iterdir()) == []
    assert run(ERRORS, "--plan") == 0
    assert capsys.readouterr().out.startswith("1 task to read ")


def test_what_is_there_is_not_replaced_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "exchanges").mkdir()
    (tmp_path / "exchanges" / "mine").write_text("")
    assert run(ERRORS, "--out", tmp_path) == 2
    assert "from a run that did not end: --overwrite" in capsys.readouterr().err
    (tmp_path / "file").write_text("mine")
    assert run(ERRORS, "--out", tmp_path / "file") == 2
    assert "is a file" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--partition-by", "apo"), "did you mean api"),
        (("--partition-by", "dat"), "did you mean date"),
        (("--payload", "half"), "none, head:N or full"),
        (("-Y", "api =="), "filter"),
        (("--capture-point", "("), "--capture-point: '(' is not a regular expression"),
        (("--capture-point", "nowhere"), "'nowhere' matches nothing"),
        (("--conf", "nonsense"), "KEY=VALUE"),
        (("--explain",), "--explain is --plan now"),
    ],
)
def test_what_is_wrong_is_told_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert run(ERRORS, "--out", tmp_path, *arguments) == 2
    (line, *_) = capsys.readouterr().err.splitlines()
    assert words in line


def test_inputs_of_which_none_is_a_capture_are_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("not a capture")
    for inputs in (["/nowhere.pcap"], [tmp_path / "text"], [tmp_path / "text", "/nowhere.pcap"]):
        for more in ((), ("--plan",)):
            assert run(*inputs, "--out", tmp_path / "out", *more) == 3
            (line,) = capsys.readouterr().err.splitlines()
            assert str(inputs[0]) in line
    assert run(ERRORS, "--out", tmp_path, "--keylog", "/nowhere.log") == 3
    assert not (tmp_path / "out").exists()


def test_without_java_a_line_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr("kdissect.spark.launch.bundled_java", lambda: None)
    assert run(ERRORS, "--out", tmp_path) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "Java 17" in line
    assert "with its extra spark-local" in line


def test_a_log_that_nobody_is_sent_to_does_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setattr("kdissect.spark.launch.bundled_java", lambda: None)
    with pytest.raises(Wrong), running({"conf": (), "spark_log": None, "master": "local[1]"}):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "master", ["spark://127.0.0.1:{}", "sc://127.0.0.1:{}/;token=x", "spark://a.invalid:7,127.0.0.1:{}"]
)
def test_where_nobody_answers_a_line_says_so_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], master: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setattr("kdissect.spark.launch.find_spec", lambda name: name)
    monkeypatch.setattr("kdissect.spark.launch.find_java", lambda: "java")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    command = ["spark", "batch", str(ERRORS), "--out", str(tmp_path / "out"), "--master", master.format(port)]
    assert main(command) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"127.0.0.1:{port} does not answer" in line
    assert "token" not in line


def test_without_the_client_of_spark_connect_a_line_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setattr("kdissect.spark.launch.find_spec", lambda name: None)
    assert main(["spark", "batch", str(ERRORS), "--out", str(tmp_path), "--master", "sc://127.0.0.1"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "with its extra spark-connect" in line
