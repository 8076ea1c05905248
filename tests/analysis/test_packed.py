"""Rows of folds arrive in another process as they were, and in fewer bytes."""

from __future__ import annotations

import importlib
import pickle
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, NamedTuple

import kdissect.analysis
from kdissect.analysis.counters import Span
from kdissect.analysis.packed import packed


@packed
@dataclass(slots=True)
class Row:
    count: int = 0
    span: Span = field(default_factory=Span)
    names: dict[str, int] = field(default_factory=dict)


@packed
@dataclass(slots=True)
class Derived(Row):
    more: str = ""


@packed
@dataclass(slots=True)
class Single:
    values: list[int] = field(default_factory=list)


@packed
class Place(NamedTuple):
    topic: str
    partition: int


@dataclass(slots=True)
class Loose:
    count: int = 0
    span: Span = field(default_factory=Span)
    names: dict[str, int] = field(default_factory=dict)


def sent(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))


def test_values_and_classes_arrive() -> None:
    for value in (Row(3, Span(1, 2, 3, 4), {"a": 1}), Derived(1, Span(), {}, "x"), Single([1, 2])):
        assert (type(sent(value)), sent(value)) == (type(value), value)
    assert (type(sent(Place("t", 1))), sent(Place("t", 1))) == (Place, Place("t", 1))


def test_what_two_rows_share_is_one_object_there_too() -> None:
    span = Span(1, 2, 3, 4)
    one, other = sent([Row(1, span), Row(2, span)])
    assert one.span is other.span


def test_packed_ones_take_fewer_bytes() -> None:
    tight, loose = ([kind(number) for number in range(100)] for kind in (Row, Loose))
    assert len(pickle.dumps(tight)) < len(pickle.dumps(loose)) * 0.9


def slotted() -> Iterator[type]:
    """The dataclasses of folds that have slots: what folds keep many of."""
    for module in pkgutil.iter_modules(kdissect.analysis.__path__, "kdissect.analysis."):
        for value in vars(importlib.import_module(module.name)).values():
            if not isinstance(value, type) or value.__module__ != module.name:
                continue
            if is_dataclass(value) and "__slots__" in vars(value):
                yield value


def test_every_dataclass_with_slots_is_packed_and_made_of_all_its_fields() -> None:
    found = list(slotted())
    assert len(found) > 40
    for kind in found:
        assert "__reduce__" in vars(kind), kind
        assert all(each.init for each in fields(kind)), kind
