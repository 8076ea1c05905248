"""JSON Schemas, against the library ``jsonschema``."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft4Validator, Draft6Validator, Draft7Validator, Draft202012Validator
from jsonschema.validators import Draft201909Validator

from kdissect.payload.avro import SchemaError
from kdissect.payload.json_schema import Checked, json_schema
from tests.amount import patient, times

LIBRARY: dict[str, Any] = {
    "http://json-schema.org/draft-04/schema#": Draft4Validator,
    "http://json-schema.org/draft-06/schema#": Draft6Validator,
    "http://json-schema.org/draft-07/schema#": Draft7Validator,
    "https://json-schema.org/draft/2019-09/schema": Draft201909Validator,
    "https://json-schema.org/draft/2020-12/schema": Draft202012Validator,
}
NEWEST = "https://json-schema.org/draft/2020-12/schema"
NAMES = st.sampled_from(["a", "b", "c"])
NUMBERS = st.integers(-3, 6) | st.sampled_from([0.5, 1.0, 2.5, -1.5])
LEAVES = st.none() | st.booleans() | NUMBERS | st.sampled_from(["", "x", "abcd", "ä"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
SIZES = st.integers(0, 3)
PLAIN = st.fixed_dictionaries(
    {},
    optional={
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        "enum": st.lists(VALUES, min_size=1, max_size=3, unique_by=repr),
        "const": VALUES,
        "minimum": NUMBERS,
        "maximum": NUMBERS,
        "multipleOf": st.sampled_from([1, 2, 3]),
        "minLength": SIZES,
        "maxLength": SIZES,
        "minItems": SIZES,
        "maxItems": SIZES,
        "minProperties": SIZES,
        "maxProperties": SIZES,
        "uniqueItems": st.booleans(),
        "required": st.lists(NAMES, min_size=1, unique=True),
        "format": st.just("date"),
    },
)
REFERENCES = st.sampled_from(["#/definitions/x", "#/definitions/y"])


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas of schemas."""
    many, named = st.lists(inner, min_size=1, max_size=3), st.dictionaries(NAMES, inner, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "properties": named,
            "additionalProperties": inner | st.booleans(),
            "propertyNames": inner,
            "dependencies": st.dictionaries(
                NAMES, inner | st.lists(NAMES, min_size=1, unique=True), max_size=2
            ),
            "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, unique=True), max_size=2),
            "dependentSchemas": named,
            "items": inner,
            "contains": inner,
            "allOf": many,
            "anyOf": many,
            "oneOf": many,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "type": TYPES,
        },
    ) | st.fixed_dictionaries({"$ref": REFERENCES})


SCHEMAS = st.recursive(PLAIN, schemas, max_leaves=5)


@patient
@settings(max_examples=times(150, 10_000), deadline=None)
@given(st.sampled_from(sorted(LIBRARY)), SCHEMAS, PLAIN, PLAIN, VALUES)
def test_a_value_fits_where_the_library_says_so(draft: str, root: Any, x: Any, y: Any, value: Any) -> None:
    whole = {"$schema": draft, **root, "definitions": {"x": x, "y": y}}
    found = json_schema(json.dumps(whole)).check(value, len(json.dumps(value)))
    fits = LIBRARY[draft](whole).is_valid(value)
    if found.is_open:
        assert draft == "http://json-schema.org/draft-04/schema#"  # 1.0 as an integer
    else:
        assert (found.problem is None) == fits, found


ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "lines": {"type": "array", "items": {"$ref": "#/definitions/Line"}},
        "note": {"oneOf": [{"type": "null"}, {"type": "string", "maxLength": 5}]},
    },
    "required": ["id"],
    "additionalProperties": False,
    "definitions": {
        "Line": {"type": "object", "properties": {"sku": {"type": "string"}, "n": {"minimum": 1}}}
    },
}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"id": 1, "lines": [{"sku": "a"}], "note": None}, None),
        ({"id": "secret"}, "id: a string where an integer is needed"),
        ({"id": 1, "lines": [{}, {"n": 0}]}, "lines[1].n: less than 1"),
        ({}, "id: missing"),
        ({"id": 1, "secret": 2}, "a member that the schema does not name"),
        ({"id": 1, "note": 5}, "note: fits none of 2 schemas"),
        ([], "an array where an object is needed"),
    ],
)
def test_a_problem_says_where_it_is_and_nothing_of_the_value(value: Any, problem: str | None) -> None:
    assert json_schema(json.dumps(ORDER)).check(value, 100) == Checked(problem)


