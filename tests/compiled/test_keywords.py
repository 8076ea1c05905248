"""Compiled, a function of one argument is called without the argument's name.

As source it takes the name too. So the package gives no name there, and what users call takes names in both
forms.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import kdissect
from kdissect.leaves import LEAVES
from tests.compiled.test_declarations import source_of

TAKES_NAMES = "# cython: always_allow_keywords=True\n"
PACKAGE = Path(kdissect.__file__).parent


def only_arguments(body: list[ast.stmt], skipped: int = 0) -> Iterator[tuple[str, str]]:
    """Functions, and methods with ``skipped`` arguments before, that take one argument and must have it."""
    for each in body:
        if isinstance(each, ast.ClassDef):
            yield from only_arguments(each.body, skipped=1)
        elif isinstance(each, ast.FunctionDef) and not each.name.startswith("__"):
            taken = each.args
            own = skipped and not any(ast.unparse(line) == "staticmethod" for line in each.decorator_list)
            names = [arg.arg for arg in taken.args[1 if own else 0 :]]
            if len(names) == 1 and not (taken.defaults or taken.vararg or taken.kwonlyargs or taken.kwarg):
                yield each.name, names[0]


def named(tree: ast.AST) -> Iterator[tuple[str, str, int]]:
    """The functions that are called, the names that are given to their arguments, and the lines."""
    for each in ast.walk(tree):
        if isinstance(each, ast.Call):
            name = each.func.attr if isinstance(each.func, ast.Attribute) else ast.unparse(each.func)
            for given in each.keywords:
                yield name, given.arg or "", each.lineno


def test_the_package_names_no_only_argument_of_a_compiled_function() -> None:
    known: set[tuple[str, str]] = set()
    for leaf in LEAVES:
        text = source_of(leaf).read_text("utf-8")
        if not text.startswith(TAKES_NAMES):
            known.update(only_arguments(ast.parse(text).body))
    assert len(known) > 200
    calls = [
        f"{path.relative_to(PACKAGE)}:{line}: {function}({argument}=…)"
        for path in sorted(PACKAGE.rglob("*.py"))
        for function, argument, line in named(ast.parse(path.read_text("utf-8")))
        if (function, argument) in known
    ]
    assert not calls


@pytest.mark.parametrize("name", sorted(set(kdissect.__all__) - {"__version__"}))
def test_what_users_call_takes_names(name: str) -> None:
    offered = getattr(kdissect, name)
    if offered.__module__ not in LEAVES:
        return
    text = source_of(offered.__module__).read_text("utf-8")
    mine = [each for each in ast.parse(text).body if getattr(each, "name", "") == offered.__name__]
    public = [function for function, _ in only_arguments(mine) if not function.startswith("_")]
    assert text.startswith(TAKES_NAMES) or not public
