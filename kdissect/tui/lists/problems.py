"""What is wrong: errors of brokers, exchanges without one side, faults of the captured bytes. Nothing here
draws.

An ERROR is an error code of a broker; a WARN is a fault of the bytes; a NOTE is what need not be wrong: a
side that was not captured, and error codes that are how the protocol asks for the next step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from kdissect.analysis.fold import Row
from kdissect.faults import KINDS
from kdissect.tui.feed.index import Index, Places
from kdissect.tui.filtering import quoted
from kdissect.tui.lists.figures import Column, Figures, address, number, words

ERROR, WARN, NOTE = "ERROR", "WARN", "NOTE"
_ORDER = (ERROR, WARN, NOTE)

EXPECTED = ("MEMBER_ID_REQUIRED", "REBALANCE_IN_PROGRESS")
"""Codes with which a coordinator tells a member to join, or to join again (KIP-394)."""
NOTHING_AMISS = ("acks=0", "waiting")
"""Reasons for a missing response that say that none is due, or due yet."""


def columns(time_text: Callable[[int], str]) -> tuple[Column, ...]:
    """The columns; ``time_text`` writes a time."""

    def when(name: str) -> Callable[[Row], str]:
        def text(row: Row) -> str:
            if row[f"{name}_ns"] is not None:
                return time_text(row[f"{name}_ns"])
            packet = row[f"{name}_packet"]
            return f"packet {packet:,}" if packet is not None else ""

        return text

    return (
        Column("Kind", lambda row: row["severity"], _gravity, 0, False, 5, False),
        words("What", "what", most=44, least=28),
        number("Count", "count"),
        words("API", "api", 2, most=26),
        words("Topic", "topic", 1, most=60, least=16),
        number("Part", "partition", 4),
        address("Broker", "broker", 5),
        Column("First", when("first"), lambda row: row["first_ns"], 3, True, 27, False),
        Column("Last", when("last"), lambda row: row["last_ns"], 4),
        number("No.", "number", 6),
        words("Said", "said", 7, most=200),
    )


def _gravity(row: Row) -> int:
    return _ORDER.index(row["severity"])


def figures(columns: tuple[Column, ...]) -> Figures:
    """The rows, empty."""
    return Figures(columns, lambda row: row["key"], lambda row: _TONES[row["severity"]])


_TONES = {ERROR: "table--error", WARN: "table--warning", NOTE: "table--dim"}


def problem_rows(errors: Iterable[Row], index: Index, places: Places, is_filtered: bool) -> list[Row]:
    """All of them: errors as the statistic ``errors`` has them, then the others, the graver first."""
    rows = [*map(_error, errors), *_missing(index, places), *_faults(index, is_filtered)]
    return sorted(rows, key=lambda row: (_ORDER.index(row["severity"]), -row["count"]))


def _row(severity: str, what: str, count: int, key: object, **more: object) -> Row:
    nothing = ("api", "topic", "partition", "broker", "first_ns", "last_ns", "first_packet", "last_packet")
    rest = dict.fromkeys((*nothing, "number", "said", "filter"))
    return {"severity": severity, "what": what, "count": count, "key": key, **rest, **more}


def _error(row: Row) -> Row:
    name = row["error"]
    about = row["api"], row["topic"], row["partition"], row["broker"]
    parts = [f"errors == {quoted(name)}"]
    if row["api"] is not None:
        parts.append(f"api == {quoted(row['api'])}")
    if row["topic"] is not None:
        parts.append(f"topic == {quoted(row['topic'])}")
    parts.append(f"broker == {quoted(row['broker'])}")
    same = ("api", "topic", "partition", "broker", "first_ns", "last_ns")
    return _row(
        NOTE if name in EXPECTED else ERROR,
        name,
        row["count"],
        (name, *about),
        **{each: row[each] for each in same},
        number=row["first_exchange"],
        filter=" and ".join(parts),
    )


def _missing(index: Index, places: Places) -> Iterator[Row]:
    """Exchanges of which one side is missing, by the reason."""
    column = index.column("missing")[places]
    times, numbers = index.column("time_ns")[places], index.column("number")[places]
    for reason in np.unique(column[column != 0]).tolist():
        text = index.texts[reason]
        if text in NOTHING_AMISS:
            continue
        here = column == reason
        yield _row(
            NOTE,
            f"one side is missing: {text}",
            int(here.sum()),
            ("missing", text),
            first_ns=int(times[here].min()),
            last_ns=int(times[here].max()),
            number=int(numbers[here].min()),
            filter=f"missing == {quoted(text)}",
        )


def _faults(index: Index, is_filtered: bool) -> Iterator[Row]:
    """Faults by kind, always of the whole capture: most belong to no exchange."""
    for (layer, kind), (count, first) in index.faults.items():
        whole = " (whole capture)" if is_filtered else ""
        yield _row(
            WARN,
            f"{layer}: {kind}{whole}",
            count,
            ("fault", layer, kind),
            first_packet=first.packet,
            number=first.exchange,
            said=f"{KINDS[kind][1]}; the first: {first.message}",
            filter=f"fault == {quoted(kind)}" if first.exchange is not None else None,
        )
