"""The build that made a state: only the same build can use its pickled objects.

The version is not enough, because classes change between two releases while the version stays the same.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import kdissect
from kdissect import dissect

_EDGES = frozenset(("cli", "client", "help", "jobs", "live", "scrub", "spark", "tui", "wireshark"))
"""Packages whose objects are in no state."""


@cache
def build() -> str:
    """A word that changes with every source, and that differs between sources and compiled modules."""
    top = Path(kdissect.__file__).parent
    made = hashlib.sha256(Path(dissect.__file__).suffix.encode())
    for path in sorted(top.rglob("*.py")):
        inside = path.relative_to(top)
        if inside.parts[0] not in _EDGES:
            made.update(f"\n{inside.as_posix()}\n".encode())
            made.update(path.read_bytes())
    return made.hexdigest()[:16]
