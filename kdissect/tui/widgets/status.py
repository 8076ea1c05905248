"""The line at the top of a screen, which shows facts. If there is not room for all, the least important are
left out. A fact is never cut, because a part of a figure would be wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

from kdissect.feed.rows import GRADES
from kdissect.live.journal import LONGEST_NOTE, Status
from kdissect.present.sanitise import sanitise
from kdissect.protocol.errors import CLASSES, FATAL, RETRIABLE, ROUTINE, SIGNS

PAUSED, STOPPED, DROPPED, SHOWN, ERRORS, NAME, READ, COUNT, FAULTS, BACKLOG = range(10)
ORDER, WORK, OF_THEM, MEDIAN, PACKETS, SHARE, RATE, NOTE, ROUTINES = range(10, 19)
"""The importance of a fact. The first of these is left out last."""


class Item(NamedTuple):
    """A fact."""

    text: str
    rank: int
    style: str = ""


def capture_items(capture: Status, decoded: int, alarm: str) -> list[Item]:
    """The losses of a running capture, and its backlog: packets to be decoded, and the fill of the ring.

    :param decoded: the number of decoded packets.
    :param alarm: the style of errors.
    """
    lost = capture.dropped + capture.lost
    waiting = max(0, capture.written - decoded)
    out = [
        Item(f"{lost:,} dropped", DROPPED, alarm if lost else ""),
        Item(f"backlog {waiting:,}, ring {capture.fill:.0%}", BACKLOG),
    ]
    if capture.notes:
        out.append(Item(sanitise(capture.notes[-1], LONGEST_NOTE), NOTE, alarm))
    return out


def error_items(graded: Sequence[int], alarm: str) -> list[Item]:
    """The number of exchanges with errors, by the gravest of them, each with its sign and its word.

    :param graded: the counts in the order of :data:`~kdissect.feed.rows.GRADES`.
    """
    fatal, retriable, routine = (graded[GRADES.index(each)] for each in CLASSES)
    out = [Item(f"{SIGNS[FATAL]} {fatal:,} {FATAL}", ERRORS, alarm if fatal else "")]
    if retriable:
        out.append(Item(f"{SIGNS[RETRIABLE]} {retriable:,} {RETRIABLE}", ERRORS, "bold"))
    if routine:
        out.append(Item(f"{SIGNS[ROUTINE]} {routine:,} {ROUTINE}", ROUTINES))
    return out


def shown_errors_text(graded: Sequence[int], alarm: str) -> Item:
    """The error counts of the shown exchanges, beside those of all: the signs are enough."""
    counts = [(each, graded[GRADES.index(each)]) for each in CLASSES]
    told = [f"{SIGNS[each]} {count:,}" for each, count in counts if count or each == FATAL]
    return Item(f"{' '.join(told)} of them", OF_THEM, alarm if graded[GRADES.index(FATAL)] else "")


def status_line(items: Sequence[Item], width: int) -> Text:
    """The facts for which there is room, in their order."""
    kept = list(items)
    while len(kept) > 1 and _line(kept).cell_len > width:
        del kept[max(range(len(kept)), key=lambda at: (kept[at].rank, at))]
    return _line(kept)


def _line(items: Sequence[Item]) -> Text:
    line = Text(no_wrap=True, overflow="ellipsis")
    for at, item in enumerate(items):
        line.append(" " if at == 0 else "  ")
        line.append(item.text, item.style)
    return line
