"""Numbers in damaged bytes, which may be something else.

If a message, a batch or an embedded struct is damaged, a value that was read as a number may be part of a
name. So the numbers of damaged bytes stay only if they do not look like text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_TEXT = re.compile(rb"[\x20-\x7e\x80-\xfe]{3,}")
"""Bytes that may be a name, also in UTF-8."""

Range = tuple[int, int]


def blank_texts(out: bytearray, copied: Iterable[Range]) -> None:
    """Replace bytes that look like text by zeros.

    :param copied: the ranges of copied numbers; adjacent ranges count as one.
    """
    for start, end in _joined(copied):
        for found in _TEXT.finditer(bytes(out[start:end])):
            first, last = found.span()
            out[start + first : start + last] = bytes(last - first)


def _joined(ranges: Iterable[Range]) -> list[Range]:
    out: list[Range] = []
    for start, end in sorted(ranges):
        if out and start <= out[-1][1]:
            out[-1] = out[-1][0], max(end, out[-1][1])
        elif start < end:
            out.append((start, end))
    return out
