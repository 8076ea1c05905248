"""``spark batch --append --drain``: another release goes on with the numbers, and needs no old files."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kdissect.cli import main
from kdissect.spark.states import States
from tests.spark.cuts import cut
from tests.spark.same import CAPTURES, in_order, read_rows, without_moments
from tests.spark.test_stream import in_time

BASIC = CAPTURES / "basic-kafka43.pcapng"


def rows(out: Path, name: str) -> list[str]:
    found = pq.read_table(out / name).to_pylist()
    return in_order({key: row[key] for key in row if key != "run"} for row in without_moments(found))


@pytest.mark.usefixtures("spark")
def test_another_release_goes_on_where_a_table_was_drained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, folder, out = (tmp_path / name for name in ("source", "folder", "out"))
    source.mkdir()
    folder.mkdir()
    pieces = in_time(cut(BASIC, source, 2))
    for piece in pieces:
        os.utime(piece, (0, 0))  # nobody writes to them any more
    command = ["spark", "batch", str(folder), "--out", str(out), "--table", "exchanges", "--append"]
    command += ["--master", "local[2]"]

    def told() -> list[str]:
        return capsys.readouterr().err.splitlines()

    os.link(pieces[0], folder / pieces[0].name)
    with monkeypatch.context() as patch:
        patch.setattr(States, "end_drain", None)  # it dies when the rows are there
        assert main([*command, "--drain"]) != 0
    told()
    assert main([*command, "--drain"]) == 0
    assert told()[0].startswith(
        "kdissect: run 2 (a repeat, because the first try did not finish): open exchanges and connections, "
    )
    drained = read_rows("exchanges", [pieces[0]])
    assert rows(out, "exchanges") == drained
    assert main([*command, "--drain"]) == 0
    assert told() == ["kdissect: nothing new: no file is new or longer"]

    _as_of_another_release(out / "_runs" / "state")
    (folder / pieces[0].name).unlink()
    os.link(pieces[1], folder / pieces[1].name)
    assert main([*command, "--close"]) == 0
    assert [line.partition(",")[0] for line in told()] == [
        "kdissect: run 3: 1 file",
        "kdissect: run 4: open exchanges and connections",
    ]
    found = rows(out, "exchanges")
    assert set(drained) < set(found)
    assert len(found) == len(drained) + len(read_rows("exchanges", [pieces[1]]))
    numbers = pq.read_table(out / "exchanges")["number"].to_pylist()
    assert sorted(numbers) == list(range(1, len(found) + 1))


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("how", ["of another release", "gone"])
def test_what_was_not_drained_needs_its_files_or_is_ended(
    tmp_path: Path, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source, folder, out = (tmp_path / name for name in ("source", "folder", "out"))
    source.mkdir()
    folder.mkdir()
    pieces = in_time(cut(BASIC, source, 2))
    for piece in pieces:
        os.utime(piece, (0, 0))
    command = ["spark", "batch", str(folder), "--out", str(out), "--table", "exchanges", "--append"]
    command += ["--master", "local[2]"]
    os.link(pieces[0], folder / pieces[0].name)
    assert main(command) == 0
    if how == "gone":
        shutil.rmtree(out / "_runs" / "state")
    else:
        _as_of_another_release(out / "_runs" / "state")
    (folder / pieces[0].name).unlink()
    os.link(pieces[1], folder / pieces[1].name)
    capsys.readouterr()
    assert main(command) == 2
    assert not (out / "_runs" / "plan-2.json").exists()
    (line,) = capsys.readouterr().err.splitlines()
    what = "a state is missing" if how == "gone" else "another build of kdissect wrote a state"
    gone = folder / pieces[0].name
    needs = f"{out}/_runs/state: {what}. To make it again kdissect needs {gone}, which is missing"
    drains = ": to go on without it, give the same command once with --drain"
    assert line.endswith(needs if how == "gone" else needs + drains)
    if how == "gone":
        os.link(pieces[0], folder / pieces[0].name)
        assert main(command) == 0
        shutil.rmtree(out / "_runs" / "state")
        assert main([*command, "--close"]) == 0
        assert rows(out, "exchanges") == read_rows("exchanges", pieces)
        return
    assert main([*command, "--drain"]) == 0
    upgrade, run = capsys.readouterr().err.splitlines()
    assert upgrade.startswith("kdissect: the state was made by kdissect 0.0.1, this is ")
    assert run.startswith("kdissect: run 2: 1 file, ")  # connections begin again once
    assert main([*command, "--close"]) == 0
    found, before = rows(out, "exchanges"), read_rows("exchanges", [pieces[0]])
    assert set(before) < set(found)
    assert len(found) == len(before) + len(read_rows("exchanges", [pieces[1]]))
    numbers = pq.read_table(out / "exchanges")["number"].to_pylist()
    assert sorted(numbers) == list(range(1, len(found) + 1))


@pytest.mark.usefixtures("spark")
def test_what_may_have_waited_for_secrets_is_not_made_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its files are there. But what waited for the key log then would not wait now."""
    source, folder, out, keys = (tmp_path / name for name in ("source", "folder", "out", "keys.log"))
    source.mkdir()
    folder.mkdir()
    pieces = in_time(cut(BASIC, source, 2))
    for piece in pieces:
        os.utime(piece, (0, 0))
    keys.write_bytes(b"# the first line\n")
    command = ["spark", "batch", str(folder), "--out", str(out), "--table", "exchanges", "--append"]
    command += ["--master", "local[2]", "--keylog", str(keys)]
    os.link(pieces[0], folder / pieces[0].name)
    assert main(command) == 0
    _as_of_another_release(out / "_runs" / "state")
    os.link(pieces[1], folder / pieces[1].name)
    capsys.readouterr()
    assert main(command) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{out}/_runs/state: another build of kdissect wrote a state. It cannot be made again" in line
    assert line.endswith("to go on without it, give the same command once with --drain")


def _as_of_another_release(folder: Path) -> None:
    """States that this release cannot load, unless they are drained."""
    states = list(folder.rglob("*.state"))
    assert states
    for path in states:
        head, _, data = path.read_bytes().partition(b"\n")
        path.write_bytes(json.dumps({**json.loads(head), "kdissect": "0.0.1"}).encode() + b"\n" + data)
