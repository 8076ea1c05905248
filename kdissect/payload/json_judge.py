"""A value and a JSON Schema → whether the value fits, within bounds.

There are three answers: None for yes, :data:`OPEN` for unknown, and :class:`Misfit`. If a part of a schema is
open, the answer is a misfit only if both answers for that part lead to it. So ``not`` of an open part is
open, and ``oneOf`` is a misfit if two schemas fit for certain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

DEEPEST = 150
"""The deepest nesting of schemas that is followed."""


class Undecided:
    """The type of :data:`OPEN`: unknown whether the value fits."""


OPEN: Final = Undecided()


class Misfit(NamedTuple):
    """A value does not fit."""

    reason: str
    path: tuple[str, ...] = ()
    """The place in the value, as names of the schema and numbers of elements."""

    def __str__(self) -> str:
        return f"{''.join(self.path).lstrip('.')}: {self.reason}" if self.path else self.reason

    def inside(self, step: str) -> Misfit:
        """The same misfit, with the path from the value around it."""
        return self._replace(path=(step, *self.path))


Answer = Misfit | Undecided | None


class JudgingRun:
    """Compares one value.

    :param keywords: the check of each keyword.
    :param draft: 4, 6, 7, 2019, 2020, or 0 if unknown.
    :param target: returns the schema of a reference; None if it is not known.
    :param steps: the most keywords that may be checked.
    """

    def __init__(
        self, keywords: Mapping[str, Check], draft: int, target: Callable[[str], Any], steps: int
    ) -> None:
        self._keywords = keywords
        self.draft = draft
        self._target = target
        self._steps = steps

    def judge(self, schema: Any, value: Any, depth: int) -> Answer:
        """Whether a value fits a schema."""
        if schema is True:
            return None
        if schema is False:
            return Misfit("a value that the schema does not allow")
        if not isinstance(schema, dict) or not self.draft or depth >= DEEPEST:
            return OPEN
        if "$ref" in schema and self.draft <= 7:
            return self._referenced(schema["$ref"], value, depth)  # other keywords are ignored
        answer: Answer = None
        for keyword, said in schema.items():
            if not self.may_spend(1):
                return OPEN
            if keyword == "$ref":
                found = self._referenced(said, value, depth)
            else:
                check = self._keywords.get(keyword)
                if check is None:
                    continue
                found = check(self, said, value, depth, schema)
            if found is not None:
                if found is not OPEN:
                    return found
                answer = OPEN
        return answer

    def may_spend(self, count: int) -> bool:
        """Take ``count`` steps; return whether so many were left."""
        self._steps -= count
        return self._steps >= 0

    def _referenced(self, reference: Any, value: Any, depth: int) -> Answer:
        target = self._target(reference) if isinstance(reference, str) else None
        return OPEN if target is None else self.judge(target, value, depth + 1)


def identity(value: Any) -> Any:
    """A value that is equal for equal JSON values: 1 equals 1.0 but not true."""
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, list):
        return "list", tuple(map(identity, value))
    if isinstance(value, dict):
        return "dict", frozenset((name, identity(each)) for name, each in value.items())
    return value


Check = Callable[[JudgingRun, Any, Any, int, dict[str, Any]], Answer]
"""The keyword's value, the value to check, the depth, and the schema around the keyword → whether the value
fits."""
