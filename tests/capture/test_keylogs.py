"""Key logs are read whole, and followed line by line."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from kdissect.capture import keylogs
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
    assert b"".join(item.data for item in KeyLogs((str(path),)).read()) == b"one\ntwo"


@pytest.mark.parametrize("size", [1, 3, 4, 7, 100])
def test_a_large_file_is_taken_in_piece_by_piece_of_whole_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(keylogs, "PIECE_BYTES", size)
    path = tmp_path / "keys.log"
    path.write_bytes(b"one\n\nthree\nfo")
    logs = KeyLogs((str(path),))
    pieces = [item.data for item in logs.follow(next(_times))]
    assert b"".join(pieces) == b"one\n\nthree\n"
    assert all(piece.endswith(b"\n") and len(piece) <= max(size + 5, 6) for piece in pieces)
    with path.open("ab") as file:
        file.write(b"ur")
    assert new(logs) == b""
    with path.open("ab") as file:
        file.write(b"\n")
    assert new(logs) == b"four\n"
    whole = b"".join(item.data for item in logs.anew().read())
    assert whole == b"one\n\nthree\nfour\n"


def test_what_is_no_line_is_not_gathered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keylogs, "PIECE_BYTES", 1_000)
    path = tmp_path / "keys.log"
    path.write_bytes(bytes(500_000))
    pieces = [len(item.data) for item in KeyLogs((str(path),)).follow(next(_times))]
    assert pieces
    assert max(pieces) <= keylogs.LONGEST_LINE + 1_000


def test_a_file_that_was_emptied_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "keys.log"
    path.write_bytes(b"one\n")
    logs = KeyLogs((str(path),))
    assert new(logs) == b"one\n"
    path.write_bytes(b"")
    assert new(logs) == b""
    path.write_bytes(b"two\nthree\n")
    assert new(logs) == b"two\nthree\n"


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
