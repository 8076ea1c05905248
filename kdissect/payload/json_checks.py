"""The keywords of JSON Schema about objects, arrays, and other schemas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kdissect.payload.json_judge import OPEN, Answer, Check, JudgingRun, Misfit, identity
from kdissect.payload.json_scalars import SCALARS, is_number

LONGEST_NAME = 100
"""The most characters of a name in a message."""

# -- objects ----------------------------------------------------------------------------------------


def _member(name: str) -> str:
    return f".{name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME] + '…'}"


def _properties(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    if not isinstance(value, dict):
        return None
    if not isinstance(said, dict):
        return OPEN
    answer: Answer = None
    for name, inner in said.items():
        if not run.may_spend(1):
            return OPEN
        if name in value:
            found = run.judge(inner, value[name], depth + 1)
            if isinstance(found, Misfit):
                return found.inside(_member(name))
            answer = answer or found
    return answer


def _required(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    if not isinstance(value, dict):
        return None
    if not isinstance(said, list) or not run.may_spend(len(said)):
        return OPEN
    for name in said:
        if isinstance(name, str) and name not in value:
            return Misfit("missing", (_member(name),))
    return None


def _additional(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    if not isinstance(value, dict) or said is True:
        return None
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        return OPEN
    answer: Answer = None
    for name, each in value.items():
        if not run.may_spend(1):
            return OPEN
        if name in properties:
            continue
        found = run.judge(said, each, depth + 1)
        if isinstance(found, Misfit):
            if schema.get("patternProperties"):  # the name may match one of the patterns
                found = OPEN
            elif said is False:
                return Misfit("a member that the schema does not name")
            else:
                return found.inside(".*")
        answer = answer or found
    return answer


def _by_pattern(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    return OPEN if isinstance(value, dict) and value and said else None


def _names(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    if run.draft < 6 or not isinstance(value, dict):
        return None
    answer: Answer = None
    for name in value:
        found = run.judge(said, name, depth + 1)
        if isinstance(found, Misfit):
            return Misfit(f"the name of a member: {found.reason}")
        answer = answer or found
    return answer


def _dependencies(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    return None if run.draft >= 2019 else _dependent(run, said, value, depth, schema)


def _dependent(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    if not isinstance(value, dict):
        return None
    if not isinstance(said, dict) or not run.may_spend(len(said)):
        return OPEN
    answer: Answer = None
    for name, needs in said.items():
        if name not in value:
            continue
        if isinstance(needs, list):
            found = _required(run, needs, value, depth, schema)
        else:
            found = run.judge(needs, value, depth + 1)
        if isinstance(found, Misfit):
            return found
        answer = answer or found
    return answer


def _newer(check: Check) -> Check:
    """The check of a keyword that exists since 2019-09."""
    return lambda run, *rest: check(run, *rest) if run.draft >= 2019 else None


# -- arrays -----------------------------------------------------------------------------------------


def _elements(run: JudgingRun, inner: Any, value: Sequence[Any], start: int, depth: int) -> Answer:
    answer: Answer = None
    for at in range(start, len(value)):
        if not run.may_spend(1):
            return OPEN
        found = run.judge(inner, value[at], depth + 1)
        if isinstance(found, Misfit):
            return found.inside(f"[{at}]")
        answer = answer or found
    return answer


def _in_order(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    if not isinstance(value, list):
        return None
    if not isinstance(said, list):
        return OPEN
    answer: Answer = None
    for at, (inner, each) in enumerate(zip(said, value, strict=False)):
        found = run.judge(inner, each, depth + 1)
        if isinstance(found, Misfit):
            return found.inside(f"[{at}]")
        answer = answer or found
    return answer


def _items(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    if not isinstance(value, list):
        return None
    if isinstance(said, list):
        return _in_order(run, said, value, depth, schema) if run.draft < 2020 else OPEN
    before = schema.get("prefixItems") if run.draft >= 2020 else None
    return _elements(run, said, value, len(before) if isinstance(before, list) else 0, depth)


def _more_items(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    before = schema.get("items")
    if run.draft >= 2020 or not isinstance(value, list) or not isinstance(before, list):
        return None
    return _elements(run, said, value, len(before), depth)


def _first_items(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    return _in_order(run, said, value, depth, schema) if run.draft >= 2020 else None


def _contains(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    if run.draft < 6 or not isinstance(value, list):
        return None
    least, most = schema.get("minContains", 1), schema.get("maxContains")
    if run.draft < 2019 and ("minContains" in schema or most is not None):
        return OPEN  # the author had a newer draft in mind
    if not is_number(least) or not (most is None or is_number(most)):
        return OPEN
    fitting = unknown = 0
    for each in value:
        if not run.may_spend(1):
            return OPEN
        found = run.judge(said, each, depth + 1)
        fitting += found is None
        unknown += found is OPEN
    if fitting + unknown < least:
        return Misfit(f"fewer than {least} elements that fit")
    if most is not None and fitting > most:
        return Misfit(f"more than {most} elements that fit")
    is_certain = fitting >= least and (most is None or fitting + unknown <= most)
    return None if is_certain else OPEN


def _unique(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    if said is not True or not isinstance(value, list):
        return None
    return None if len(set(map(identity, value))) == len(value) else Misfit("an element that occurs twice")


# -- schemas of schemas -----------------------------------------------------------------------------


def _answers(run: JudgingRun, said: Any, value: Any, depth: int) -> list[Answer] | None:
    if not isinstance(said, list):
        return None
    return [run.judge(each, value, depth + 1) for each in said]


def _all(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    answers = _answers(run, said, value, depth)
    if answers is None:
        return OPEN
    return _worst(answers)


def _worst(answers: Sequence[Answer]) -> Answer:
    for each in answers:
        if isinstance(each, Misfit):
            return each
    return OPEN if OPEN in answers else None


def _any(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    answers = _answers(run, said, value, depth)
    if answers is None:
        return OPEN
    if None in answers:
        return None
    return OPEN if OPEN in answers or not answers else _nearest(answers)


def _one(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    answers = _answers(run, said, value, depth)
    if answers is None:
        return OPEN
    fitting = answers.count(None)
    if fitting > 1:
        return Misfit(f"fits {fitting} of {len(answers)} schemas, but only one is allowed")
    if OPEN in answers or not answers:
        return OPEN
    return None if fitting else _nearest(answers)


def _nearest(answers: Sequence[Answer]) -> Misfit:
    """The misfit of the schema that fits best: the one with the longest path."""
    wrong = [each for each in answers if isinstance(each, Misfit)]
    deepest = max(wrong, key=lambda each: len(each.path))
    if len(wrong) == 1 or deepest.path:
        return deepest
    return Misfit(f"fits none of {len(wrong)} schemas")


def _not(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    found = run.judge(said, value, depth + 1)
    if found is None:
        return Misfit("fits a schema that it must not fit")
    return OPEN if found is OPEN else None


def _if(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    if run.draft < 7:
        return None
    found = run.judge(said, value, depth + 1)
    ways = [schema.get(name, True) for name in ("then", "else")]
    if found is not OPEN:
        return run.judge(ways[0] if found is None else ways[1], value, depth + 1)
    answers = [run.judge(each, value, depth + 1) for each in ways]
    if all(isinstance(each, Misfit) for each in answers):
        return answers[0]
    return None if answers == [None, None] else OPEN


def _pattern(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    return OPEN if isinstance(value, str) else None


def _unknown(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    return OPEN


def _unevaluated(run: JudgingRun, said: Any, value: Any, depth: int, schema: dict[str, Any]) -> Answer:
    if run.draft < 2019 or said is True or not isinstance(value, dict | list) or not value:
        return None
    return OPEN


KEYWORDS: dict[str, Check] = {
    **SCALARS,
    "properties": _properties,
    "required": _required,
    "additionalProperties": _additional,
    "patternProperties": _by_pattern,
    "propertyNames": _names,
    "dependencies": _dependencies,
    "dependentRequired": _newer(_dependent),
    "dependentSchemas": _newer(_dependent),
    "items": _items,
    "additionalItems": _more_items,
    "prefixItems": _first_items,
    "contains": _contains,
    "uniqueItems": _unique,
    "allOf": _all,
    "anyOf": _any,
    "oneOf": _one,
    "not": _not,
    "if": _if,
    "pattern": _pattern,
    "unevaluatedProperties": _unevaluated,
    "unevaluatedItems": _unevaluated,
    "$dynamicRef": _unknown,
    "$recursiveRef": _unknown,
}
"""The checks. Other keywords are ignored, or belong to keywords in this table."""