@pytest.mark.parametrize(
    ("schema", "value", "is_open", "is_wrong"),
    [
        ({"pattern": "^a"}, "b", True, False),
        ({"pattern": "^a"}, 5, False, False),
        ({"pattern": "^a", "maxLength": 1}, "bb", False, True),
        ({"not": {"pattern": "^a"}}, "b", True, False),
        ({"oneOf": [{"pattern": "^a"}, {"pattern": "^b"}]}, "b", True, False),
        ({"oneOf": [{"pattern": "^a"}, {"type": "string"}, {"minLength": 1}]}, "b", False, True),
        ({"anyOf": [{"pattern": "^a"}, {"type": "string"}]}, "b", False, False),
        ({"anyOf": [{"pattern": "^a"}, {"type": "null"}]}, "b", True, False),
        ({"patternProperties": {"^a": {}}, "additionalProperties": False}, {"b": 1}, True, False),
        ({"patternProperties": {"^a": {}}, "additionalProperties": False}, {}, False, False),
        ({"if": {"pattern": "^a"}, "then": {"minLength": 2}, "else": {"minLength": 3}}, "b", False, True),
        ({"if": {"pattern": "^a"}, "then": {"minLength": 2}}, "b", True, False),
        ({"contains": {"pattern": "^a"}}, ["b"], True, False),
        ({"contains": {"pattern": "^a"}}, [], False, True),
        ({"$ref": "http://registry/other.json"}, 5, True, False),
        ({"$ref": "#/definitions/none"}, 5, True, False),
        ({"$schema": "http://example.com/own", "type": "null"}, 5, True, False),
        ({"$schema": NEWEST, "unevaluatedProperties": False}, {"a": 1}, True, False),
        ({"type": "anything"}, 5, True, False),
        ({"format": "date"}, "b", False, False),
    ],
)  # fmt: skip
def test_what_cannot_be_said_is_open(schema: Any, value: Any, is_open: bool, is_wrong: bool) -> None:
    found = json_schema(json.dumps(schema)).check(value, 10)
    assert (found.is_open, found.problem is not None) == (is_open, is_wrong)


@pytest.mark.parametrize(
    "reference",
    ["line.json", "#/$defs/Line", "#line", "https://shop/line.json", "/line.json", "other.json#/$defs/L"],
)
def test_references_are_found_by_name_address_and_path(reference: str) -> None:
    root = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://shop/order.json",
        "properties": {"line": {"$ref": reference}},
        "$defs": {"Line": {"$anchor": "line", "type": "object"}},
    }
    others = {
        "line.json": '{"$id": "https://shop/line.json", "type": "object"}',
        "other.json": '{"$defs": {"L": {"type": "object"}}}',
    }
    schema = pickle.loads(pickle.dumps(json_schema(json.dumps(root), others)))
    assert schema.check({"line": {}}, 10) == Checked()
    assert schema.check({"line": 5}, 10).problem == "line: an integer where an object is needed"


def _doubling(count: int) -> Any:
    defs: Any = {f"d{at}": {"allOf": [{"$ref": f"#/definitions/d{at + 1}"}] * 2} for at in range(count)}
    return {"definitions": {**defs, f"d{count}": {}}, "$ref": "#/definitions/d0"}


@pytest.mark.parametrize(
    "given",
    [
        lambda: ({"$ref": "#"}, 5),
        lambda: ({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}, 5),
        lambda: (_doubling(60), 5),
        lambda: ({"properties": {str(at): {} for at in range(100_000)}}, {"0": 1}),
        lambda: ({"uniqueItems": True}, [[at] for at in range(20_000)]),
        lambda: ({"multipleOf": 1e-300}, 1e300),
        lambda: ({"pattern": "^(a+)+$"}, "a" * 40 + "b"),
    ],
)
def test_no_schema_takes_long(given: Callable[[], tuple[Any, Any]]) -> None:
    schema, value = given()
    made = json_schema(json.dumps(schema))
    begin = time.process_time()
    found = made.check(value, len(json.dumps(value)))
    assert time.process_time() - begin < 5
    assert found.problem is None


@pytest.mark.parametrize("text", ["", "{", "5", "[]", "[" * 100_000, '{"a":' * 500 + "1" + "}" * 500])
def test_what_is_no_schema_says_so(text: str) -> None:
    with pytest.raises(SchemaError):
        json_schema(text)
