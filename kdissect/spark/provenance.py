"""The tables at a place, and the captures that they come from.

Rows of one table refer to rows of another by numbers, which count within one capture. Beside tables of other
captures they would refer to wrong rows. So a table that is made as a whole stores its origin. It is in the
file ``_captures.json`` of its folder, or in a property of the table. Growing tables have their runs instead.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import NamedTuple

from kdissect.model import CaptureError
from kdissect.spark.changes import FINDING_CHANGES
from kdissect.spark.runs import Runs
from kdissect.spark.settings import TableSettings
from kdissect.spark.storage import InputFile, folders_in, is_folder, is_remote, join, without_query
from kdissect.spark.tables import TABLES
from kdissect.spark.writing import create_file, read_file, remove

FILE = "_captures.json"
"""Spark and other readers skip files with such names."""
PROPERTY = "kdissect.captures"
"""The same for a table in a catalog: the name of the property."""
KNOWN = (*TABLES, FINDING_CHANGES.name)
"""The tables of captures."""
STATISTICS = "stats"
"""The folder of statistics, in the folder of the tables."""
_FORM = 1
_MOST_NAMED = 3


class TableOrigin(NamedTuple):
    """The captures that a table was made from."""

    captures: str
    """A single word for the names and sizes of the files."""
    reading: str
    """The options that affect how exchanges are numbered."""
    words: str
    """The files, for a user."""

    def text(self) -> str:
        """The origin, as text to store."""
        return json.dumps({"form": _FORM, **self._asdict()})


def origin_of(files: Collection[InputFile], settings: TableSettings) -> TableOrigin:
    """The origin of tables made from these files."""
    each = sorted((_whole(file.path), file.size) for file in files)
    named = [os.path.basename(without_query(path)) for path, _ in each[:_MOST_NAMED]]
    more = len(each) - len(named)
    words = ", ".join(named) + (f" and {more:,} more" if more else "")
    own = {
        "--capture-point": settings.capture_point,
        "-d": ",".join(map(str, sorted(settings.ports))),
        "--keylog or --rsa-key": "given" if settings.has_secrets else None,
    }
    reading = ", ".join(f"{name} {value}" for name, value in own.items() if value)
    return TableOrigin(hashlib.sha256(json.dumps(each).encode()).hexdigest()[:32], reading, words)


def origin_in(text: str | None) -> TableOrigin | None:
    """The stored origin; None if the text is no origin."""
    with suppress(ValueError, TypeError):
        value = json.loads(text or "")
        if isinstance(value, dict) and value.get("form") == _FORM:
            found = [each for name in TableOrigin._fields if isinstance(each := value.get(name), str)]
            if len(found) == len(TableOrigin._fields):
                return TableOrigin(*found)
    return None


def tables_in(folder: str) -> list[str]:
    """The tables in a folder. Those of statistics are called ``stats/NAME``.

    :raises CaptureError: it cannot be listed, or another file system does not answer.
    """
    found = [name for name in KNOWN if is_folder(join(folder, name))]
    inner = join(folder, STATISTICS)
    if is_folder(inner):
        found += [f"{STATISTICS}/{name}" for name in folders_in(inner)]
    return found


def kept_in(folder: str) -> TableOrigin | None:
    """The stored origin in the folder of a table."""
    try:
        with read_file(join(folder, FILE)) as file:
            return origin_in(file.read().decode(errors="replace"))
    except OSError:
        return None


def forget(folder: str) -> None:
    """Remove the origin of a table, because its rows are about to change.

    :raises OSError: the file of the origin cannot be removed.
    """
    remove(join(folder, FILE))


def keep(folder: str, origin: str | None) -> None:
    """Keep the origin of a table in its folder, if this machine sees the folder and can write there. The
    table is complete without it, and a table without an origin never counts as one of these captures.

    :raises OSError: the file of the earlier origin cannot be removed.
    """
    with suppress(CaptureError):
        if origin is None or not is_folder(folder):
            return
        forget(folder)
        with suppress(OSError), create_file(join(folder, FILE)) as file:
            file.write(origin.encode())


def stranger(
    there: Iterable[str],
    kept: Callable[[str], TableOrigin | None],
    now: TableOrigin,
    *,
    may_grow: bool,
) -> str | None:
    """Why tables of this origin cannot be put beside the existing ones that stay; None if they can.

    :param kept: returns the origin that a table keeps.
    :param may_grow: whether to ignore a table without an origin, because runs or a stream may add to it.
    """
    for name in there:
        found = kept(name)
        if found is None:
            if may_grow:
                continue
            return f"{name} does not say which captures it was made from; give another place, or remove it"
        if found.captures != now.captures:
            return f"{name} was made from other captures ({found.words}); give another place, or remove it"
        if found.reading != now.reading:
            how = f"was read with {found.reading}" if found.reading else f"was read without {now.reading}"
            return f"{name} {how}; give the same options, or another place"
    return None


def is_of_runs(runs: Runs, files: Iterable[InputFile]) -> bool:
    """Whether runs read any of these files, or nothing at all.

    :raises RunsError: a plan is damaged.
    """
    read = runs.position(runs.last())
    return not read or any(_whole(file.path) in read for file in files)


def _whole(path: str) -> str:
    return path if is_remote(path) else os.path.abspath(path)
