"""Filters of a query that the scan gets: three results, as in SQL."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from kdissect.present.columns import Table, dict_column
from kdissect.present.options import PLAIN
from kdissect.spark.pushed import ALL, BODIES, KNOWN, Pushed

TABLE = Table("rows", (dict_column("text", "text", "a text"), dict_column("count", "int64", "a number")))
SHOP = {"text": "shop", "count": 7}
NULLS = {"text": None, "count": None}


def passes(filters: list[Any], row: dict[str, Any]) -> bool:
    """Whether a row passes, by both ways to ask."""
    pushed = Pushed(filters)
    schema = pa.schema([("text", pa.string()), ("count", pa.int64())])
    left = pushed.of_batch(pa.RecordBatch.from_pylist([row, row], schema))
    found = pushed.of_sources(TABLE, PLAIN)(row)
    assert left.to_pylist() == ([row, row] if found else [])
    return found


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("EqualTo", {"shop": True, "shot": False, None: False}),
        ("EqualNullSafe", {"shop": True, "shot": False, None: False}),
        ("LessThan", {"shoq": True, "shop": False, None: False}),
        ("LessThanOrEqual", {"shop": True, "sho": False}),
        ("GreaterThan", {"sho": True, "shop": False}),
        ("GreaterThanOrEqual", {"shop": True, "shoq": False}),
        ("StringStartsWith", {"sh": True, "": True, "ho": False, None: False}),
        ("StringEndsWith", {"op": True, "ho": False}),
        ("StringContains", {"ho": True, "x": False}),
    ],
)
def test_a_value_is_compared(kind: str, values: dict[str | None, bool]) -> None:
    for wanted, expected in values.items():
        assert passes([[kind, "text", wanted]], SHOP) is expected
        if kind != "EqualNullSafe":
            opposite = not expected and wanted is not None
            assert passes([["Not", [kind, "text", wanted]]], SHOP) is opposite
            assert not passes([[kind, "text", wanted]], NULLS)
            assert not passes([["Not", [kind, "text", wanted]]], NULLS)


def test_null_equals_null_only_if_the_filter_says_so() -> None:
    assert passes([["EqualNullSafe", "text", None]], NULLS)
    assert not passes([["EqualNullSafe", "text", "shop"]], NULLS)
    assert passes([["Not", ["EqualNullSafe", "text", "shop"]]], NULLS)
    for row in (NULLS, SHOP):
        assert passes([["IsNull", "text"]], row) is (row is NULLS)
        assert passes([["IsNotNull", "text"]], row) is (row is SHOP)


def test_a_list_with_null_is_never_false() -> None:
    for values, row, inside, outside in (
        ([6, 7], SHOP, True, False),
        ([6], SHOP, False, True),
        ([6, None], SHOP, False, False),
        ([7, None], SHOP, True, False),
        ([7, None], NULLS, False, False),
    ):
        assert passes([["In", "count", values]], row) is inside
        assert passes([["Not", ["In", "count", values]]], row) is outside


def test_and_and_or_follow_three_valued_logic() -> None:
    results = {
        True: ["EqualTo", "count", 7],
        False: ["EqualTo", "count", 8],
        None: ["EqualTo", "count", None],
    }
    for one, other in itertools.product(results, results):
        both = False if False in (one, other) else None if None in (one, other) else True
        either = True if True in (one, other) else None if None in (one, other) else False
        for kind, expected in (("And", both), ("Or", either)):
            given = [kind, results[one], results[other]]
            assert passes([given], SHOP) is (expected is True)
            assert passes([["Not", given]], SHOP) is (expected is False)


def test_a_row_needs_all_filters() -> None:
    assert passes([["EqualTo", "text", "shop"], ["GreaterThan", "count", 6]], SHOP)
    assert not passes([["EqualTo", "text", "shop"], ["GreaterThan", "count", 7]], SHOP)


def test_texts_have_the_order_of_their_bytes() -> None:
    """Spark compares bytes of UTF-8."""
    texts = ["", "A", "a", "é", "\u0800", "\ufffd", "\U0001f600", "a\0", "ab"]
    for one, other in itertools.product(texts, texts):
        row = {"text": one, "count": 0}
        assert passes([["LessThan", "text", other]], row) is (one.encode() < other.encode())


def test_filters_of_one_column_judge_all_its_rows() -> None:
    pushed = Pushed([["EqualTo", "text", "shop"], ["Or", ["EqualTo", "text", "x"], ["IsNull", "count"]]])
    assert pushed.may_have("text", "shop")
    assert not pushed.may_have("text", "shot")
    assert not pushed.may_have("text", None)
    assert pushed.may_have("count", None)
    assert ALL.may_have("text", None)


def test_a_schema_carries_them() -> None:
    filters = [["EqualTo", "text", "shop"]]
    plain = StructType().add("text", "string").add("count", "long")
    told = StructType().add("text", "string", metadata={"kdissect.filters": json.dumps(filters)})
    assert not Pushed.of(plain)
    assert Pushed.of(told).may_have("text", "shop")
    assert not Pushed.of(told).may_have("text", "shot")


def test_bodies_are_left_to_spark() -> None:
    assert {"request", "response"} <= BODIES
    assert not BODIES & {"api", "latency_ns", "topic", "offset"}
    assert len(KNOWN) == len(set(KNOWN)) == 15
