"""Where the definition files are: the user's folder before the package's own, file by file.

The user's folder is ``definitions`` in ``$KDISSECT_DATA_HOME``, else in ``$XDG_DATA_HOME/kdissect``, else
in ``~/.local/share/kdissect``. An API's file is ``apis/NNN-Name.txt``: the only place where its key and
its name stand. Any other class is ``data/<group>/<Name>.txt``. Listing reads folders only; a file is
read when its class is first asked for.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from kdissect.protocol.definition import Document, parse


def user_folder() -> Path:
    """The folder that ``schema import`` writes to and that is looked into first."""
    home = os.environ.get("KDISSECT_DATA_HOME")
    if home:
        return Path(home) / "definitions"
    data_home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data_home) / "kdissect" / "definitions"


def package_folder() -> Traversable:
    """The definitions that come with kdissect."""
    return files("kdissect.protocol") / "definitions"


class Library:
    """The definition files of several folders, of which earlier ones win."""

    def __init__(self, *folders: Traversable) -> None:
        self.apis: dict[int, tuple[str, Traversable]] = {}
        """API key: name, file."""
        self.data: dict[str, tuple[str, Traversable]] = {}
        """Class name: group, file."""
        for folder in reversed(folders):
            for file in _inside(folder / "apis"):
                key, dash, name = file.name.removesuffix(".txt").partition("-")
                if dash and key.isdecimal():
                    self.apis[int(key)] = (name, file)
            for group in _inside(folder / "data"):
                for file in _inside(group):
                    self.data[file.name.removesuffix(".txt")] = (group.name, file)
        self._documents: dict[int | str, Document] = {}

    def api(self, key: int) -> Document:
        """:raises LookupError: there is no such API."""
        return self._document(key, self.apis.get(key), f"no API has the key {key}")

    def data_class(self, name: str) -> Document:
        """:raises LookupError: there is no such class."""
        return self._document(name, self.data.get(name), f"no message class is named {name}")

    def _document(self, key: int | str, entry: tuple[str, Traversable] | None, absent: str) -> Document:
        document = self._documents.get(key)
        if document is None:
            if entry is None:
                raise LookupError(absent)
            try:
                document = parse(entry[1].read_text(encoding="utf-8"))
            except ValueError as error:
                raise ValueError(f"{entry[1]}: {error}") from None
            self._documents[key] = document
        return document


def _inside(folder: Traversable) -> list[Traversable]:
    if not folder.is_dir():
        return []
    return sorted((file for file in folder.iterdir() if file.name[0] not in "._"), key=lambda file: file.name)


@cache
def library() -> Library:
    """The definitions in use: looked for once (``library.cache_clear()`` looks again)."""
    return Library(user_folder(), package_folder())
