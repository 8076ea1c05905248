"""The definition files: the user's folder is searched before the package's own, file by file.

A vendor's requests are a separate overlay: ``vendors/<name>`` in the user's folder. It is searched between
the two, and has only classes that Kafka does not have.

The user's folder is ``definitions`` in ``$KDISSECT_DATA_HOME``, else in ``$XDG_DATA_HOME/kdissect``, else in
``~/.local/share/kdissect``. An API's file is ``apis/NNN-Name.txt``; only the file's name has its key and its
name. Any other class is ``data/<group>/<Name>.txt``. Listing reads folders only, and the user's files that
add a class or a name. Any other file is read when its class is first needed.

If a file of the user is damaged, kdissect's own is used instead. The damage is one of
:attr:`Library.problems`; other files are not affected.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kdissect.protocol.checking import check
from kdissect.protocol.definition import Document, parse
from kdissect.protocol.packaged import packaged

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

Entry = tuple[str, "Traversable"]
"""An API's name or a class's group, and its file."""


def user_folder() -> Path:
    """The folder that ``schema import`` writes to and that is searched first."""
    home = os.environ.get("KDISSECT_DATA_HOME")
    if home:
        return Path(home) / "definitions"
    data_home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data_home) / "kdissect" / "definitions"


def vendor_folder(folder: Path, vendor: str) -> Path:
    """The folder of a vendor's definitions in a folder of definitions."""
    return folder / "vendors" / vendor


def vendors_in(folder: Traversable) -> list[Traversable]:
    """The folders of all vendors in a folder of definitions."""
    return [each for each in _inside(folder / "vendors") if each.is_dir()]


def package_folder() -> Traversable:
    """The definitions that come with kdissect."""
    return packaged("definitions")


class Problem(NamedTuple):
    """A definition file that cannot be used."""

    key: int | str
    """API key or class name."""
    file: Traversable
    reason: str
    replaced: bool
    """Whether another folder's file is used instead. Otherwise its class is unknown."""


class Library:
    """The definition files of several folders; earlier folders win.

    The files of the last folder are assumed to be sound. A damaged file of another folder is replaced by the
    next folder's file.
    """

    def __init__(self, *folders: Traversable) -> None:
        self.apis: dict[int, Entry] = {}
        """Name and file of each API, by key."""
        self.data: dict[str, Entry] = {}
        """Group and file of each class, by name."""
        self.problems: list[Problem] = []
        """The damaged files among those read so far."""
        self._documents: dict[int | str, Document] = {}
        self._next: dict[Traversable, Entry | None] = {}
        """For each file that is not of the last folder: the entry that it replaces."""
        for folder in reversed(folders):
            for file in _inside(folder / "apis"):
                key, dash, name = file.name.removesuffix(".txt").partition("-")
                if dash and key.isdecimal():
                    self._put(self.apis, int(key), (name, file), folder is folders[-1])
            for group in _inside(folder / "data"):
                for file in _inside(group):
                    name = file.name.removesuffix(".txt")
                    self._put(self.data, name, (group.name, file), folder is folders[-1])
        self._read_what_is_new()
        self.keys = tuple(sorted(self.apis))
        """API keys in ascending order."""

    @property
    def is_own(self) -> bool:
        """Whether every definition is from the last folder."""
        return not self._next

    def _put(self, table: dict[Any, Entry], key: int | str, entry: Entry, is_last: bool) -> None:
        if not is_last:
            self._next[entry[1]] = table.get(key)
        table[key] = entry

    def _read_what_is_new(self) -> None:
        """Read the files that add a class, or a name of a class, that the last folder does not have. So all
        listed classes can be read, under the name of the file that is used."""
        tables: tuple[dict[Any, Entry], ...] = (self.apis, self.data)
        for table in tables if self._next else ():
            for key, (name, file) in list(table.items()):
                if file not in self._next:
                    continue
                behind = self._next[file]
                is_new = behind is None or behind[0] != name
                if is_new and self._read(key, table) is None:
                    del table[key]

    def check(self) -> list[Problem]:
        """Read every file that is not of the last folder, and return all problems."""
        for table in (self.apis, self.data):
            for key, (_, file) in table.items():
                if file in self._next:
                    self._document(key, table, "")
        return self.problems

    def api(self, key: int) -> Document:
        """:raises LookupError: there is no such API."""
        return self._document(key, self.apis, f"no API has the key {key}")

    def data_class(self, name: str) -> Document:
        """:raises LookupError: there is no such class."""
        return self._document(name, self.data, f"no message class is named {name}")

    def _document(self, key: int | str, table: MutableMapping[Any, Entry], absent: str) -> Document:
        document = self._documents.get(key)
        if document is None:
            if key not in table:
                raise LookupError(absent)
            document = self._read(key, table)
            if document is None:
                raise LookupError(absent)
        return document

    def _read(self, key: int | str, table: MutableMapping[Any, Entry]) -> Document | None:
        """The document of the first folder with a sound file. The entry of that file is put into the
        table."""
        entry: Entry | None = table[key]
        while entry is not None:
            file = entry[1]
            is_last = file not in self._next
            try:
                document = parse(file.read_bytes().decode("utf-8"))
                if not is_last:
                    check(document, isinstance(key, int))
            except (ValueError, OSError) as error:
                if is_last:
                    raise ValueError(f"{file}: {error}") from None
                entry = self._next[file]
                self.problems.append(Problem(key, file, _reason(error), entry is not None))
            else:
                table[key] = entry
                self._documents[key] = document
                return document
        return None


def _reason(error: ValueError | OSError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not UTF-8"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _inside(folder: Traversable) -> list[Traversable]:
    try:
        found = list(folder.iterdir()) if folder.is_dir() else []
    except PermissionError:  # the home of another user, still in the environment after a change of user
        return []
    return sorted((file for file in found if file.name[0] not in "._"), key=lambda file: file.name)


@cache
def library() -> Library:
    """The definitions in use. They are searched for once (``library.cache_clear()`` searches again)."""
    return Library(user_folder(), *vendors_in(user_folder()), package_folder())
