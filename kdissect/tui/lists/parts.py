"""The parts of response times as a bar, each part by its shape, and in words."""

from __future__ import annotations

from typing import NamedTuple

from kdissect.analysis.fold import Row
from kdissect.present.form import duration

CELLS = 24
"""Of a bar."""


class Part(NamedTuple):
    """A part of what an exchange takes."""

    column: str
    """Of the statistic ``latency``, without ``_sum_ns``."""
    sign: str
    words: str


PARTS = (
    Part("request_transfer", "▸", "the request came"),
    Part("behind", "▒", "waiting behind another request"),
    Part("throttle", "▓", "held back for a quota"),
    Part("network", "·", "network"),
    Part("wait", "┄", "long poll, as asked"),
    Part("broker", "█", "the broker worked"),
    Part("unknown", "▤", "worked or waited as asked"),
    Part("response_transfer", "◂", "the answer came"),
)
"""In the order of time. What lies between an answer and the next request is the client's and in no bar."""
INKS = {"▒": "table--warning", "▓": "table--error", "┄": "table--dim", "·": "table--dim"}


def sums(row: Row) -> dict[str, int]:
    """The parts of a row of ``latency``, added up, by their columns."""
    out = {each.column: row[f"{each.column}_sum_ns"] or 0 for each in PARTS if each.column != "unknown"}
    out["unknown"] = max(0, (row["served_sum_ns"] or 0) - out["wait"] - out["broker"])
    return out


def bar(row: Row | None) -> str:
    """The parts side by side, in :data:`CELLS` cells; each that can be seen has one."""
    found = {} if row is None else sums(row)
    whole = sum(found.values())
    if not whole:
        return ""
    cells = {name: ns * CELLS // whole for name, ns in found.items()}
    for name, ns in sorted(found.items(), key=lambda each: -(each[1] * CELLS % whole)):
        if sum(cells.values()) < CELLS and ns:
            cells[name] += 1
    return "".join(part.sign * cells[part.column] for part in PARTS)


def in_words(row: Row | None) -> str:
    """How much time each part took in all, and of it, the largest first."""
    found = {} if row is None else sums(row)
    whole = sum(found.values())
    if row is None or not whole:
        return "the parts of these response times are not known"
    told = [
        f"{part.sign} {part.words} {duration(found[part.column])} ({100 * found[part.column] / whole:.0f} %)"
        for part in sorted(PARTS, key=lambda each: -found[each.column])
        if found[part.column]
    ]
    client = row["think_sum_ns"]
    if client:
        told.append(f"beside it, the client between answer and request {duration(client)}")
    return "   ".join([f"{duration(whole)} in all:", *told])
