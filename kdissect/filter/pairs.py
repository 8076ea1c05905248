"""Comparisons of two fields: ``request_size > response_size``, ``record.offset >= highWatermark``.

Each side may have many values. ``==``, ``<``, ``<=``, ``>`` and ``>=`` are true if they hold for any value of
one side and any value of the other. ``!=`` is true if both sides are present and have no value in common.
``===`` is true if all values are the same, ``!==`` if any two differ. ``any`` and ``all`` before a comparison
override this. No comparison looks at every pair: an exchange may hold a million values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import isnan
from typing import Any, NamedTuple

from kdissect.filter.addresses import key_of
from kdissect.filter.checks import as_bytes
from kdissect.filter.field import FieldKind, FilterField
from kdissect.filter.values import code_of

Values = Sequence[Any]
_GROUPS = ((FieldKind.NUMBER, FieldKind.FLOAT), (FieldKind.TEXT, FieldKind.BYTES))
"""Kinds that can be compared with each other. Any other kind can be compared only with itself."""
_SCALES = {"ns": 1, "ms": 1_000_000}
"""The nanoseconds of each unit."""
OPERATORS = ("==", "===", "!=", "!==", "<", "<=", ">", ">=")


class PairComparison(NamedTuple):
    """How values of two fields are compared."""

    operator: str
    every: bool
    """Whether the comparison must hold for every value; else for any."""
    left: Callable[[Values], Values]
    """Converts the values of a side for comparing, and drops values that cannot be compared."""
    right: Callable[[Values], Values]
    scaled: bool
    """Whether the two units differ."""

    def holds(self, ours: Values, theirs: Values) -> bool:
        """Whether the comparison is true of these values."""
        return bool(ours) and bool(theirs) and _HOLDS[self.operator, self.every](ours, theirs)


def _alike(ours: Values, theirs: Values) -> bool:
    return len({*ours, *theirs}) == 1


_HOLDS: dict[tuple[str, bool], Callable[[Values, Values], bool]] = {
    ("==", False): lambda ours, theirs: not set(ours).isdisjoint(theirs),
    ("==", True): _alike,
    ("!=", False): lambda ours, theirs: not _alike(ours, theirs),
    ("!=", True): lambda ours, theirs: set(ours).isdisjoint(theirs),
    ("<", False): lambda ours, theirs: bool(min(ours) < max(theirs)),
    ("<", True): lambda ours, theirs: bool(max(ours) < min(theirs)),
    ("<=", False): lambda ours, theirs: bool(min(ours) <= max(theirs)),
    ("<=", True): lambda ours, theirs: bool(max(ours) <= min(theirs)),
    (">", False): lambda ours, theirs: bool(max(ours) > min(theirs)),
    (">", True): lambda ours, theirs: bool(min(ours) > max(theirs)),
    (">=", False): lambda ours, theirs: bool(max(ours) >= min(theirs)),
    (">=", True): lambda ours, theirs: bool(min(ours) >= max(theirs)),
}
_MEANING = {"===": ("==", True), "!==": ("!=", False), "!=": ("!=", True)}


def refusal(left: FilterField, right: FilterField) -> str | None:
    """Why two fields cannot be compared; None if they can."""
    if left.kind is not right.kind and not any(left.kind in each and right.kind in each for each in _GROUPS):
        return f"{left.name} is {left.kind.value}, and {right.name} is {right.kind.value}"
    if "bytes" in (left.unit, right.unit) and (left.unit in _SCALES or right.unit in _SCALES):
        size, time = (left, right) if left.unit == "bytes" else (right, left)
        return f"{size.name} is a size, and {time.name} is a time"
    return None


def comparison(left: FilterField, operator: str, right: FilterField, every: bool | None) -> PairComparison:
    """The comparison of two fields that can be compared."""
    plain, of_all = _MEANING.get(operator, (operator, False))
    scaled = left.unit != right.unit and left.unit in _SCALES and right.unit in _SCALES
    hosts = any(field.name.endswith((".ip", ".addr")) for field in (left, right))
    ours, theirs = (
        partial(_comparable, field.kind, _SCALES[field.unit] if scaled else 1, hosts)
        for field in (left, right)
    )
    return PairComparison(plain, of_all if every is None else every, ours, theirs, scaled)


def _comparable(kind: FieldKind, scale: int, hosts: bool, values: Values) -> Values:
    """Convert values of this kind for comparing.

    :param hosts: whether to ignore the ports of addresses.
    """
    if kind in (FieldKind.TEXT, FieldKind.BYTES):
        return [value if isinstance(value, bytes) else as_bytes(value) for value in values]
    if kind is FieldKind.ERROR:
        return [code for value in values if (code := code_of(value)) is not None]
    if kind is FieldKind.ADDRESS:
        keys = [key for value in values if (key := key_of(value)) is not None]
        return [key[:2] for key in keys] if hosts else keys
    if kind is FieldKind.FLOAT:
        return [value for value in values if not isnan(value)]
    return values if scale == 1 else [value * scale for value in values]
