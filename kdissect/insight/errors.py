"""The usual causes of each of Kafka's errors, and what to do: ``kdissect explain --error NAME``.

:mod:`kdissect.protocol.errors` has the meaning and the severity of each error.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple


class Causes(NamedTuple):
    """A line of ``errors.txt``."""

    causes: tuple[str, ...]
    """The most frequent cause first; empty if nothing is wrong."""
    do: str
    """What to do; empty if nothing is to be done."""


@cache
def causes() -> Mapping[str, Causes]:
    """The table, by the name of the error."""
    from importlib.resources import files

    text = (files("kdissect.insight") / "errors.txt").read_text("utf-8")
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return dict(map(_line, lines))


def _line(line: str) -> tuple[str, Causes]:
    name, told, do = (part.strip() for part in line.split("|"))
    parts = () if told == "-" else tuple(each.strip() for each in told.split(";"))
    return name, Causes(parts, "" if do == "-" else do)
