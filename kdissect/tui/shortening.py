"""Texts that are longer than the room for them → their two ends: where both tell one from another, an end
must not be what is cut."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

from kdissect.present.sanitise import CUT


def shortened(text: str, end: str, room: int) -> str:
    """``text`` with ``end`` after it, in so many cells: where there is no room for all, as much of the text
    as there is room for beside the end, and where there is no room for that either, the beginning of both."""
    whole = text + end
    if cell_len(whole) <= room:
        return whole
    left = room - cell_len(CUT) - cell_len(end)
    if left < 1:
        return (set_cell_size(whole, room - 1) if room > 1 else "") + CUT
    return set_cell_size(text, left) + CUT + end
