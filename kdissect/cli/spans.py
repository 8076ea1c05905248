"""Spans of time as values of options: ``--timeout 4s``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kdissect.durations import DURATIONS, duration_ns

if TYPE_CHECKING:
    Numbers = click.ParamType[float]
else:
    Numbers = click.ParamType  # older releases have no generic class


class SpanOption(Numbers):
    """A span of time, as a number of a unit.

    :param unit: the unit of the number, and of values without a unit.
    :param whole: whether it is a whole number.
    """

    name = "time"

    def __init__(self, unit: str, least: float, most: float | None = None, whole: bool = False) -> None:
        self._unit = unit
        self._least = least
        self._most = most
        self._whole = whole

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):  # the default
            return value
        try:
            found = duration_ns(value, self._unit) / DURATIONS[self._unit]
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)
        if found < self._least or (self._most is not None and found > self._most):
            above = "" if self._most is None else f" and at most {self._most:g}{self._unit}"
            self.fail(f"{value} must be at least {self._least:g}{self._unit}{above}.", param, ctx)
        if self._whole and found != int(found):
            self.fail(f"{value} is not a whole number of {self._unit}.", param, ctx)
        return int(found) if self._whole else found
