"""Tables of different captures do not stand side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kdissect.cli import main
from kdissect.cli.commands.spark import batch, stats
from kdissect.cli.errors import Wrong
from kdissect.model import CaptureError
from kdissect.spark import provenance
from kdissect.spark.provenance import (
    FILE,
    TableOrigin,
    keep,
    kept_in,
    origin_in,
    origin_of,
    stranger,
    tables_in,
)
from kdissect.spark.runs import RunPlan, Runs
from kdissect.spark.settings import TableSettings
from kdissect.spark.spool import SpoolRead
from kdissect.spark.storage import InputFile
from tests.spark.same import CAPTURES

BASIC = CAPTURES / "basic-kafka43.pcapng"
ERRORS = CAPTURES / "errors.pcapng"
ONE = [InputFile("/a/one.pcap", 10), InputFile("/a/two.pcap", 20)]
USUAL = TableSettings()


def spark(command: str, *arguments: object) -> int:
    return main(["spark", command, *map(str, arguments), "--master", "local[2]", "-q"])


def test_the_same_files_are_the_same_captures_in_any_order() -> None:
    origin = origin_of(ONE, USUAL)
    assert origin == origin_of(ONE[::-1], USUAL) == origin_in(origin.text())
    assert origin.words == "one.pcap, two.pcap"
    assert origin_of([*ONE, *(InputFile(f"/b/{n}", 1) for n in range(9))], USUAL).words.endswith("and 8 more")


@pytest.mark.parametrize(
    "files", [ONE[:1], [ONE[0], ONE[1]._replace(size=21)], [ONE[0], ONE[1]._replace(path="/a/three.pcap")]]
)
def test_other_files_are_other_captures(files: list[InputFile]) -> None:
    kept = {"exchanges": origin_of(files, USUAL)}
    why = stranger(kept, kept.get, origin_of(ONE, USUAL), may_grow=False)
    assert why is not None
    assert why.startswith("exchanges was made from other captures (one.pcap")


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        ({"capture_point": "a"}, {}, "was read with --capture-point a"),
        ({}, {"ports": frozenset([9092])}, "was read without -d 9092"),
        ({"keylog": ("keys.log",)}, {"keylog": ("others.log",)}, None),
        ({"payload": "none"}, {"filter": "error"}, None),
    ],
)
def test_exchanges_have_other_numbers_with_other_options(
    before: dict[str, object], now: dict[str, object], words: str | None
) -> None:
    kept = {"records": origin_of(ONE, TableSettings.of(before))}
    why = stranger(kept, kept.get, origin_of(ONE, TableSettings.of(now)), may_grow=False)
    assert (why is None) is (words is None)
    assert words is None or (why is not None and words in why)


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"form": 1, "captures": 3}', '{"form": 2}'])
def test_what_is_no_origin_says_nothing(text: str | None) -> None:
    assert origin_in(text) is None
    why = stranger(["faults"], lambda _: origin_in(text), origin_of(ONE, USUAL), may_grow=False)
    assert why is not None
    assert "does not say which captures" in why
    assert stranger(["faults"], lambda _: None, origin_of(ONE, USUAL), may_grow=True) is None


@pytest.mark.usefixtures("spark")
def test_a_folder_has_tables_of_the_same_captures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def told(code: int, *command: object) -> str:
        assert spark(*map(str, command)) == code
        return capsys.readouterr().err

    place = ("--out", tmp_path)
    told(0, "batch", BASIC, *place, "--table", "faults")
    of_others = (
        "faults was made from other captures (basic-kafka43.pcapng); give another place, or remove it\n"
    )
    for command in (
        ("batch", ERRORS, *place, "--table", "records"),
        ("batch", ERRORS, *place, "--table", "records", "--overwrite"),
        ("stats", ERRORS, *place, "-z", "srt"),
    ):
        assert told(2, *command) == f"kdissect: {tmp_path}: {of_others}"
    assert "made without --append" in told(2, "batch", BASIC, *place, "--append", "--table", "records")
    assert "does not mention it" in told(2, "stream", CAPTURES, *place, "--table", "records")

    told(0, "stats", CAPTURES / "basic-*.pcapng", *place, "-z", "srt")  # the same file by another name
    assert tables_in(str(tmp_path)) == ["faults", "stats/srt"]
    assert kept_in(str(tmp_path / "stats" / "srt")) == kept_in(str(tmp_path / "faults")) is not None
    line = told(0, "batch", ERRORS, *place, "--table", "faults", "--overwrite")  # as a nightly job does
    assert "stats/srt was made from other captures" in line
    assert told(0, "stats", ERRORS, *place, "-z", "srt", "--overwrite") == ""
    assert "faults was made from other captures" in told(
        0, "stats", BASIC, *place, "-z", "srt", "--overwrite"
    )
    (tmp_path / "faults" / FILE).write_text("{")
    assert "faults does not say" in told(2, "batch", BASIC, *place, "--table", "records")


def test_statistics_stand_beside_runs_that_read_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = Runs(str(tmp_path / "_runs"))
    with runs.held():
        runs.begin(
            RunPlan(1, {str(BASIC): SpoolRead(1, False, 1)}, {}, {"tables": [], "by": [], "options": {}})
        )
        runs.end({"run": 1})
    assert spark("stats", ERRORS, "--out", tmp_path, "-z", "srt") == 2
    told = capsys.readouterr().err
    assert "--append made the tables there, and has read none of these captures; let spark batch" in told
    assert spark("batch", BASIC, "--out", tmp_path) == 2
    assert "give another place, or --append" in capsys.readouterr().err


def test_a_stream_s_tables_are_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "_checkpoint").mkdir()
    for more in ((), ("--append",), ("--overwrite",)):
        assert spark("batch", BASIC, "--out", tmp_path, *more) == 2
        assert "a stream made the tables there: give another place" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["_checkpoint"]


def test_an_origin_is_kept_as_json() -> None:
    origin = TableOrigin("1a", "--capture-point x", "it's \\ here")
    assert json.loads(origin.text()) == {"form": 1, **origin._asdict()}


def test_a_table_is_complete_where_its_origin_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(path)

    def unseen(path: str) -> bool:
        raise CaptureError(f"{path}: cannot be listed")

    with monkeypatch.context() as patched:
        patched.setattr(provenance, "create_file", refuse)
        keep(str(tmp_path), "{}")
    with monkeypatch.context() as patched:
        patched.setattr(provenance, "is_folder", unseen)
        keep(str(tmp_path), "{}")
    assert not list(tmp_path.iterdir())


def test_a_nightly_job_goes_on_in_a_folder_that_older_ones_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tables have no origin, and a second command makes the rest anew."""
    (tmp_path / "exchanges").mkdir()
    (tmp_path / "stats" / "srt").mkdir(parents=True)
    reached: list[object] = []

    def stop(*_: object) -> None:
        reached.append(1)
        raise Wrong("far enough")

    for module in (batch, stats):
        monkeypatch.setattr(module, "running", stop)
    place = ("--out", tmp_path, "--overwrite")
    assert spark("batch", BASIC, *place, "--table", "exchanges") == 2
    assert "stats/srt does not say which captures it was made from" in capsys.readouterr().err
    assert spark("stats", BASIC, *place, "-z", "srt") == 2
    assert "exchanges" not in capsys.readouterr().err
    assert len(reached) == 2
    assert spark("batch", BASIC, *place, "--table", "faults") == 2, "it replaces nothing"
    assert len(reached) == 2
