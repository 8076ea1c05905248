"""Key logs are read whole, and followed line by line."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from kdissect.capture.keylogs import LOOK_EVERY, KeyLogs
from kdissect.model import CaptureError

_times = count()


def new(logs: KeyLogs) -> bytes:
    return b"".join(item.data for item in logs.follow(next(_times)))


def test_a_growing_file_is_followed_by_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "keys.log"
    logs = KeyLogs((str(path),))
    assert new(logs) == b""
    path.write_bytes(b"one\ntw")
    assert (new(logs), new(logs)) == (b"one\n", b"")
    with path.open("ab") as file:
        file.write(b"o\nthree\n")
    assert new(logs) == b"two\nthree\n"
    path.write_bytes(b"anew\n")
    assert new(logs) == b"anew\n"


def test_the_files_of_a_directory_and_those_that_come_later(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a\n")
    (tmp_path / ".hidden").write_bytes(b"h\n")
    (tmp_path / "folder").mkdir()
    logs = KeyLogs((str(tmp_path),))
    assert new(logs) == b"a\n"
    (tmp_path / "b").write_bytes(b"b\n")
    assert new(logs) == b"b\n"


def test_a_file_that_does_not_grow_needs_no_line_end(tmp_path: Path) -> None:
    path = tmp_path / "keys.log"
    path.write_bytes(b"one\ntwo")
    assert [item.data for item in KeyLogs((str(path),)).read()] == [b"one\ntwo"]


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"no\.log: there is no such key log"):
        list(KeyLogs((str(tmp_path / "no.log"),)).read())


def test_files_are_not_looked_at_all_the_time(tmp_path: Path) -> None:
    path = tmp_path / "keys.log"
    logs = KeyLogs((str(path),))
    assert list(logs.follow(7.0)) == []
    path.write_bytes(b"one\n")
    assert list(logs.follow(7.0 + LOOK_EVERY / 2)) == []
    assert [item.data for item in logs.follow(7.0 + LOOK_EVERY)] == [b"one\n"]
