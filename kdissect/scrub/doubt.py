"""Numbers in bytes that may not be what they were read as.

Where a message, a batch or an embedded struct is damaged, what was read as a number may be a part of a name.
So the numbers of damaged bytes stay only if they do not look like text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_TEXT = re.compile(rb"[\x20-\x7e\x80-\xfe]{3,}")
"""What a name may look like, also in UTF-8."""

Range = tuple[int, int]


def blank_texts(out: bytearray, copied: Iterable[Range]) -> None:
    """Put zeros in the place of what looks like text.

    :param copied: where numbers were copied; those that follow each other count as one.
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
