"""The state of the screens at their end: page, order, grouping, columns, sizes of panes, filter. The next run
starts with it.

It is in a file in the state folder that only the user can read. Nothing in it names a capture. A filter is
kept only if the user wrote it and it uses no secret.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from kdissect.settings.places import PAGES

MOST_BYTES = 1 << 16
"""The most bytes that are read of the file."""
MOST_LINES = 1_000
"""The most lines of a pane."""
LEAST_SHARE, MOST_SHARE = 1, 9
"""The tenths of the height that a list can have."""
LEAST_PERCENT, MOST_PERCENT = 10, 90
"""The percentages of the width that the bytes can have."""


class LastSession(NamedTuple):
    """The kept state. None or an empty value stands for the default."""

    page: str | None = None
    filter: str = ""
    columns: tuple[str, ...] = ()
    """The columns of the list of exchanges."""
    sort: tuple[str, bool] | None = None
    """The column of the index that orders the list, and whether the largest values come first."""
    share: int | None = None
    """The tenths of the height that the list of exchanges has."""
    heights: tuple[tuple[str, str, int], ...] = ()
    """Screen, pane and its lines, for screens with moved bars."""
    orders: tuple[tuple[str, str, bool], ...] = ()
    """Screen, title of the column that orders its list, and whether the largest values come first."""
    bytes_percent: int | None = None
    """The percentage of the width that the bytes have beside the tree."""
    groupings: tuple[tuple[str, str], ...] = ()
    """Screen, and the grouping of its rows."""


def load(path: Path) -> LastSession:
    """The state in the file. Unknown values, and files that cannot be read, count as empty."""
    try:
        with open(path, "rb") as file:
            found = json.loads(file.read(MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return LastSession()
    return _understood(found) if isinstance(found, dict) else LastSession()


def _understood(found: Mapping[str, object]) -> LastSession:
    page, filter, columns, sort = (found.get(name) for name in ("page", "filter", "columns", "sort"))
    is_order = (
        isinstance(sort, list) and len(sort) == 2 and isinstance(sort[0], str) and isinstance(sort[1], bool)
    )
    names = columns if isinstance(columns, list) and all(isinstance(each, str) for each in columns) else ()
    return LastSession(
        page if isinstance(page, str) and page in PAGES else None,
        filter if isinstance(filter, str) else "",
        tuple(names),
        (sort[0], sort[1]) if is_order and isinstance(sort, list) else None,
        _within(found.get("share"), LEAST_SHARE, MOST_SHARE),
        tuple(
            (page, pane, lines)
            for page, pane, lines in _of_screens(found.get("heights"), str, int)
            if 0 < lines <= MOST_LINES
        ),
        tuple(_of_screens(found.get("orders"), str, bool)),
        _within(found.get("bytes_percent"), LEAST_PERCENT, MOST_PERCENT),
        tuple(_of_screens(found.get("groupings"), str)),
    )


def _within(found: object, least: int, most: int) -> int | None:
    """A number, if it is one in this range."""
    return found if type(found) is int and least <= found <= most else None


def _of_screens(found: object, *kinds: type) -> Iterator[Any]:
    """The items of a list that consist of a screen and values of these kinds."""
    for each in found if isinstance(found, list) else ():
        if not isinstance(each, list) or [type(value) for value in each] != [str, *kinds]:
            continue
        if each[0] in PAGES:
            yield tuple(each)


def save(path: Path, session: LastSession) -> None:
    """Write the file. If that fails, nothing is kept."""
    part = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(OSError, UnicodeEncodeError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(json.dumps(session._asdict()).encode("ascii"))
        os.replace(part, path)
