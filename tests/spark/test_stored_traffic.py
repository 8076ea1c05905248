"""Rows of the table ``exchanges``, counted as exchanges are."""

from __future__ import annotations

import pickle

import pytest

from kdissect.limits import DEFAULTS
from kdissect.spark.stored_traffic import StoredTraffic
from tests.spark.stored_rows import row

ID = "f4kCV7NlQR6wPyNNKcqk3g"


@pytest.mark.parametrize(("by", "column"), [(("topic",), "topic"), (("client_id", "topics"), "topics")])
def test_a_name_that_a_later_part_tells_names_the_rows_of_all(by: tuple[str, ...], column: str) -> None:
    first, later = StoredTraffic(by=by), StoredTraffic(by=by)
    first.count(row(topics=[ID]))
    first.count(row(topics=["other"]))
    later.count(row(topics=["orders"], number=3))
    later.learn(ID, "orders")
    first.merge(pickle.loads(pickle.dumps(later)))
    for _ in range(2):  # to ask again does no harm
        assert {each[column]: each["exchanges"] for each in first.result()} == {"orders": 2, "other": 1}


def test_rows_have_no_order_so_the_first_name_in_the_alphabet_counts() -> None:
    for names in (["a", "b"], ["b", "a"]):
        fold = StoredTraffic(by=("topics",))
        fold.count(row(topics=[ID, "z"]))
        for name in names:
            fold.learn(ID, name)
        assert [each["topics"] for each in fold.result()] == ["a, z"]


def test_names_are_bounded() -> None:
    fold = StoredTraffic(DEFAULTS._replace(rows=1), ("topic",))
    fold.count(row(topics=[ID]))
    fold.learn("another", "name")
    fold.learn(ID, "orders")
    assert [each["topic"] for each in fold.result()] == [ID]
