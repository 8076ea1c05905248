"""The pages of rules: text in ``pages/ID.txt``, which ``kdissect explain --rule ID`` prints.

    A group stood still for long.

    why: What the largest part of the time was, …
    do: Remove the member, or …
    thresholds:
      stopped_s: seconds for which nobody read
    configs: session.timeout.ms, max.poll.interval.ms
    sources: KIP-345, KIP-62

The first paragraph says what it is. A part may run over several lines and paragraphs, until the next.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

_PART = re.compile(r"^(why|do|thresholds|configs|sources):", re.MULTILINE)


class RulePage(NamedTuple):
    """The text about a rule."""

    what: str
    why: str
    do: str
    thresholds: dict[str, str]
    """The meaning of each threshold that the configuration may change, by its name."""
    configs: tuple[str, ...]
    sources: tuple[str, ...]


@cache
def page(id: str) -> RulePage:
    """The page of a rule.

    :raises FileNotFoundError: the rule has no page.
    """
    text = _text(id)
    what, *rest = _PART.split(text)
    parts = dict(zip(rest[::2], rest[1::2], strict=True))
    return RulePage(
        _flowed(what),
        _flowed(parts.get("why", "")),
        _flowed(parts.get("do", "")),
        _named(parts.get("thresholds", "")),
        _listed(parts.get("configs", "")),
        _listed(parts.get("sources", "")),
    )


def _text(id: str) -> str:
    path = Path(__file__).parent / "pages" / f"{id}.txt"
    if path.parent.exists():
        return path.read_text("utf-8")
    # The package is in an archive. Importing this module takes as long as reading as many pages.
    from importlib.resources import files

    return files("kdissect.insight").joinpath("pages", f"{id}.txt").read_text("utf-8")


def _flowed(text: str) -> str:
    """The text, with each paragraph on one line."""
    return "\n".join(" ".join(each.split()) for each in re.split(r"\n\s*\n", text.strip()))


def _named(text: str) -> dict[str, str]:
    """The lines of the form ``name: text``."""
    lines = (line.partition(":") for line in text.splitlines() if line.strip())
    return {name.strip(): said.strip() for name, _, said in lines}


def _listed(text: str) -> tuple[str, ...]:
    return tuple(each for each in (" ".join(part.split()) for part in text.split(",")) if each)
