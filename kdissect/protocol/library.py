"""Where the definition files are: the user's folder before the package's own, file by file.

A vendor's requests are an overlay of their own: ``vendors/<name>`` in the user's folder. It stands between
the two, and has nothing that Kafka has.

The user's folder is ``definitions`` in ``$KDISSECT_DATA_HOME``, else in ``$XDG_DATA_HOME/kdissect``, else
in ``~/.local/share/kdissect``. An API's file is ``apis/NNN-Name.txt``: the only place where its key and
its name stand. Any other class is ``data/<group>/<Name>.txt``. Listing reads folders only, and the
user's files that bring something new; any other file is read when its class is first asked for.

Where a file of the user's is damaged, kdissect's own is used instead. The damage is one of
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
"""An API's name or a class's group, and the file."""


def user_folder() -> Path:
    """The folder that ``schema import`` writes to and that is looked into first."""
    home = os.environ.get("KDISSECT_DATA_HOME")
    if home:
        return Path(home) / "definitions"
    data_home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data_home) / "kdissect" / "definitions"


def vendor_folder(folder: Path, vendor: str) -> Path:
    """Where a folder of definitions has those of a vendor."""
    return folder / "vendors" / vendor


def vendors_in(folder: Traversable) -> list[Traversable]:
    """The folders of the vendors in a folder of definitions."""
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
    """Whether another folder's file is used instead; else its class is not known."""


class Library:
    """The definition files of several folders, of which earlier ones win.

    The last folder is taken for sound. A damaged file of another is passed over for the next folder's.
    """

    def __init__(self, *folders: Traversable) -> None:
        self.apis: dict[int, Entry] = {}
        """API key: name, file."""
        self.data: dict[str, Entry] = {}
        """Class name: group, file."""
        self.problems: list[Problem] = []
        """Damaged files, as far as they were asked for."""
        self._documents: dict[int | str, Document] = {}
        self._next: dict[Traversable, Entry | None] = {}
        """A file that is not of the last folder: what it stands before."""
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
        """Whether every definition is that of the last folder."""
        return not self._next

    def _put(self, table: dict[Any, Entry], key: int | str, entry: Entry, is_last: bool) -> None:
        if not is_last:
            self._next[entry[1]] = table.get(key)
        table[key] = entry

    def _read_what_is_new(self) -> None:
        """Read the files that bring a class, or a name of one, that the last folder does not have: so what
        is listed can be read, and goes by the name of the file that is used."""
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
        """Read every file that is not of the last folder; gives all problems."""
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
        """The document of the first folder that has a sound one, whose entry is then the table's."""
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
    except PermissionError:  # another user's home, which is left in the environment of whoever became one
        return []
    return sorted((file for file in found if file.name[0] not in "._"), key=lambda file: file.name)


@cache
def library() -> Library:
    """The definitions in use: looked for once (``library.cache_clear()`` looks again)."""
    return Library(user_folder(), *vendors_in(user_folder()), package_folder())
