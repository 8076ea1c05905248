"""What is carried from batch to batch of a stream: the Dissector of each capture point, and how far its
files were read.

Each batch and capture point has a state in a file of its own. A batch that is repeated reads what it read the
first time and writes what it wrote. States are pickled, and loading one runs what it says. So they are loaded
only from files and folders that belong to the user and that nobody else may write to. The line before the
pickle says its format, the kdissect that made it and its digest.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kdissect
from kdissect.dissect import Dissector

FORMAT = 4
_SUFFIX = ".state"
_HEAD = ("format", "kdissect", "point", "bytes", "sha256")
"""What the line before the pickle tells."""


class StateError(Exception):
    """A state cannot be used; the text is one line with the path and what to do."""


@dataclass
class Carried:
    """The state of one capture point."""

    dissector: Dissector
    packets: int = 0
    """How many were read."""
    last_ns: int | None = None
    """The latest time of a packet."""
    items: dict[str, int] = field(default_factory=dict)
    """By path, how many packets and other things of a file were taken in."""
    final: set[str] = field(default_factory=set)
    """The files of which nothing more is to come."""
    sizes: dict[str, int] = field(default_factory=dict)
    """By path, up to which byte it was read."""
    firsts: dict[str, int | None] = field(default_factory=dict)
    """By path, the time of the first packet, by which a file is known under a name that comes again."""

    @property
    def bytes_read(self) -> int:
        """How many bytes of the files that are there were read."""
        return sum(self.sizes.values())

    def rename(self, old: str, new: str) -> None:
        """What was read of a file was read under the name that it had."""
        for each in (self.items, self.sizes):
            each[new] = each.pop(old)
        self.firsts[new] = self.firsts.pop(old)
        if old in self.final:
            self.final.remove(old)
            self.final.add(new)

    def forget(self, path: str) -> None:
        """The file is gone, or another one has its name now."""
        for each in (self.items, self.sizes, self.firsts):
            each.pop(path, None)
        self.final.discard(path)


class States:
    """The folder of a stream's states."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._folder = Path(folder)

    def prepare(self) -> None:
        """Make the folder, or see that it is ours.

        :raises StateError: it is not.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _refuse_others(self._folder)

    def points(self) -> list[str]:
        """The capture points that have a state."""
        return sorted({_head(path)["point"] for path in self._folder.glob(f"*/*{_SUFFIX}")})

    def bytes_read(self) -> int:
        """How much was read of the files that are there, of all capture points."""
        latest = [self._path(point, max(self._batches(point))) for point in self.points()]
        return sum(_head(path)["bytes"] for path in latest)

    def last_batch(self) -> int | None:
        """The latest batch that left a state."""
        return max((int(path.parent.name) for path in self._folder.glob(f"*/*{_SUFFIX}")), default=None)

    def load(self, point: str, batch: int) -> Carried | None:
        """What batches before this one left of a capture point; None if no batch came before.

        :raises StateError: it is damaged, of another kdissect, or not the user's own.
        """
        found = [number for number in self._batches(point) if number < batch]
        if not found:
            return None
        path = self._path(point, max(found))
        _refuse_others(self._folder)
        _refuse_others(path)
        head = _head(path)
        if head["format"] != FORMAT or head["kdissect"] != kdissect.__version__:
            raise StateError(
                f"{path} was made by kdissect {head['kdissect']}, this is {kdissect.__version__}: go on with"
                " that one, or begin anew with another --checkpoint and --out"
            )
        data = path.read_bytes().partition(b"\n")[2]
        if hashlib.sha256(data).hexdigest() != head["sha256"]:
            raise StateError(f"{path} is damaged: its digest does not fit")
        carried = pickle.loads(data)  # ours, see above
        assert isinstance(carried, Carried)
        return carried

    def of_others(self, batch: int) -> list[str]:
        """The capture points whose state before this batch another version of kdissect made."""
        out = []
        for point in self.points():
            found = [number for number in self._batches(point) if number < batch]
            if found:
                head = _head(self._path(point, max(found)))
                if head["format"] != FORMAT or head["kdissect"] != kdissect.__version__:
                    out.append(point)
        return out

    def save(self, point: str, batch: int, carried: Carried) -> None:
        """Keep what a batch leaves."""
        data = pickle.dumps(carried, pickle.HIGHEST_PROTOCOL)
        head = {
            "format": FORMAT,
            "kdissect": kdissect.__version__,
            "point": point,
            "bytes": carried.bytes_read,
            "sha256": hashlib.sha256(data).hexdigest(),
        }
        path = self._path(point, batch)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(json.dumps(head).encode() + b"\n" + data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)

    def forget(self) -> None:
        """Remove what no batch can need any more. The latest two of each capture point stay: a repeat of the
        latest batch reads the older one again. Files that a killed run did not finish go too.
        """
        for point in self.points():
            for number in sorted(self._batches(point))[:-2]:
                self._path(point, number).unlink(missing_ok=True)
        for path in self._folder.glob("*/*"):
            if path.suffix != _SUFFIX:
                path.unlink(missing_ok=True)
        for folder in self._folder.iterdir():
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    def _batches(self, point: str) -> list[int]:
        name = self._path(point, 0).name
        return [int(path.parent.name) for path in self._folder.glob(f"*/{name}")]

    def _path(self, point: str, batch: int) -> Path:
        digest = hashlib.sha256(point.encode("utf-8", "surrogateescape")).hexdigest()[:24]
        return self._folder / str(batch) / f"{digest}{_SUFFIX}"


def _head(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            head: dict[str, Any] = json.loads(file.readline())
        return {name: head[name] for name in _HEAD}
    except (OSError, ValueError, KeyError) as error:
        raise StateError(f"{path} is no state of a stream: {error}") from None


def _refuse_others(path: Path) -> None:
    found = os.stat(path)
    if found.st_uid != os.geteuid():
        raise StateError(f"{path} belongs to somebody else: a checkpoint runs code, and must be your own")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StateError(f"{path} can be written to by others: a checkpoint runs code (chmod go-w {path})")
