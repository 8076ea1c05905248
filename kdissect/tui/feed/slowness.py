"""The index → what is slow, as the command line has it (:mod:`kdissect.analysis.slow`)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from kdissect.analysis.histogram import ceiling_of
from kdissect.analysis.slow import MOST_APIS, Slowness, asked_percent, limit_of
from kdissect.message import SASL_TOKEN
from kdissect.protocol import apis
from kdissect.tui.feed.index import Index
from kdissect.tui.feed.rows import HAS_TAKEN

NEVER = int(np.iinfo(np.int64).max)


def slowness_of(index: Index, slow_ns: int | None = None) -> Slowness:
    """What is slow among the exchanges so far.

    :param slow_ns: a time that the user names.
    """
    found = Slowness(slow_ns)
    if slow_ns is not None:
        return found
    end = len(index)  # which may grow meanwhile
    has = (index.column("flags", 0, end) & HAS_TAKEN) != 0
    codes, taken = index.column("api", 0, end), index.column("taken_ns", 0, end)
    for code, key in islice(api_keys(index, 0, end), MOST_APIS):
        times = taken[has & (codes == code)]
        percent, ceiling = asked_percent(len(times)), None
        if percent is not None:
            rank = -(-percent * len(times) // 100) - 1
            times.partition((rank, len(times) - 1))
            ceiling = min(ceiling_of(int(times[rank])), int(times[-1]))
        found.know(key, limit_of(len(times), ceiling))
    return found


def limits_of(index: Index, slowness: Slowness) -> NDArray[np.int64]:
    """By the number of an API's name: what an exchange of it takes no longer unless it is slow."""
    out = np.full(len(index.texts), NEVER, np.int64)
    for code, key in api_keys(index):
        out[code] = slowness.limit_ns(key)
    return out


def why_nothing_is_slow(index: Index, slowness: Slowness) -> str | None:
    """What is to be said where none of all exchanges is slow; None where one is."""
    end = len(index)
    limits, has = limits_of(index, slowness), (index.column("flags", 0, end) & HAS_TAKEN) != 0
    slow = index.column("taken_ns", 0, end) > limits[index.column("api", 0, end)]
    return None if bool(np.any(slow & has)) else slowness.why_nothing


def api_keys(index: Index, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """The APIs of the rows from one place to another that have a key: the numbers of their names, and the
    keys."""
    for code in np.flatnonzero(np.bincount(index.column("api", start, end))).tolist():
        key = key_of(index.texts[code])
        if key is not None:
            yield code, key


def key_of(api: str) -> int | None:
    """The key of an API by the name that stands in a row; None for what has none."""
    if not api or api == SASL_TOKEN:
        return None
    number = api.removeprefix("Unknown(").removesuffix(")")
    return int(number) if number != api else apis.api_key(api)
