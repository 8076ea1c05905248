"""The tables of the statistics, made from their declarations in :mod:`kdissect.analysis`.
:mod:`kdissect.present.statistics_text` prints them for people."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from kdissect.analysis.catalogue import STATISTICS as FOLDS
from kdissect.analysis.catalogue import statistic
from kdissect.analysis.declared import Declared
from kdissect.analysis.fold import Statistic
from kdissect.lazy import Made
from kdissect.limits import DEFAULTS, Limits
from kdissect.present.columns import Column, Table
from kdissect.present.nearest import nearest
from kdissect.present.options import Options
from kdissect.present.sanitise import valid_text


def _value(name: str, row: dict[str, Any], _: Options) -> Any:
    return row[name]


def _text(name: str, row: dict[str, Any], _: Options) -> str | None:
    value = row[name]
    return None if value is None else valid_text(value)


def _texts(name: str, row: dict[str, Any], _: Options) -> list[str] | None:
    value = row[name]
    return None if value is None else [valid_text(each) for each in value]


_BY_TYPE = {"text": _text, "texts": _texts}


def _column(declared: Declared) -> Column:
    name, kind, meaning, unit, rare, kept, _, apart = declared
    value = partial(_BY_TYPE.get(kind, _value), name)
    return Column(name, kind, meaning, value, unit=unit, rare=rare, kept=kept, key=name, apart=apart)


def table_of(statistic: type[Statistic]) -> Table:
    """The table that a statistic declares."""
    return Table(statistic.name, tuple(map(_column, statistic.columns)))


STATISTICS: Mapping[str, Table] = Made(FOLDS, lambda name: table_of(FOLDS[name]))
"""The tables of ``stats``, by their names for ``-z``."""


def statistic_of(text: str, limits: Limits = DEFAULTS) -> Statistic:
    """The statistic for a value of ``-z``.

    :raises LookupError: no statistic has that name; the text names the nearest.
    :raises ValueError: the rest after the name is not understood; the text lists what is allowed.
    """
    try:
        return statistic(text, limits)[1]
    except LookupError:
        if text.partition(",")[0].strip() == "findings":
            raise LookupError(f"{text}: kdissect explain prints findings, without a grouping") from None
        hint = nearest(text.partition(",")[0], STATISTICS) or f"; there are {', '.join(STATISTICS)}"
        raise LookupError(f"{text}: there is no such table{hint}") from None


def titled(name: str, table: Table) -> Table:
    """A copy of a table whose rows have the table's name, for output with several tables."""
    return Table(name, (Column("table", "text", "the table", lambda _row, _options: name), *table.columns))
