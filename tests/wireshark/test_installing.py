"""What install lays, uninstall takes away, and neither touches what is somebody else's."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kdissect.wireshark.folders import Folders
from kdissect.wireshark.installing import (
    ABSENT,
    EXTCAP,
    FOREIGN,
    INSTALLED,
    OUTDATED,
    PLUGIN,
    ForeignFileError,
    InstalledFile,
    install,
    places,
    state_of,
    uninstall,
)

posix = pytest.mark.skipif(os.name == "nt", reason="a shell runs it")


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "lib" / "plugins", tmp_path / "lib" / "extcap")


def tree(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def states(folders: Folders) -> list[str]:
    return [state_of(place) for place in places(folders)]


def test_install_lays_two_files_and_uninstall_leaves_nothing(tmp_path: Path, folders: Folders) -> None:
    assert states(folders) == [ABSENT, ABSENT]
    assert [place.kind for place in install(folders)] == [PLUGIN, EXTCAP]
    assert states(folders) == [INSTALLED, INSTALLED]
    assert [place.kind for place in uninstall(folders)] == [PLUGIN, EXTCAP]
    assert tree(tmp_path) == {}


def test_what_was_there_stays(tmp_path: Path, folders: Folders) -> None:
    folders.plugins.mkdir(parents=True)
    (folders.plugins / "other.lua").write_text("-- somebody's")
    before = tree(tmp_path)
    install(folders)
    uninstall(folders)
    assert tree(tmp_path) == before


def test_folders_that_were_made_stay_where_somebody_else_uses_them(tmp_path: Path, folders: Folders) -> None:
    install(folders)
    (folders.extcap / "other").write_text("#!/bin/sh\n")
    uninstall(folders)
    assert tree(tmp_path) == {"lib": None, "lib/extcap": None, "lib/extcap/other": b"#!/bin/sh\n"}


@pytest.mark.parametrize("kind", [PLUGIN, EXTCAP])
def test_a_foreign_file_is_neither_written_over_nor_removed(
    tmp_path: Path, folders: Folders, kind: str
) -> None:
    (place,) = (place for place in places(folders) if place.kind == kind)
    place.path.parent.mkdir(parents=True)
    place.path.write_text("somebody's own")
    before = tree(tmp_path)
    assert state_of(place) == FOREIGN
    with pytest.raises(ForeignFileError, match="is not from kdissect"):
        install(folders)
    assert tree(tmp_path) == before
    assert uninstall(folders) == []
    assert tree(tmp_path) == before


@pytest.mark.parametrize("kind", [PLUGIN, EXTCAP])
def test_beside_a_foreign_file_ours_is_removed(folders: Folders, kind: str) -> None:
    install(folders)
    (foreign,) = (place for place in places(folders) if place.kind == kind)
    foreign.path.write_text("somebody's own")
    (ours,) = (place for place in places(folders) if place.kind != kind)
    assert uninstall(folders) == [ours]
    assert foreign.path.read_text() == "somebody's own"
    assert not ours.path.exists()


def test_a_link_is_foreign(tmp_path: Path, folders: Folders) -> None:
    install(folders)
    place = places(folders)[0]
    target = tmp_path / "target.lua"
    place.path.rename(target)
    place.path.symlink_to(target)
    assert state_of(place) == FOREIGN


def test_an_older_one_is_brought_up_to_date_and_remembers_its_folders(
    tmp_path: Path, folders: Folders
) -> None:
    install(folders)
    for place in places(folders):
        with place.path.open("a") as file:
            file.write("\n")
    assert states(folders) == [OUTDATED, OUTDATED]
    install(folders)
    assert states(folders) == [INSTALLED, INSTALLED]
    assert install(folders) == []
    uninstall(folders)
    assert tree(tmp_path) == {}


@posix
def test_the_program_answers_wireshark_from_any_folder(tmp_path: Path, folders: Folders) -> None:
    install(folders)
    place = places(folders)[1]
    (tmp_path / "kdissect.py").write_text("raise SystemExit('the wrong kdissect')")
    done = subprocess.run(
        [place.path, "--extcap-interfaces"], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert done.stdout.startswith("extcap {version=")


def test_windows_gets_a_batch_file(folders: Folders) -> None:
    place = places(folders, "win32")[1]
    assert place.path.name == "kdissect.bat"
    text = place.text([r"C:\made"])
    assert text.startswith("@echo off\r\n")
    assert text.endswith("-P -m kdissect extcap %*\r\n")
    assert "\n" not in text.replace("\r\n", "")
    assert InstalledFile(EXTCAP, place.path) == place
