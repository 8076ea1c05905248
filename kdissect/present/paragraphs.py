"""Text in lines of 80 columns."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from kdissect.present.sanitise import sanitise

WIDTH = 80
LABEL = 6
"""Cells of a label before a paragraph."""


def paragraph(text: str, indent: str, label: str | None = None, room: int = WIDTH) -> Iterator[str]:
    """The lines of a paragraph.

    :param label: the text before the first line.
    :param room: cells of a line.
    """
    first = indent if label is None else f"{indent}{label:<{LABEL}}"
    for at, line in enumerate(fold_text(sanitise(text, None), room - len(first))):
        yield (first if at == 0 else " " * len(first)) + line


def fold_text(text: str, room: int) -> list[str]:
    """A text in lines of at most ``room`` cells; words stay whole."""
    held = _UNIT.sub("\\1\u00a0\\2", text)  # a number and its unit stay together
    lines = textwrap.wrap(held, max(room, 20), break_long_words=False, break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines] or [""]


_UNIT = re.compile(r"(\d) (ns|µs|ms|s|B|KiB|MiB|GiB|%)\b")
