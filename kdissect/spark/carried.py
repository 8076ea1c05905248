"""What is carried from batch to batch of a stream: the reading of each capture point, and how far its
files were read.

Each batch and capture point has a state in a file of its own. A batch that is repeated reads what it read the
first time and writes what it wrote. States are pickled, and loading one runs what it says. So they are loaded
only from files and folders that belong to the user and that nobody else may write to. The line before the
pickle says its format, the kdissect that made it, with its build, and its digest.

A state is drained when all that was open has been written as rows. What is left are plain values in JSON,
which any release of kdissect reads:

    7/NAME.state            what the batch 7 left
    7/draining/NAME.state   the same drained, while rows are written
    7/drained/NAME.state    the same when they all are there: it counts in place of the first
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import stat
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

import kdissect
from kdissect.source import Pass
from kdissect.spark.build import build

FORMAT = 5
_DRAINED_FORM = 1
_DRAINING, _DRAINED = "draining", "drained"
_SUFFIX = ".state"
_HEAD = ("format", "kdissect", "point", "bytes", "sha256")
"""What the line before the pickle tells …"""
_LATER = (_DRAINED, "build")
"""… and what it did not always tell."""


class StateError(Exception):
    """A state cannot be used; the text is one line with the path and what to do."""


@dataclass
class Carried:
    """The state of one capture point."""

    reading: Pass
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
        """The file has a new name: what was read of it stays known."""
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

    def drained(self) -> Drained:
        """What stays when its reading has ended."""
        reading = self.reading
        numbering = reading.numbering
        return Drained(
            *(self.packets, self.last_ns, self.items, sorted(self.final), self.sizes, self.firsts),
            *(numbering.connections, numbering.exchanges, list(reading.names.order)),
        )


class Drained(NamedTuple):
    """A state of which nothing is open any more: how far files were read, numbers, and names of topic ids."""

    packets: int
    last_ns: int | None
    items: dict[str, int]
    final: list[str]
    sizes: dict[str, int]
    firsts: dict[str, int | None]
    connections: int
    """How many have a number …"""
    exchanges: int
    """… and how many exchanges."""
    names: list[tuple[str, str, int]]
    """Topic id, name, and the packet that told it."""

    def begun(self, reading: Pass) -> Carried:
        """The state with a new reading, which goes on with the numbers."""
        numbering = reading.numbering
        numbering.connections, numbering.exchanges = self.connections, self.exchanges
        for each in self.names:
            reading.names.learn(*each)
        return Carried(
            *(reading, self.packets, self.last_ns, self.items, set(self.final), self.sizes, self.firsts)
        )


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
        return sorted({_head(path)["point"] for path in self._all()})

    def bytes_read(self) -> int:
        """How much was read of the files that are there, of all capture points."""
        latest = [self._latest(point, None) for point in self.points()]
        return sum(_head(path)["bytes"] for path in latest if path is not None)

    def last_batch(self) -> int | None:
        """The latest batch that left a state."""
        return max(map(_batch_of, self._all()), default=None)

    def load(self, point: str, batch: int) -> Carried | Drained | None:
        """What batches before this one left of a capture point; None if no batch came before.

        :raises StateError: it is damaged, of another kdissect, or not the user's own.
        """
        path = self._latest(point, batch)
        if path is None:
            return None
        _refuse_others(self._folder)
        _refuse_others(path)
        head = _head(path)
        if _is_of_others(head):
            raise StateError(
                f"{path} was made by {_maker(head)}: end the stream with that version and --drain, "
                "or start a new one with another --checkpoint and --out"
            )
        data = path.read_bytes().partition(b"\n")[2]
        if hashlib.sha256(data).hexdigest() != head["sha256"]:
            raise StateError(f"{path} is damaged: its digest does not fit")
        if head["drained"] is not None:
            value = json.loads(data)
            return Drained(**{**value, "names": [tuple(each) for each in value["names"]]})
        carried = pickle.loads(data)  # ours, see above
        assert isinstance(carried, Carried)
        return carried

    def of_others(self, batch: int) -> list[str]:
        """The capture points whose state before this batch another version of kdissect made."""
        latest = {point: self._latest(point, batch) for point in self.points()}
        return [point for point, path in latest.items() if path is not None and _is_of_others(_head(path))]

    def save(self, point: str, batch: int, carried: Carried) -> None:
        """Keep what a batch leaves."""
        data = pickle.dumps(carried, pickle.HIGHEST_PROTOCOL)
        self._write(self._path(point, batch), point, carried.bytes_read, data, None)

    def drain(self, point: str, batch: int, drained: Drained) -> None:
        """Keep it as drained; it counts after :meth:`end_drain`."""
        path = self._path(point, batch)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        data = json.dumps(drained._asdict()).encode()
        size = sum(drained.sizes.values())
        self._write(path.parent / _DRAINING / path.name, point, size, data, _DRAINED_FORM)

    def end_drain(self, batch: int) -> None:
        """Everything that was open is written: the drained states count from now on."""
        folder = self._folder / str(batch)
        rmtree(folder / _DRAINED, ignore_errors=True)
        os.rename(folder / _DRAINING, folder / _DRAINED)

    def is_drained(self, batch: int) -> bool:
        """Whether a batch left nothing open."""
        return (self._folder / str(batch) / _DRAINED).is_dir()

    def is_draining(self, batch: int) -> bool:
        """Whether a drain after a batch has begun and has not ended."""
        return (self._folder / str(batch) / _DRAINING).is_dir()

    def _write(self, path: Path, point: str, size: int, data: bytes, drained: int | None) -> None:
        head = {
            "format": FORMAT,
            "kdissect": kdissect.__version__,
            "build": build(),
            "point": point,
            "bytes": size,
            "sha256": hashlib.sha256(data).hexdigest(),
            "drained": drained,
        }
        path.parent.mkdir(mode=0o700, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(json.dumps(head).encode() + b"\n" + data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)

    def forget(self) -> None:
        """Remove what no later batch needs. The latest two of each capture point stay: a repeat of the
        latest batch reads the older one again. Files that a killed run did not finish go too.
        """
        for point in self.points():
            name = self._path(point, 0).name
            own = [path for path in self._all() if path.name == name]
            for number in sorted(set(map(_batch_of, own)))[:-2]:
                for path in own:
                    if _batch_of(path) == number:
                        path.unlink(missing_ok=True)
        for path in self._folder.glob(f"*/{_DRAINING}"):
            rmtree(path, ignore_errors=True)
        for path in (*self._folder.glob("*/*"), *self._folder.glob(f"*/{_DRAINED}/*")):
            if path.suffix != _SUFFIX and not path.is_dir():
                path.unlink(missing_ok=True)
        for folder in (*self._folder.glob(f"*/{_DRAINED}"), *self._folder.iterdir()):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    def _all(self) -> list[Path]:
        """The states of all capture points; a drained one behind the one that it replaces."""
        return [*self._folder.glob(f"*/*{_SUFFIX}"), *self._folder.glob(f"*/{_DRAINED}/*{_SUFFIX}")]

    def _latest(self, point: str, before: int | None) -> Path | None:
        """The latest state of a capture point, of the batches before one."""
        name = self._path(point, 0).name
        found = [path for path in self._all() if path.name == name]
        if before is not None:
            found = [path for path in found if _batch_of(path) < before]
        return max(found, key=lambda path: (_batch_of(path), path.parent.name == _DRAINED), default=None)

    def _path(self, point: str, batch: int) -> Path:
        digest = hashlib.sha256(point.encode("utf-8", "surrogateescape")).hexdigest()[:24]
        return self._folder / str(batch) / f"{digest}{_SUFFIX}"


def _batch_of(path: Path) -> int:
    folder = path.parent
    return int(folder.parent.name if folder.name == _DRAINED else folder.name)


def _is_of_others(head: dict[str, Any]) -> bool:
    """Whether this release cannot load a state. What is drained, all can."""
    if head["drained"] is not None:
        return bool(head["drained"] != _DRAINED_FORM)
    maker = head["format"], head["kdissect"], head["build"]
    return maker != (FORMAT, kdissect.__version__, build())


def _maker(head: dict[str, Any]) -> str:
    """Who made a state that this release cannot load, in words."""
    if head["kdissect"] == kdissect.__version__:
        return f"another build of kdissect {kdissect.__version__}"
    return f"kdissect {head['kdissect']}, this is {kdissect.__version__}"


def _head(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            head: dict[str, Any] = json.loads(file.readline())
        return {**{name: head[name] for name in _HEAD}, **{name: head.get(name) for name in _LATER}}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StateError(f"{path} is not the state of a stream: {error}") from None


def _refuse_others(path: Path) -> None:
    found = os.stat(path)
    if found.st_uid != os.geteuid():
        raise StateError(
            f"{path} belongs to another user, and loading a checkpoint runs code from it: use your own"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StateError(
            f"other users can write to {path}, and loading a checkpoint runs code from it: chmod go-w {path}"
        )
