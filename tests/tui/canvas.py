"""A terminal that only draws: what stands in each cell, and in which style, after all that was written."""

from __future__ import annotations

import re
from typing import NamedTuple

from rich.cells import cell_len

_PART = re.compile(
    r"\x1b\[(?P<place>\d+;\d+)H|\x1b\[(?P<style>[\d;:]*)m|\x1b\][^\x1b]*\x1b\\|(?P<text>[^\x1b])"
)


class Cell(NamedTuple):
    """A cell; of a wide character the second one is empty."""

    text: str = " "
    style: str = ""
    """The numbers of the escape code."""


class Canvas:
    """The terminal."""

    def __init__(self, width: int, height: int) -> None:
        self.lines = [[Cell()] * width for _ in range(height)]
        self._style = ""
        self._x = self._y = 0

    def write(self, text: str) -> None:
        """Take what is written to it."""
        at = 0
        while at < len(text):
            found = _PART.match(text, at)
            assert found is not None, f"not known: {text[at : at + 20]!r}"
            at = found.end()
            if found["place"] is not None:
                y, x = map(int, found["place"].split(";"))
                self._x, self._y = x - 1, y - 1
            elif found["style"] is not None:
                self._style = "" if found["style"] in ("", "0") else found["style"]
            elif found["text"] == "\n":
                self._x, self._y = 0, self._y + 1
            elif found["text"] is not None:
                self._put(found["text"])

    def _put(self, character: str) -> None:
        width, line = cell_len(character), self.lines[self._y]
        if not width:
            line[self._x - 1] = line[self._x - 1]._replace(text=line[self._x - 1].text + character)
            return
        for cell in range(width):
            line[self._x + cell] = Cell("" if cell else character, self._style)
        self._x += width

    def text(self) -> str:
        """The lines without styles."""
        return "\n".join("".join(cell.text for cell in line) for line in self.lines)
