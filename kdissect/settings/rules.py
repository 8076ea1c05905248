"""Checks the rules that are left out, and the thresholds of rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from math import isfinite

from kdissect.present.nearest import nearest


class UnknownRuleError(ValueError):
    """There is no such rule or threshold, or the value is not allowed; the text is one line.

    :param key: the wrong key, as the user wrote it.
    :param rule: the rule of a threshold.
    """

    def __init__(self, key: str, words: str, rule: str | None = None) -> None:
        super().__init__(words)
        self.key = key
        self.rule = rule


def refuse_unknown(thresholds: Mapping[str, object], ignored: Iterable[str]) -> None:
    """Check that rules and their thresholds exist.

    :param thresholds: thresholds by the id of a rule and their name.
    :param ignored: ids of rules, or patterns.
    :raises UnknownRuleError: one does not exist, or a threshold is no number above 0.
    """
    from kdissect.insight.catalogue import RULES

    for pattern in ignored:
        if not isinstance(pattern, str) or not any(fnmatchcase(known, pattern) for known in RULES):
            hint = nearest(str(pattern), RULES)
            raise UnknownRuleError("ignore", f"ignore: there is no finding {pattern!r}{hint}")
    for id, value in thresholds.items():
        if id not in RULES:
            raise UnknownRuleError(id, f"there is no finding {id!r}{nearest(str(id), RULES)}")
        known = RULES[id].thresholds
        if not isinstance(value, Mapping):
            raise UnknownRuleError(id, f"{id}: a table is needed")
        for name, number in value.items():
            if name not in known:
                hint = nearest(name, known) or ("; it has none" if not known else "")
                raise UnknownRuleError(name, f"there is no threshold {name!r} of {id}{hint}", id)
            if not isinstance(number, int | float) or isinstance(number, bool) or not isfinite(number):
                raise UnknownRuleError(name, f"{name}: a number is needed", id)
            if number <= 0:
                raise UnknownRuleError(name, f"{name}: a number above 0 is needed", id)
