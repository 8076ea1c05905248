from __future__ import annotations

import json
from pathlib import Path
from typing import IO

import pytest

from tests.cli.run import CAPTURES, run

Capsys = pytest.CaptureFixture[bytes]
LOGS = CAPTURES / "logs"

# -- damage to logs


def torn(folder: Path) -> Path:
    folder.mkdir()
    whole = (LOGS / "t09-0" / "00000000000000000000.log").read_bytes()
    (folder / "00000000000000000000.log").write_bytes(whole[:-10])
    return folder


@pytest.mark.parametrize("form", ["text", "records", "batches", "index", "faults.csv"])
def test_log_says_which_files_are_damaged(form: str, tmp_path: Path, capsysbinary: Capsys) -> None:
    torn(tmp_path / "t09-0")
    torn(tmp_path / "t09-1")
    ran = run(capsysbinary, "log", tmp_path, "-T", form)
    assert ran.code == 3
    assert [("t09-0" in line, "the file ends after" in line) for line in ran.err.splitlines()] == [
        (True, True),
        (False, True),
    ]


@pytest.mark.parametrize("form", ["text", "records", "batches", "index"])
def test_a_wrong_checksum_in_a_segment_is_damage(form: str, tmp_path: Path, capsysbinary: Capsys) -> None:
    data = bytearray((LOGS / "t09-0" / "00000000000000000000.log").read_bytes())
    data[70] ^= 1
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(data)
    ran = run(capsysbinary, "log", path, "-T", form)
    assert (ran.code, ran.err.count("\n")) == (3, 1)
    assert str(path) in ran.err


def test_a_segment_that_cannot_be_read_has_its_own_heading(
    tmp_path: Path, capsysbinary: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    for suffix in (".index", ".log"):
        name = "00000000000000000000" + suffix
        (tmp_path / name).write_bytes((LOGS / "t09-0" / name).read_bytes())

    def refuse(path: str, mode: str) -> IO[bytes]:
        if path.endswith(".log"):
            raise PermissionError(13, "Permission denied", path)
        return open(path, mode)

    monkeypatch.setattr("kdissect.logdir.files.open", refuse, raising=False)
    ran = run(capsysbinary, "log", tmp_path)
    assert (ran.code, ran.err.count("\n")) == (3, 1)
    assert f"{tmp_path}/00000000000000000000.log: Permission denied" in ran.err
    at = next(n for n, line in enumerate(ran.lines) if ".log: segment" in line)
    assert "Permission denied" in ran.lines[at + 1]
    assert sum("Permission denied" in line for line in ran.lines) == 1
    (fault,) = map(json.loads, run(capsysbinary, "log", tmp_path, "-T", "faults").lines)
    assert (fault["file"][-4:], fault["kind"]) == (".log", "unreadable")


@pytest.mark.parametrize("form", ["text", "records", "faults"])
def test_a_file_name_that_does_not_fit_is_damage_and_says_so(
    form: str, tmp_path: Path, capsysbinary: Capsys
) -> None:
    path = tmp_path / "00000000000000000500.log"
    path.write_bytes((LOGS / "__consumer_offsets-0" / "00000000000000000000.log").read_bytes())
    ran = run(capsysbinary, "log", path, "-T", form)
    assert (ran.code, ran.err.count("\n")) == (3, 1)
    assert "by its name the file begins at 500" in ran.err


def test_what_is_no_log_is_told_with_what_would_be(tmp_path: Path, capsysbinary: Capsys) -> None:
    assert "cannot be read: No such file" in run(capsysbinary, "log", tmp_path / "none").err
    (tmp_path / "foo.bin").write_bytes(b"")
    ran = run(capsysbinary, "log", tmp_path / "foo.bin")
    assert ran.code == 3
    assert ".timeindex" in ran.err
