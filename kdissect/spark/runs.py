"""What was read into tables night by night: a folder with a plan and a record of each run.

    plan-7.json   what the run 7 reads; written before anything else. A run that died is done again from it,
                  with the same files up to the same bytes, so that its rows are the same
    run-7.json    what it came to: written last. Without it the run is not over
    whole.json    files that end whole, as they were when the driver looked at them after the last run
    state/        what is carried from run to run (:mod:`kdissect.spark.states`)

The position at the end of a run tells the size and the first packet's time of each file. By the digest a
file is known that comes again under another name.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from kdissect.present.columns import Table, dict_column
from kdissect.spark.run_request import is_stored_request
from kdissect.spark.spool import Position, of_offset, to_offset
from kdissect.spark.storage import open_file
from kdissect.system import try_lock

FOLDER = "_runs"
"""The folder, in the folder of the tables."""
_FORM = 1
_WHOLE = "whole.json"
_RUN = re.compile(r"run-([0-9]+)\.json")
_PIECE = 1 << 20


class RunsError(Exception):
    """The folder cannot be used; the text is one line."""


class RunPlan(NamedTuple):
    """What a run reads."""

    number: int
    end: Position
    """How far all files are read when it is over."""
    digests: dict[str, str]
    """The digests of the files that it reads, up to that position."""
    asked: dict[str, Any]
    """Tables, partitions and options. A repeated run has the same ones, and so have all later runs."""
    closes: bool = False
    """Whether it reads nothing, writes what is open, and is the last run."""
    drains: bool = False
    """Whether it reads nothing, writes what is open, and connections begin anew after it."""
    has_secrets: bool | None = None
    """Whether TLS secrets were given beside the captures; None if unknown."""

    @property
    def identity(self) -> str:
        """A single word for what is read and how: the same input has the same word."""
        told = [sorted(self.digests.values()), self.asked]
        told += [word for word in ("closes", "drains") if getattr(self, word)]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


RUNS = Table(
    "runs",
    (
        dict_column("run", "int64", "1, 2, …"),
        dict_column("identity", "text", "one word for what was read and how"),
        dict_column("started_ns", "int64", "when it began, ns since the epoch")._replace(unit="time"),
        dict_column("seconds", "float64", "how long it took"),
        dict_column("cpu_seconds", "float64", "processor time of its tasks, without that of Spark itself"),
        dict_column("files", "int64", "files that it read, completely or from where it had stopped"),
        dict_column("bytes", "int64", "new bytes in these files")._replace(unit="bytes"),
        dict_column("rows", "int64", "rows of all tables"),
        dict_column("exchanges", "int64", "new exchanges"),
        dict_column(
            "not_captured", "int64", "new exchanges without request or response, because it was not captured"
        ),
        dict_column("faults", "int64", "faults"),
        dict_column("gap_bytes", "int64", "bytes of connections that were not captured")._replace(
            unit="bytes"
        ),
        dict_column("kdissect", "text", "the version of kdissect"),
        dict_column("spark", "text", "the version of Spark"),
    ),
)
"""The table of runs."""


class Runs:
    """The folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._folder = Path(folder)
        self.states = os.path.join(folder, "state")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the folder, so that no other run adds at the same time.

        :raises RunsError: another run has locked it, or the folder cannot be made.
        """
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise RunsError(f"{self._folder}: {error.strerror}") from None
        try:
            try:
                alone = try_lock(descriptor)
            except OSError as error:
                raise RunsError(f"{self._folder} cannot be locked: {error.strerror}") from None
            if not alone:
                raise RunsError(f"{self._folder}: another run adds to these tables; wait for it")
            yield
        finally:
            os.close(descriptor)

    def rows(self) -> list[dict[str, Any]]:
        """The results of all ended runs, the first run first, with the columns of :data:`RUNS`.

        :raises RunsError: one of them is damaged.
        """
        return [self._row(self._folder / f"run-{number}.json") for number in self._over()]

    def has_begun(self) -> bool:
        """Whether any run has begun or ended."""
        return any(any(self._folder.glob(f"{kind}-*.json")) for kind in ("plan", "run"))

    def last(self) -> int:
        """The number of the last run that ended; 0 before any."""
        return max(self._over(), default=0)

    def plan(self, number: int) -> RunPlan | None:
        """The plan of a run; None if it has none.

        :raises RunsError: the plan is damaged, or of another version of kdissect.
        """
        path = self._folder / f"plan-{number}.json"
        if not path.exists():
            return None
        value = self._read(path)
        digests, asked = value.get("digests"), value.get("asked")
        if isinstance(digests, dict) and all(isinstance(each, str) for each in digests.values()):
            with suppress(KeyError, TypeError, AttributeError):
                if is_stored_request(asked):
                    closes, drains = (value.get(word, False) for word in ("closes", "drains"))
                    end, has_secrets = of_offset(value["end"]), value.get("has_secrets")
                    return RunPlan(number, end, digests, asked, closes, drains, has_secrets)
        raise RunsError(f"{path} is damaged")

    def position(self, number: int) -> Position:
        """How far files were read at the end of a run; empty before the first.

        :raises RunsError: its plan is gone or damaged.
        """
        if number == 0:
            return {}
        plan = self.plan(number)
        if plan is None:
            raise RunsError(f"{self._folder / f'plan-{number}.json'} is gone: what was read is not known")
        return plan.end

    def digests(self) -> dict[str, str]:
        """The file that was read, by its digest.

        :raises RunsError: a plan is damaged.
        """
        plans = [self.plan(number) for number in range(1, self.last() + 1)]
        return {digest: path for plan in plans if plan for path, digest in plan.digests.items()}

    def whole(self) -> Position:
        """The files of :meth:`keep_whole`. Empty if they were not kept, or if the file is damaged: then the
        caller examines the files again."""
        with suppress(RunsError, KeyError, TypeError, AttributeError):
            return of_offset(self._read(self._folder / _WHOLE)["end"])
        return {}

    def keep_whole(self, files: Position) -> None:
        """Keep the files that end with a complete packet, in their current state.

        :raises OSError: it cannot be written.
        """
        self._write(_WHOLE, {"end": to_offset(files)})

    def begin(self, plan: RunPlan) -> None:
        """Keep the plan of a run. From now on the run is repeated if it dies.

        :raises OSError: it cannot be written.
        """
        value: dict[str, Any] = {"end": to_offset(plan.end), "digests": plan.digests, "asked": plan.asked}
        value |= {"closes": plan.closes, "drains": plan.drains, "has_secrets": plan.has_secrets}
        self._write(f"plan-{plan.number}.json", value)

    def end(self, row: dict[str, Any]) -> None:
        """End a run: keep its result.

        :param row: its values, by the columns of :data:`RUNS`.
        :raises OSError: it cannot be written.
        """
        self._write(f"run-{row['run']}.json", row)

    def _row(self, path: Path) -> dict[str, Any]:
        value = self._read(path)
        row = {column.name: value.get(column.name) for column in RUNS.columns}
        for column in RUNS.columns:
            kind = str if column.type == "text" else int | float
            if not isinstance(row[column.name], kind | None):
                raise RunsError(f"{path} is damaged: {column.name} is {row[column.name]!r}")
        return row

    def _over(self) -> list[int]:
        """The numbers of the ended runs. Files with other names are ignored."""
        names = (_RUN.fullmatch(path.name) for path in self._folder.glob("run-*.json"))
        return sorted(int(found[1]) for found in names if found)

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            value: dict[str, Any] = json.loads(path.read_text())
            if value["form"] == _FORM:
                return value
        except (OSError, ValueError, KeyError, TypeError):
            pass
        raise RunsError(f"{path} is damaged, or of another version of kdissect")

    def _write(self, name: str, value: dict[str, Any]) -> None:
        path = self._folder / name
        partial = path.with_suffix(f".{os.getpid()}")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump({"form": _FORM, **value}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)


def digest_of(path: str, size: int) -> str:
    """The SHA-256 of the first ``size`` bytes of a file, in hexadecimal digits.

    :raises CaptureError: it is a directory, or its file system cannot be reached.
    :raises OSError: it cannot be read.
    """
    made = hashlib.sha256()
    with closing(open_file(path)) as file:
        while size > 0 and (piece := file.read(min(size, _PIECE))):
            made.update(piece)
            size -= len(piece)
    return made.hexdigest()
