"""Indexes and feeds for tests: of captures, and of rows that were made up."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kdissect.feed.batches import FeedBatch
from kdissect.feed.decoder import Decoded
from kdissect.feed.index import Index
from kdissect.feed.rows import FIELDS, HAS_LATENCY, ROW
from kdissect.feed.source import ScreenSource


def decoded(*paths: Path) -> Decoded:
    """A feed of these captures, decoded at once."""
    return Decoded(ScreenSource(tuple(map(str, paths))))


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
