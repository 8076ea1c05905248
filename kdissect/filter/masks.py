"""A filter over the columns of an index: numpy masks instead of a test of every exchange.

An index has some of the fields as columns, under the fields' own names:

* :class:`Numbers`, or a bare array: one number (or truth value) a row, and which rows have one;
* :class:`TextColumn`: one text a row, as its index in a list of different texts, which columns may share;
* :class:`TextLists`: any number of texts a row;
* :class:`TextSets`: the same, for rows that have the same lists again and again;
* :class:`KnownColumn`: only whether there is a value.

Tests that the columns cannot answer stay open. So a filter gives two masks: ``certain``, the rows that it
shows whatever the other fields hold, and ``possible``, the rows that it may show. Only the rows in between
are tested with :meth:`Filter.matches`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kdissect.filter.checks import Check
from kdissect.filter.expression import And, Expression, Leaf, Not, Pair
from kdissect.filter.field import FilterField
from kdissect.filter.literals import Interval, day_length, local_offset, quarter_length, time_of_day

Mask = NDArray[np.bool_]

_FEW = 8
"""With at most this many intervals, one comparison for each is faster than a binary search."""
_LONG_SPAN = 100_000
"""The longest table of local offsets, in quarters of an hour: almost three years."""


class Numbers(NamedTuple):
    """A column of numbers."""

    values: NDArray[Any]
    """Integers or truth values. In rows without a value, any number may stand."""
    there: Mask | None = None
    """Which rows have a value; None: all."""


class TextColumn(NamedTuple):
    """A column of text."""

    codes: NDArray[Any]
    """The index in ``words``."""
    words: Sequence[str]
    none: int = -1
    """The code of rows without text."""


class TextLists(NamedTuple):
    """A column of lists of text: row ``i`` has ``codes[starts[i]:starts[i + 1]]``."""

    codes: NDArray[Any]
    starts: NDArray[Any]
    """Has one element more than there are rows."""
    words: Sequence[str]


class TextSets(NamedTuple):
    """A column of lists of text; equal lists are stored once."""

    codes: NDArray[Any]
    """The index in ``lists``."""
    lists: Sequence[Sequence[str]]


class KnownColumn(NamedTuple):
    """A column that shows only whether there is a value."""

    there: Mask


IndexColumn = NDArray[Any] | Numbers | TextColumn | TextLists | TextSets | KnownColumn


class Masks(NamedTuple):
    """The result of testing the columns."""

    certain: Mask
    """Rows that are shown."""
    possible: Mask
    """Rows that are shown or may be; includes all rows of ``certain``."""

    @property
    def open(self) -> NDArray[np.intp]:
        """The rows for which the columns leave the answer open."""
        return np.flatnonzero(self.possible & ~self.certain)


def masks(expression: Expression, columns: Mapping[str, IndexColumn], rows: int) -> Masks:
    """Test the ``columns`` of an index that has ``rows`` rows."""
    if isinstance(expression, Leaf):
        return _leaf(expression, columns, rows)
    if isinstance(expression, Pair):
        return _pair(expression, columns, rows)
    if isinstance(expression, Not):
        part = masks(expression.part, columns, rows)
        if part.certain is part.possible:
            return _constant_masks(~part.certain)
        return Masks(~part.possible, ~part.certain)
    parts = [masks(part, columns, rows) for part in expression.parts]
    join = np.logical_and if isinstance(expression, And) else np.logical_or
    if all(part.certain is part.possible for part in parts):
        return _constant_masks(join.reduce([part.certain for part in parts]))
    return Masks(
        join.reduce([part.certain for part in parts]), join.reduce([part.possible for part in parts])
    )


def _constant_masks(mask: Mask) -> Masks:
    """The masks if the answer is known for every row."""
    return Masks(mask, mask)


def _leaf(leaf: Leaf, columns: Mapping[str, IndexColumn], rows: int) -> Masks:
    field, check = leaf
    column = columns.get(field.name)
    convert = None
    if column is None and field.source:
        column, convert = columns.get(field.source), field.derive
    if column is None:
        return _unknown(rows)
    if isinstance(column, KnownColumn):
        return (
            _constant_masks(column.there) if check.presence else Masks(np.zeros(rows, np.bool_), column.there)
        )
    if isinstance(column, TextColumn):
        return _constant_masks(_words(column.codes, column.words, check, convert, column.none)[column.codes])
    if isinstance(column, TextLists):
        return _constant_masks(
            _lists(column, _words(column.codes, column.words, check, convert), check.every)
        )
    if isinstance(column, TextSets):
        return _constant_masks(_sets(column, check)[column.codes])
    values, there = column if isinstance(column, Numbers) else (column, None)
    mask = _numbers(values, there, field, check)
    return _constant_masks(mask if there is None else mask & there)


def _unknown(rows: int) -> Masks:
    """The masks if the columns leave every row open."""
    return Masks(np.zeros(rows, np.bool_), np.ones(rows, np.bool_))


_COMPARED: dict[str, Callable[[NDArray[Any], NDArray[Any]], Mask]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def _pair(pair: Pair, columns: Mapping[str, IndexColumn], rows: int) -> Masks:
    """Compare two columns of numbers that have one unit. Other pairs stay open."""
    there: Mask | None = None
    sides = []
    for field in (pair.left, pair.right):
        column = columns.get(field.name)
        values = column.values if isinstance(column, Numbers) else column
        # numpy would compare uint64 with int64 as floats, which are not exact.
        if field.many or pair.comparison.scaled or not isinstance(values, np.ndarray):
            return _unknown(rows)
        if values.dtype == np.uint64:
            return _unknown(rows)
        if isinstance(column, Numbers) and column.there is not None:
            there = column.there if there is None else there & column.there
        sides.append(values)
    mask = _COMPARED[pair.comparison.operator](*sides)
    return _constant_masks(mask if there is None else mask & there)


def _words(
    codes: NDArray[Any],
    words: Sequence[str],
    check: Check,
    convert: Callable[[Any], Any] | None,
    none: int = -1,
) -> Mask:
    """For each word, whether it occurs and passes the check. The one extra element is False; code -1 selects
    it."""
    hit, occurs = np.zeros((2, len(words) + 1), np.bool_)
    occurs[codes] = True
    for code in np.flatnonzero(occurs[:-1]).tolist():
        if code != none:
            value = words[code] if convert is None else convert(words[code])
            hit[code] = value is not None and check.one(value)
    return hit


def _sets(column: TextSets, check: Check) -> Mask:
    """For each list, whether it occurs and passes the check."""
    hit, occurs = np.zeros((2, len(column.lists)), np.bool_)
    occurs[column.codes] = True
    for code in np.flatnonzero(occurs).tolist():
        texts = column.lists[code]
        hit[code] = bool(texts) and (all if check.every else any)(map(check.one, texts))
    return hit


def _lists(column: TextLists, hit: Mask, every: bool) -> Mask:
    counts = np.zeros(len(column.codes) + 1, np.intp)
    np.cumsum(hit[column.codes], out=counts[1:])
    hits = counts[column.starts[1:]] - counts[column.starts[:-1]]
    if not every:
        return np.asarray(hits > 0)
    return np.asarray((hits > 0) & (hits == np.diff(column.starts)))


def _numbers(values: NDArray[Any], there: Mask | None, field: FilterField, check: Check) -> Mask:
    if check.presence:
        return np.ones(len(values), np.bool_)
    if values.dtype == np.bool_:
        return np.where(values, check.one(True), check.one(False))
    if check.intervals is None:
        raise TypeError(f"a column of numbers cannot be {field.name}, which is {field.kind.value}")
    if check.day_unit:
        values = _times_of_day(values, there, check.day_unit)
    return _in_intervals(values, check.intervals)


def _in_intervals(values: NDArray[Any], intervals: Sequence[Interval]) -> Mask:
    bounds = np.iinfo(values.dtype)
    inside = [
        (max(low, bounds.min), min(high, bounds.max))
        for low, high in intervals
        if high >= bounds.min and low <= bounds.max
    ]
    if len(inside) > _FEW:
        lows, highs = (np.array(ends, values.dtype) for ends in zip(*inside, strict=True))
        at = np.searchsorted(lows, values, "right") - 1
        return np.asarray((at >= 0) & (values <= highs[at]))
    mask = np.zeros(len(values), np.bool_)
    for low, high in inside:
        if low == high:
            mask |= values == low
        elif low == bounds.min:
            mask |= values <= high
        elif high == bounds.max:
            mask |= values >= low
        else:
            mask |= (values >= low) & (values <= high)
    return mask


def _times_of_day(values: NDArray[Any], there: Mask | None, unit: str) -> NDArray[Any]:
    """:func:`~kdissect.filter.literals.time_of_day` of an array."""
    values = values.astype(np.int64, copy=False)
    if there is not None:
        values = np.where(there, values, 0)
    if not len(values):
        return values
    quarters = values // quarter_length(unit)
    first, last = int(quarters.min()), int(quarters.max())
    if there is not None and not there.all():
        known = quarters[there]
        first, last = (int(known.min()), int(known.max())) if len(known) else (0, 0)
        quarters = np.clip(quarters, first, last)
    if last - first > _LONG_SPAN:
        return np.fromiter((time_of_day(int(value), unit) for value in values), np.int64, len(values))
    offsets = np.array([local_offset(quarter) for quarter in range(first, last + 1)], np.int64)
    day = day_length(unit)
    per_second = day // 86_400
    return np.asarray((values % day + offsets[quarters - first] * per_second) % day)
