"""Do the tests of the rules notice a threshold that was changed? Each is moved a step down and a step up,
and the test files of the rules that name its rule run.

    python -m tests.insight.thresholds [ID…]      only those of these rules

It prints the thresholds that no test notices, with the severity of their rule, and ends with exit code 1 if
there are any. A step is 1 for small whole numbers, else a tenth; a threshold must stay above 0.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from multiprocessing import Pool
from pathlib import Path
from typing import NamedTuple

import pytest

from kdissect.insight.catalogue import RULES

HERE = Path(__file__).parent
_SMALL = 10
"""Whole numbers up to this one are counts of a few things, which 1 is a step of."""


class MovedThreshold(NamedTuple):
    """A threshold and what it is changed to."""

    rule: str
    name: str
    value: float


def moved(ids: tuple[str, ...]) -> Iterator[MovedThreshold]:
    """Every threshold of the rules, a step down and a step up; of all rules if none is named."""
    for each in RULES.values():
        if not ids or each.id in ids:
            for name, value in each.thresholds.items():
                step = 1 if value == int(value) and value <= _SMALL else value / 10
                yield MovedThreshold(each.id, name, value + step)
                if value > step:
                    yield MovedThreshold(each.id, name, value - step)
                elif name.endswith("_s"):  # less than one of something is none
                    yield MovedThreshold(each.id, name, value / 2)


def files_of(rule: str) -> list[str]:
    """The test files that name a rule, those first that name it most."""
    texts = {str(each): each.read_text("utf-8") for each in HERE.glob("rules/test_*.py")}
    named = {path: text.count(f'"{rule}"') for path, text in texts.items()}
    return sorted((path for path in named if named[path]), key=lambda path: (-named[path], path))


def is_noticed(change: MovedThreshold) -> bool:
    """Whether a test fails with it."""
    rule = RULES[change.rule]
    RULES[change.rule] = rule._replace(thresholds={**rule.thresholds, change.name: change.value})
    quiet = ("-x", "-n", "0", "-p", "no:cacheprovider", "-p", "no:randomly", "-W", "ignore")
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
        done = pytest.main([*quiet, *files_of(change.rule)])
    return done == pytest.ExitCode.TESTS_FAILED


def main(*ids: str) -> int:
    """Try them."""
    changes = list(moved(ids))
    survived = 0
    # A process of its own for each: modules that were imported keep what they read.
    with Pool(2, maxtasksperchild=1) as pool:
        for change, noticed in zip(changes, pool.imap(is_noticed, changes), strict=True):
            if not noticed:
                survived += 1
                rule = RULES[change.rule]
                said = f"{rule.severity:8}  {rule.id}: {change.name} {rule.thresholds[change.name]:g}"
                print(f"{said} -> {change.value:g}", flush=True)  # noqa: T201
    print(f"{len(changes) - survived} of {len(changes)} noticed")  # noqa: T201
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
