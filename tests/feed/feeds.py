"""Indexes and feeds for tests: of captures, and of rows that were made up."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from kdissect.feed.batches import FeedBatch
from kdissect.feed.decoder import Decoded
from kdissect.feed.index import Index
from kdissect.feed.rows import FIELDS, HAS_LATENCY, ROW
from kdissect.feed.source import ScreenSource
from kdissect.limits import DEFAULTS, Limits
from kdissect.source import Input
from tests.cli.run import CAPTURES


def source_of(*paths: Path | str, limits: Limits = DEFAULTS, **given: Any) -> ScreenSource:
    """What the screens show of these captures."""
    return ScreenSource(Input(tuple(map(str, paths)), limits), **given)


class Again(Decoded):
    """What a capture was decoded to before, once more."""

    def __init__(self, first: Decoded) -> None:
        self.source, self._spool, self._waiting = first.source, first._spool, list(first._waiting)

    def close(self) -> None:
        """The spool stays: others read it, too."""


@cache
def _decoded(paths: tuple[Path, ...]) -> Decoded:
    return Decoded(source_of(*paths))


def decoded(*paths: Path) -> Decoded:
    """A feed of these captures, decoded at once; those of the project once for all tests."""
    if all(path.is_relative_to(CAPTURES) for path in paths):
        return Again(_decoded(paths))
    return Decoded(source_of(*paths))


def index_of(feed: Decoded) -> Index:
    """What a feed fills an index with."""
    index = Index()
    for message in feed.poll():
        if isinstance(message, FeedBatch):
            index.add(message)
    return index


def row(**values: int) -> bytes:
    """A packed row; what is not given is 0."""
    unknown = set(values) - {name for name, _ in FIELDS}
    assert not unknown
    return ROW.pack(*(values.get(name, 0) for name, _ in FIELDS))


def index_with(rows: Iterable[dict[str, int]], texts: Iterable[str] = ()) -> Index:
    """An index of made-up rows, which have a latency if one is given."""
    index = Index()
    packed = [
        row(**{"flags": HAS_LATENCY if "latency_ns" in values else 0, "number": at, **values})
        for at, values in enumerate(rows, 1)
    ]
    index.add(FeedBatch(b"".join(packed), list(texts)))
    return index
