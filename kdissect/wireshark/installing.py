"""Installs the plug-in and the extcap program in a user's folders, and removes them.

The first lines of kdissect's files say that kdissect wrote them. Any other file belongs to somebody else: it
is never overwritten, and never removed. Folders that were made for a file are removed with it, if they are
empty.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from kdissect import __version__
from kdissect.wireshark.folders import Folders
from kdissect.wireshark.plugin import plugin_text

MARK = "written by kdissect wireshark install"
"""The mark in the first lines of every installed file."""
_MADE = "made this folder: "
"""The beginning of a later line that names a folder that was made."""
_HEAD_BYTES = 8_192

PLUGIN, EXTCAP = ("plug-in", "interfaces")
"""The things that are installed."""
PROGRAM = (sys.executable, "-P", "-m", "kdissect")
"""The command with which Wireshark starts kdissect. Its folder may contain anything."""

ABSENT, INSTALLED, OUTDATED, FOREIGN = "absent", "installed", "outdated", "foreign"
"""The state of a place: empty, has the right file, has a file of another kdissect, has a foreign file."""


class ForeignFileError(Exception):
    """A file that kdissect did not write is in the way. The text has one line."""


class InstalledFile(NamedTuple):
    """A file to install."""

    kind: str
    path: Path

    def text(self, made: Sequence[str]) -> str:
        """The contents of the file.

        :param made: folders that were made for it.
        """
        words = (f"kdissect {__version__}, {MARK}", *(f"{_MADE}{each}" for each in made))
        if self.kind == PLUGIN:
            return "".join(f"-- {each}\n" for each in words) + plugin_text()
        command = [*PROGRAM, "extcap"]
        if self.path.suffix == ".bat":
            head = "".join(f"rem {each}\r\n" for each in words)
            return f'@echo off\r\n{head}"{command[0]}" {" ".join(command[1:])} %*\r\n'
        return "#!/bin/sh\n" + "".join(f"# {each}\n" for each in words) + f'exec {shlex.join(command)} "$@"\n'


def places(folders: Folders, platform: str = sys.platform) -> tuple[InstalledFile, ...]:
    """The files to install."""
    program = "kdissect.bat" if platform == "win32" else "kdissect"
    return InstalledFile(PLUGIN, folders.plugins / "kdissect.lua"), InstalledFile(
        EXTCAP, folders.extcap / program
    )


def state_of(place: InstalledFile) -> str:
    """The state of a place."""
    if not os.path.lexists(place.path):
        return ABSENT
    found = _read(place.path)
    if found is None or MARK not in found[:_HEAD_BYTES]:
        return FOREIGN
    is_same = found == place.text(_made_before(found))
    return INSTALLED if is_same and (os.name == "nt" or os.access(place.path, os.R_OK)) else OUTDATED


def install(folders: Folders) -> list[InstalledFile]:
    """Install the files; return those that were missing or different before.

    :raises ForeignFileError: another file is in the way. Then nothing was installed.
    :raises OSError: a file cannot be written.
    """
    wanted = places(folders)
    for place in wanted:
        if state_of(place) == FOREIGN:
            raise ForeignFileError(
                f"{place.path} is not from kdissect, so kdissect does not replace it: move it away, then "
                "try again"
            )
    laid = []
    for place in wanted:
        if state_of(place) == INSTALLED:
            continue
        made = [*_made_before(_read(place.path) or ""), *_make(place.path.parent)]
        _write(place, place.text(made))
        laid.append(place)
    return laid


def uninstall(folders: Folders) -> list[InstalledFile]:
    """Remove the files, and the folders that were made for them; return those that were there.

    A foreign file stays.

    :raises OSError: a file cannot be removed.
    """
    removed, made = [], []
    for place in places(folders):
        if state_of(place) in (ABSENT, FOREIGN):
            continue
        made += _made_before(_read(place.path) or "")
        place.path.unlink()
        removed.append(place)
    for folder in sorted(made, key=len, reverse=True):
        with suppress(OSError):  # the folder is not empty
            os.rmdir(folder)
    return removed


def _read(path: Path) -> str | None:
    """The contents of a file; None if it is no plain file, or cannot be read."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return None


def _made_before(text: str) -> list[str]:
    """The folders that were made for a file, by its own lines."""
    return re.findall(rf"^(?:--|#|rem) {_MADE}(.+?)\r?$", text[:_HEAD_BYTES], re.MULTILINE)


def _make(folder: Path) -> Iterator[str]:
    """Make a folder and those above it; give those that were missing."""
    if not folder.is_dir():
        yield from _make(folder.parent)
        folder.mkdir()
        yield str(folder)


def _write(place: InstalledFile, text: str) -> None:
    """Write a file completely or not at all."""
    number, path = tempfile.mkstemp(dir=place.path.parent, prefix=".kdissect-")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(text.encode("utf-8", "surrogateescape"))
        os.chmod(path, 0o755 if place.kind == EXTCAP else 0o644)
        os.replace(path, place.path)
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise
