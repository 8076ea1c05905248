"""The index → the columns that a filter needs, under the filter's names of fields; and slow exchanges.

A column is made on demand, of the rows from one place to another. If a row has only a part of an exchange's
value, it is left out, so that the filter reads the exchange itself. Slow means the same as on the command
line (:mod:`kdissect.analysis.slow`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdissect.analysis.histogram import ceiling_of
from kdissect.analysis.slow import MOST_APIS, Slowness, asked_percent, limit_of
from kdissect.feed.index import Index
from kdissect.feed.rows import (
    GRADES,
    GRAVEST,
    HAS_CORRELATION,
    HAS_LATENCY,
    HAS_REQUEST,
    HAS_RESPONSE,
    HAS_TAKEN,
    HAS_VERSION,
    IS_CUT,
    IS_INFERRED,
    ROUGH,
    TEXT_FIELDS,
)
from kdissect.filter.compiled import Filter
from kdissect.filter.expression import fields_of
from kdissect.filter.masks import IndexColumn, KnownColumn, Mask, Masks, Numbers, TextColumn, TextSets
from kdissect.message import SASL_TOKEN
from kdissect.protocol import apis

NEVER = int(np.iinfo(np.int64).max)


def slowness_of(index: Index, slow_ns: int | None = None) -> Slowness:
    """The bounds of slow exchanges, from all exchanges so far.

    :param slow_ns: a bound set by the user.
    """
    found = Slowness(slow_ns)
    if slow_ns is not None:
        return found
    end = len(index)  # it may grow meanwhile
    has = (index.column("flags", 0, end) & HAS_TAKEN) != 0
    codes, taken = index.column("api", 0, end), index.column("taken_ns", 0, end)
    for code, key in islice(api_keys(index, 0, end), MOST_APIS):
        times = taken[has & (codes == code)]
        percent, ceiling = asked_percent(len(times)), None
        if percent is not None:
            rank = -(-percent * len(times) // 100) - 1
            times.partition((rank, len(times) - 1))
            ceiling = min(ceiling_of(int(times[rank])), int(times[-1]))
        found.know(key, limit_of(key, len(times), ceiling))
    return found


def limits_of(index: Index, slowness: Slowness) -> NDArray[np.int64]:
    """The bound of each API, by the number of its name: a longer exchange is slow."""
    out = np.full(len(index.texts), NEVER, np.int64)
    for code, key in api_keys(index):
        out[code] = slowness.limit_ns(key)
    return out


def why_nothing_is_slow(index: Index, slowness: Slowness) -> str | None:
    """The explanation if no exchange is slow; None if one is."""
    end = len(index)
    limits, has = limits_of(index, slowness), (index.column("flags", 0, end) & HAS_TAKEN) != 0
    slow = index.column("taken_ns", 0, end) > limits[index.column("api", 0, end)]
    return None if bool(np.any(slow & has)) else slowness.none_slow_message


def api_keys(index: Index, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """The APIs with a key in the rows from one place to another: the numbers of their names, and the keys."""
    for code in np.flatnonzero(np.bincount(index.column("api", start, end))).tolist():
        key = key_of(index.texts[code])
        if key is not None:
            yield code, key


def key_of(api: str) -> int | None:
    """The key of an API by its name in a row; None without a key."""
    if not api or api == SASL_TOKEN:
        return None
    number = api.removeprefix("Unknown(").removesuffix(")")
    return int(number) if number != api else apis.api_key(api)


_NO_KEY = -(1 << 31)
"""Means that an API has no key."""


class FilterColumns(Mapping[str, IndexColumn]):
    """The rows of an index from ``start`` to ``end`` as columns of a filter.

    :param slowness: decides which exchanges are slow.
    """

    def __init__(self, index: Index, start: int, end: int, slowness: Slowness | None = None) -> None:
        self._index = index
        self._slowness = slowness
        self._rows = start, end
        self._flags = index.column("flags", start, end)

    def __getitem__(self, name: str) -> IndexColumn:
        found = _COLUMNS[name](self)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return (name for name in _COLUMNS if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def masks(self, chosen: Filter) -> Masks:
        """The answers of the rows to a filter. They are unknown if a text that it needs is not exact."""
        start, end = self._rows
        found = chosen.masks(self, end - start)
        asked = sum(bit for name, bit in ROUGH.items() if name in chosen.fields)
        rough = self._has(asked)
        if not rough.any():
            return found
        return Masks(found.certain & ~rough, found.possible | rough)

    def texts_asked(self, chosen: Filter) -> int:
        """The number of different texts that a filter must check; each takes a microsecond or a few."""
        asked = {
            field.name if field.name in _COLUMNS else field.source for field in fields_of(chosen.expression)
        }
        found = (np.bincount(self._column(name)) for name in asked.intersection(TEXT_FIELDS))
        return sum(int(np.count_nonzero(counts)) for counts in found)

    def _column(self, name: str) -> NDArray[Any]:
        return self._index.column(name, *self._rows)

    def _has(self, flag: int) -> Mask:
        return np.asarray((self._flags & flag) != 0)

    def _with(self, name: str, flag: int) -> IndexColumn:
        return Numbers(self._column(name), self._has(flag))

    def _from(self, name: str, least: int) -> IndexColumn:
        values = self._column(name)
        return Numbers(values, values >= least)

    def _text(self, name: str) -> IndexColumn:
        return TextColumn(self._column(name), self._index.texts, none=0)

    def _port(self, name: str) -> IndexColumn:
        values = self._index.ports()[self._column(name)]
        return Numbers(values, values >= 0)

    def _error_class(self) -> IndexColumn:
        return TextColumn(self._flags >> GRAVEST & 3, GRADES, 0)

    def _topics(self) -> IndexColumn:
        return TextSets(self._column("topics"), _Lists(self._index.texts))

    def _response_start(self) -> IndexColumn | None:
        """Computed from the request's time and the latency, or without a request from the row's own time."""
        response, latency = self._has(HAS_RESPONSE), self._has(HAS_LATENCY)
        if bool(np.any(response & self._has(HAS_REQUEST) & ~latency)):
            return None
        times = self._column("time_ns") + np.where(latency, self._column("latency_ns"), 0)
        return Numbers(times, response)

    def _api_key(self) -> IndexColumn:
        keys = np.full(len(self._index.texts), _NO_KEY, np.int32)
        for code, key in api_keys(self._index, *self._rows):
            keys[code] = key
        values = keys[self._column("api")]
        return Numbers(values, values != _NO_KEY)

    def _slow(self) -> IndexColumn | None:
        if self._slowness is None:
            return None
        limits = limits_of(self._index, self._slowness)
        taken = self._column("taken_ns") > limits[self._column("api")]
        return np.asarray(taken & self._has(HAS_TAKEN))


class _Lists(Sequence[Sequence[str]]):
    """The topics of a row, by the number of its text with their names."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, code: Any) -> Any:
        text = self._texts[code]
        return text.split(",") if text else ()


_COLUMNS: dict[str, Callable[[FilterColumns], IndexColumn | None]] = {
    "number": lambda columns: columns._column("number"),
    "connection": lambda columns: columns._column("connection"),
    "client": lambda columns: columns._text("client"),
    "broker": lambda columns: columns._text("broker"),
    "client.port": lambda columns: columns._port("client"),
    "broker.port": lambda columns: columns._port("broker"),
    "api_key": FilterColumns._api_key,
    "api": lambda columns: columns._text("api"),
    "api_version": lambda columns: columns._with("api_version", HAS_VERSION),
    "correlation_id": lambda columns: columns._with("correlation_id", HAS_CORRELATION),
    "client_id": lambda columns: columns._text("client_id"),
    "request_packet": lambda columns: columns._from("request_packet", 1),
    "response_packet": lambda columns: columns._from("response_packet", 1),
    "request_time_ns": lambda columns: columns._with("time_ns", HAS_REQUEST),
    "response_start_ns": FilterColumns._response_start,
    "latency_ns": lambda columns: columns._with("latency_ns", HAS_LATENCY),
    "behind_ns": lambda columns: columns._from("behind_ns", 0),
    "request_size": lambda columns: columns._from("request_size", 0),
    "response_size": lambda columns: columns._from("response_size", 0),
    "missing": lambda columns: columns._text("missing"),
    "inferred": lambda columns: KnownColumn(columns._has(IS_INFERRED)),
    "error": lambda columns: columns._text("error"),
    "error_class": FilterColumns._error_class,
    "topics": FilterColumns._topics,
    "faults": lambda columns: KnownColumn(columns._column("faults") > 0),
    "truncated": lambda columns: columns._has(IS_CUT),
    "slow": FilterColumns._slow,
}
"""The filter fields that an index has."""


MOST_TEXTS = 5_000
"""The number of different texts that can be checked while a key waits. The slowest filters take 6 µs for
each."""


def is_long(columns: FilterColumns, chosen: Filter) -> bool:
    """Whether the first stage takes longer than a key may wait."""
    return columns.texts_asked(chosen) > MOST_TEXTS


class Stage:
    """A first stage that runs in a thread. If it is not needed any more, the thread is left alone."""

    def __init__(self, columns: FilterColumns, chosen: Filter, end: int) -> None:
        self.end = end
        """The end of the rows that are checked."""
        self._columns, self._chosen = columns, chosen
        self._found: Masks | None = None
        self._failure: Exception | None = None
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._found = self._columns.masks(self._chosen)
        except Exception as error:  # any error is raised again where the answer is needed
            self._failure = error

    def masks(self) -> Masks | None:
        """The answer; None if it is not ready."""
        if self._failure is not None:
            raise self._failure
        return self._found
