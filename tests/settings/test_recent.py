from __future__ import annotations

import os
from pathlib import Path

import pytest

from kdissect.settings.recent import MOST, recent_files, remember, state_folder


def test_the_last_ones_come_first_and_each_once(tmp_path: Path) -> None:
    home = {"XDG_STATE_HOME": str(tmp_path / "state")}
    assert recent_files(home) == []
    remember(["/a", "/b"], home)
    remember(["/c"], home)
    remember(["/b"], home)
    assert recent_files(home) == ["/b", "/c", "/a"]
    remember([f"/{number}" for number in range(100)], home)
    assert len(recent_files(home)) == MOST


def test_paths_are_remembered_from_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    home = {"XDG_STATE_HOME": str(tmp_path)}
    remember(["x.pcap"], home)
    assert recent_files(home) == [str(tmp_path / "x.pcap")]


def test_only_the_user_can_read_the_list(tmp_path: Path) -> None:
    home = {"XDG_STATE_HOME": str(tmp_path / "state")}
    remember(["/a"], home)
    folder = state_folder(home)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [each.name for each in folder.iterdir()] == ["recent.json"]
    assert (folder / "recent.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"", b"{}", b"[1, null]", b"\xff", b'"x"', b"[" * 100_000])
def test_a_damaged_list_is_none(content: bytes, tmp_path: Path) -> None:
    home = {"XDG_STATE_HOME": str(tmp_path)}
    folder = state_folder(home)
    folder.mkdir()
    (folder / "recent.json").write_bytes(content)
    assert recent_files(home) == []
    remember(["/a"], home)
    assert recent_files(home) == ["/a"]


def test_what_cannot_be_written_is_not_remembered(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    remember(["/a"], {"XDG_STATE_HOME": str(tmp_path / "file")})
    assert os.listdir(tmp_path) == ["file"]
