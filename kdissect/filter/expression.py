"""The meaning of a filter: tests of fields, joined by and, or and not; and the function that evaluates
them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kdissect.filter.checks import Check
from kdissect.filter.field import FilterField
from kdissect.filter.pairs import PairComparison
from kdissect.filter.row import Row

Answer = Callable[[Row], bool]


class Leaf(NamedTuple):
    """One test of one field."""

    field: FilterField
    check: Check


class Pair(NamedTuple):
    """Two fields, compared."""

    left: FilterField
    right: FilterField
    comparison: PairComparison


class And(NamedTuple):
    parts: tuple[Expression, ...]


class Or(NamedTuple):
    parts: tuple[Expression, ...]


class Not(NamedTuple):
    part: Expression


Expression = Leaf | Pair | And | Or | Not


def fields_of(expression: Expression) -> Iterator[FilterField]:
    """The fields of all tests in an expression."""
    if isinstance(expression, Leaf):
        yield expression.field
    elif isinstance(expression, Pair):
        yield expression.left
        yield expression.right
    elif isinstance(expression, Not):
        yield from fields_of(expression.part)
    else:
        for part in expression.parts:
            yield from fields_of(part)


def asks_each_record(expression: Expression, *, denied: bool = False) -> bool:
    """Whether one record may match although its exchange does not.

    ``not record.key == x`` is true of an exchange if none of its records has the key. It is true of a record
    if that record has another key. ``not record.key != x`` is true of a record without a key, but not of an
    exchange that has other keys too.

    :param denied: whether the expression is negated.
    """
    if isinstance(expression, Not):
        return asks_each_record(expression.part, denied=not denied)
    if isinstance(expression, And | Or):
        return any(asks_each_record(part, denied=denied) for part in expression.parts)
    of_records = any(field.name.startswith(_OF_RECORDS) for field in fields_of(expression))
    return of_records and (isinstance(expression, Pair) or denied or expression.check.every)


_OF_RECORDS = "record."


def of_exchange(expression: Expression) -> Expression | None:
    """An expression that an exchange matches if one of its records matches this one; None if no such
    expression is known."""
    if not asks_each_record(expression):
        return expression
    if not isinstance(expression, And):
        return None
    parts = tuple(found for part in expression.parts if (found := of_exchange(part)) is not None)
    return And(parts) if parts else None


def cost(expression: Expression) -> int:
    """The highest cost of its fields."""
    return max(field.cost for field in fields_of(expression))


def compiled(expression: Expression) -> Answer:
    """The function that evaluates an expression. Cheap tests come first: bodies are decoded and records
    unpacked only if the columns leave the answer open."""
    if isinstance(expression, Leaf):
        return _leaf(expression)
    if isinstance(expression, Pair):
        return _pair(expression)
    if isinstance(expression, Not):
        part = compiled(expression.part)
        return lambda row: not part(row)
    parts = tuple(compiled(part) for part in sorted(expression.parts, key=cost))
    return _all(parts) if isinstance(expression, And) else _any(parts)


def _all(parts: tuple[Answer, ...]) -> Answer:
    if len(parts) == 2:
        first, second = parts
        return lambda row: first(row) and second(row)
    return lambda row: all(part(row) for part in parts)


def _any(parts: tuple[Answer, ...]) -> Answer:
    if len(parts) == 2:
        first, second = parts
        return lambda row: first(row) or second(row)
    return lambda row: any(part(row) for part in parts)


def _leaf(leaf: Leaf) -> Answer:
    read, one = leaf.field.read, leaf.check.one
    if not leaf.field.many:

        def single(row: Row) -> bool:
            value = read(row)
            return value is not None and one(value)

        return single
    if leaf.check.every:

        def every(row: Row) -> bool:
            values = read(row)
            return bool(values) and all(map(one, values))

        return every
    return lambda row: any(map(one, read(row)))


def _pair(pair: Pair) -> Answer:
    left, right, comparison = pair

    def answer(row: Row) -> bool:
        ours = comparison.left(left.values(row))
        return bool(ours) and comparison.holds(ours, comparison.right(right.values(row)))

    return answer
