"""Response times over time as rows of a table: a line a band, the longest above, darker where there are more.

Nothing here draws.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdissect.analysis.histogram import BANDS_NS
from kdissect.present.form import duration
from kdissect.tui.feed.index import Index, Places
from kdissect.tui.feed.rows import HAS_LATENCY
from kdissect.tui.widgets.table import Heading

SHADES = " ·░▒▓█"
"""None, few … as many as anywhere."""
_LABEL, _COUNT = 10, 9
"""Cells of the first columns."""


def places_of(
    index: Index, places: Places, api: str, version: int | None, more: Sequence[tuple[str, str]]
) -> Places:
    """Of these exchanges, those of an API and version that have a response time.

    :param more: names of text columns, and the text that they have.
    """
    flags = index.column("flags")[places]
    here = (flags & HAS_LATENCY) != 0
    if version is not None:
        here &= index.column("api_version")[places] == version
    for name, text in (("api", api), *more):
        numbers = [at for at, each in enumerate(index.texts) if each == text]
        here &= np.isin(index.column(name)[places], numbers)
    found: Places = places[here]
    return found


class Heat:
    """The lines.

    :param text_of: writes a time.
    """

    def __init__(self, text_of: Callable[[int], str]) -> None:
        self._text_of = text_of
        self._times: NDArray[Any] = np.zeros(0, np.int64)
        self._bands: NDArray[Any] = np.zeros(0, np.int64)
        self._span = 0, 1
        self._title = ""
        self._version = 0
        self._made: dict[int, list[str]] = {}
        """Lines by how many cells they have."""

    def show(self, index: Index, places: Places, title: str) -> None:
        """Take other exchanges.

        :param title: what they are, sanitised.
        """
        self._times = index.column("time_ns")[places]
        self._bands = np.searchsorted(np.array(BANDS_NS), index.column("latency_ns")[places], side="right")
        start = index.first_ns or 0
        self._span = start, max(start + 1, index.last_ns or 0)
        self._title = title
        self._version += 1
        self._made.clear()

    def __len__(self) -> int:
        return len(BANDS_NS) + 1 if len(self._times) else 0

    def band(self, row: int) -> tuple[int | None, int | None]:
        """The times of a line: from, in ns, and below; None for no end."""
        at = len(BANDS_NS) - row
        return BANDS_NS[at - 1] if at else None, BANDS_NS[at] if at < len(BANDS_NS) else None

    def headings(self, width: int) -> Sequence[Heading]:
        first, last = map(self._text_of, self._span)
        return (
            Heading("Latency", _LABEL, True),
            Heading("Count", _COUNT, True),
            Heading(f"{first} to {last}   {self._title}" if len(self) else "no response times", 0),
        )

    def key(self, row: int) -> Hashable:
        return self._version, row

    def tone(self, row: int) -> str | None:
        return None

    def cells(self, row: int, width: int) -> Sequence[str]:
        lowest, below = self.band(row)
        label = f"≥ {duration(lowest)}" if lowest is not None else f"< {duration(below or 0)}"
        count = int((self._bands == len(BANDS_NS) - row).sum())
        room = max(1, width - _LABEL - _COUNT - 2)
        return [label, f"{count:,}" if count else "", self._lines(room)[row]]

    def _lines(self, room: int) -> list[str]:
        found = self._made.get(room)
        if found is None:
            start, end = self._span
            columns = np.clip((self._times - start) * room // max(1, end - start), 0, room - 1)
            grid = np.zeros((len(self), room), np.int64)
            np.add.at(grid, (len(BANDS_NS) - self._bands, columns), 1)
            scale = np.log1p(grid) / max(
                1.0, float(np.log1p(grid.max()))
            )  # one is still seen among thousands
            shades = np.where(grid > 0, np.maximum(1, np.ceil(scale * (len(SHADES) - 1))), 0).astype(int)
            found = self._made[room] = ["".join(SHADES[at] for at in line) for line in shades]
        return found
