from __future__ import annotations

from pathlib import Path

import pytest

from kdissect.protocol.library import Library, package_folder, user_folder

FETCH = "request 0 of 9.9\n    word  string  0+\n\nresponse 0 of 9.9\n"


def put(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_the_first_folder_wins_file_by_file(tmp_path: Path) -> None:
    put(tmp_path, "apis/001-NewFetch.txt", FETCH)
    put(tmp_path, "data/mine/NoOpRecord.txt", "data 0 of 9.9\n")
    library = Library(tmp_path, package_folder())
    assert library.apis[1][0] == "NewFetch"
    assert library.api(1).blocks[0].fields[0].name == "word"
    assert library.data["NoOpRecord"][0] == "mine"
    assert library.apis[0][0] == "Produce"
    assert len(library.apis) == 95


def test_files_are_read_only_when_asked_for(tmp_path: Path) -> None:
    put(tmp_path, "apis/001-Fetch.txt", "not a definition\n")
    library = Library(tmp_path, package_folder())
    assert library.apis[1][0] == "Fetch"
    with pytest.raises(ValueError, match=r"001-Fetch\.txt: line 1"):
        library.api(1)
    assert library.api(0).blocks


def test_what_is_no_definition_file_is_passed_over(tmp_path: Path) -> None:
    put(tmp_path, "apis/.001-Fetch.txt.swp", "")
    put(tmp_path, "apis/notes.txt", "")
    assert Library(tmp_path).apis == {}
    assert Library(tmp_path / "absent").data == {}


def test_unknown_classes_are_lookup_errors() -> None:
    library = Library(package_folder())
    with pytest.raises(LookupError, match="4711"):
        library.api(4711)
    with pytest.raises(LookupError, match="NoSuchRecord"):
        library.data_class("NoSuchRecord")


def test_the_users_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KDISSECT_DATA_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert user_folder() == tmp_path / "own" / "definitions"
    monkeypatch.delenv("KDISSECT_DATA_HOME")
    assert user_folder() == tmp_path / "xdg" / "kdissect" / "definitions"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_folder() == tmp_path / ".local" / "share" / "kdissect" / "definitions"
