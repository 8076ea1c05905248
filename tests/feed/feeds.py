"""Indexes and feeds for tests: of captures, and of rows that were made up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from kdissect.analysis.fold import MILLISECOND, SECOND
from kdissect.feed.batches import FeedBatch
from kdissect.feed.counting import Begin, CountedRows, Counting, Grown, Order
from kdissect.feed.decoder import Decoded
from kdissect.feed.index import Index
from kdissect.feed.rows import FIELDS, HAS_LATENCY, ROW
from kdissect.feed.source import ScreenSource
from kdissect.limits import DEFAULTS, Limits
from kdissect.settings.screens import Rules
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


_spools: set[int] = set()
"""Descriptors of those that stay."""


@cache
def _decoded(paths: tuple[Path, ...]) -> Decoded:
    feed = Decoded(source_of(*paths))
    _spools.add(feed.descriptor)
    return feed


def decoded(*paths: Path) -> Decoded:
    """A feed of these captures, decoded at once; those of the project once for all tests."""
    if all(path.is_relative_to(CAPTURES) for path in paths):
        return Again(_decoded(paths))
    return Decoded(source_of(*paths))


_counted: dict[object, Any] = {}
"""Counts that have caught up, by what was counted."""


class CountedOnce(Counting):
    """Counts a capture that tests share once for all applications that ask for the same figures."""

    def __init__(self, descriptor: int, limits: Limits = DEFAULTS, rules: Rules = Rules()) -> None:  # noqa: B008
        super().__init__(descriptor, limits, rules)
        self._names_told: tuple[tuple[str, str, int], ...] = ()
        self._is_shared = descriptor in _spools and limits == DEFAULTS and rules == Rules()

    def take(self, order: Order) -> None:
        super().take(order)
        if isinstance(order, Begin):
            self._names_told = ()
        elif isinstance(order, Grown):
            self._names_told += order.names

    def _key(self) -> object:
        others = len(self._connections), len(self._faults), self._names_told
        of = self._places.tobytes(), self._lengths.tobytes(), bytes(self._chosen)
        return self._descriptor, self._asked, *of, others

    def step(self) -> Iterator[CountedRows]:
        count = self._counts.get(self._asked)
        if count is None or not self._is_shared:
            yield from super().step()
            return
        key = self._key()
        if count.fed == (0, 0, 0) and key in _counted:
            self._counts[self._asked] = known = _counted[key]
            known.due, known.given = count.due, None
        elif count in _counted.values() and not self._has_caught_up(count):
            del self._counts[self._asked]  # more came than others have counted
            self._begin()
        yield from super().step()
        if self._has_caught_up(self._counts[self._asked]):
            _counted.setdefault(key, self._counts[self._asked])


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


def index_of_times() -> Index:
    """Six exchanges of two APIs: of 10 ns, 2 ms and 10 s, and one without an answer."""
    fetch, produce = 1, 2
    rows = [
        {"api": fetch, "api_version": 4, "time_ns": 0, "latency_ns": 10},
        {"api": fetch, "api_version": 4, "time_ns": 9 * SECOND, "latency_ns": 2 * MILLISECOND},
        {"api": fetch, "api_version": 4, "time_ns": 9 * SECOND, "latency_ns": 2 * MILLISECOND},
        {"api": fetch, "api_version": 5, "time_ns": 5 * SECOND, "latency_ns": 10 * SECOND},
        {"api": produce, "api_version": 4, "time_ns": 5 * SECOND, "latency_ns": 10},
        {"api": fetch, "api_version": 4, "time_ns": 5 * SECOND},
    ]
    return index_with(rows, ["Fetch", "Produce"])
