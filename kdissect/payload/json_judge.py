"""A value and a JSON Schema → whether the value fits, within bounds.

There are three answers: None for yes, :data:`OPEN` for what cannot be said, and :class:`Misfit`. A schema
with a part that is open is wrong only if it is wrong whatever that part says. So ``not`` of an open part is
open, and ``oneOf`` is wrong if two schemas fit for certain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

DEEPEST = 150
"""Schemas that are looked at one in the other."""


class Undecided:
    """Nobody can say."""


OPEN: Final = Undecided()


class Misfit(NamedTuple):
    """A value does not fit."""

    reason: str
    path: tuple[str, ...] = ()
    """Where in the value, by names of the schema and by numbers of elements."""

    def __str__(self) -> str:
        return f"{''.join(self.path).lstrip('.')}: {self.reason}" if self.path else self.reason

    def inside(self, step: str) -> Misfit:
        """The same, seen from the value around it."""
        return self._replace(path=(step, *self.path))


Answer = Misfit | Undecided | None


class JudgingRun:
    """Compares one value.

    :param keywords: what each keyword checks.
    :param draft: 4, 6, 7, 2019, 2020, or 0 for one that is not known.
    :param target: the schema that a reference names; None if it is not there.
    :param steps: how many keywords may be looked at.
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
            return self._referenced(schema["$ref"], value, depth)  # the others do not count
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
        """Whether so many more steps are left; takes them."""
        self._steps -= count
        return self._steps >= 0

    def _referenced(self, reference: Any, value: Any, depth: int) -> Answer:
        target = self._target(reference) if isinstance(reference, str) else None
        return OPEN if target is None else self.judge(target, value, depth + 1)


def identity(value: Any) -> Any:
    """What is equal for equal JSON values: 1 is 1.0 but not true."""
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, list):
        return "list", tuple(map(identity, value))
    if isinstance(value, dict):
        return "dict", frozenset((name, identity(each)) for name, each in value.items())
    return value


Check = Callable[[JudgingRun, Any, Any, int, dict[str, Any]], Answer]
"""What a keyword says, the value, the depth, and the schema around the keyword → whether the value fits."""
