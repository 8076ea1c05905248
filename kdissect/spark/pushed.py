"""The filters of a query that its scan gets: rows that they leave out are not made.

The optimizer's rule (:mod:`kdissect.spark.scans`) writes them into the schema of one scan, as JSON: a list of
filters in Spark's form, such as ``["Or", ["EqualTo", "api", "Fetch"], ["IsNull", "error"]]``. A row needs all
of them. Spark applies its own filters afterwards, so a filter that is not here costs time only.

A filter has three results, as in SQL: true, false, and None for unknown. A row is made for true only.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from kdissect.lazy import Later
from kdissect.present.arrow import arrow_value
from kdissect.present.columns import Source, Table
from kdissect.present.options import Options
from kdissect.present.tables import readers
from kdissect.spark.tables import TABLES

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType
else:
    pa = Later("pyarrow")

Row = Sequence[Any]
Test = Callable[[Row], bool | None]

_KEY = "kdissect.filters"
"""The key in the metadata of the first column of a scan."""


class Pushed:
    """The filters of a scan.

    :param filters: as this module's docstring describes them.
    """

    def __init__(self, filters: Sequence[Sequence[Any]] = ()) -> None:
        self._filters = list(filters)

    @classmethod
    def of(cls, schema: StructType) -> Pushed:
        """The filters in the schema of a scan."""
        found = [field.metadata[_KEY] for field in schema.fields if _KEY in field.metadata]
        return cls(json.loads(found[0]) if found else ())

    def __bool__(self) -> bool:
        return bool(self._filters)

    def may_have(self, name: str, value: Any) -> bool:
        """Whether rows may pass that all have this value in this column."""
        alone = [each for each in self._filters if _names(each) == {name}]
        return all(_compiled(each, {name: 0})((value,)) for each in alone)

    def of_sources(self, table: Table, options: Options) -> Callable[[Source], bool]:
        """Whether the row of a source passes.

        :param table: the table whose rows are made.
        """
        names, tests = self._ready()
        needed = table.select(names)
        ways = list(zip(readers(needed, options), needed.columns, strict=True))

        def passes(source: Source) -> bool:
            row = [arrow_value(column.type, read(source, options)) for read, column in ways]
            return all(test(row) for test in tests)

        return passes

    def of_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch that pass."""
        names, tests = self._ready()
        rows = zip(*(batch.column(name).to_pylist() for name in names), strict=True)
        return batch.filter(pa.array([all(test(row) for test in tests) for row in rows], pa.bool_()))

    def _ready(self) -> tuple[list[str], list[Test]]:
        """The columns that the filters need, and the filters for rows of these columns."""
        names = sorted(set().union(*map(_names, self._filters)))
        at = {name: place for place, name in enumerate(names)}
        return names, [_compiled(each, at) for each in self._filters]


ALL = Pushed()
"""No filter: all rows pass."""


def _names(each: Sequence[Any]) -> set[str]:
    if each[0] in _OF_FILTERS:
        return set().union(*map(_names, each[1:]))
    return {each[1]}


def _compiled(each: Sequence[Any], at: Mapping[str, int]) -> Test:
    kind, *parts = each
    if kind in _OF_FILTERS:
        return partial(_OF_FILTERS[kind], *(_compiled(part, at) for part in parts))
    return partial(_OF_COLUMNS[kind], at[parts[0]], *parts[1:])


def _and(left: Test, right: Test, row: Row) -> bool | None:
    one = left(row)
    if one is False:
        return False
    other = right(row)
    return other if one or other is False else None


def _or(left: Test, right: Test, row: Row) -> bool | None:
    one = left(row)
    if one:
        return True
    other = right(row)
    return other if one is False or other else None


def _not(inner: Test, row: Row) -> bool | None:
    found = inner(row)
    return None if found is None else not found


def _compared(how: Callable[[Any, Any], bool], at: int, wanted: Any, row: Row) -> bool | None:
    value = row[at]
    return None if value is None or wanted is None else how(value, wanted)


def _same(at: int, wanted: Any, row: Row) -> bool:
    value: Any = row[at]
    return bool(value == wanted)


def _in(at: int, wanted: Sequence[Any], row: Row) -> bool | None:
    value = row[at]
    if value is None:
        return None
    return True if value in wanted else None if None in wanted else False


def _is_null(at: int, row: Row) -> bool:
    return row[at] is None


def _is_not_null(at: int, row: Row) -> bool:
    return row[at] is not None


_OF_FILTERS: dict[str, Callable[..., bool | None]] = {"And": _and, "Or": _or, "Not": _not}
_OF_COLUMNS: dict[str, Callable[..., bool | None]] = {
    "EqualTo": partial(_compared, operator.eq),
    "EqualNullSafe": _same,
    "LessThan": partial(_compared, operator.lt),
    "LessThanOrEqual": partial(_compared, operator.le),
    "GreaterThan": partial(_compared, operator.gt),
    "GreaterThanOrEqual": partial(_compared, operator.ge),
    "In": _in,
    "IsNull": _is_null,
    "IsNotNull": _is_not_null,
    "StringStartsWith": partial(_compared, str.startswith),
    "StringEndsWith": partial(_compared, str.endswith),
    "StringContains": partial(_compared, operator.contains),
}
"""Spark's names of the filters (``org.apache.spark.sql.sources``). Texts compare by code points here and by
bytes of UTF-8 in Spark, which is the same order."""

KNOWN = (*_OF_FILTERS, *_OF_COLUMNS)
"""The filters that are understood."""

BODIES = {each.name for table in TABLES.values() for each in table.columns if each.type == "json"}
"""Columns whose values take most of a row's time. A filter on them would make them twice, so Spark applies
it."""
