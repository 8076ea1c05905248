"""A docstring comes directly after what it describes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import kdissect
from tests.trees import statements

PACKAGE = Path(kdissect.__file__).parent


def test_no_docstring_follows_another() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line in strays(path.read_text("utf-8"))
    ]
    assert not found


def test_one_that_was_parted_from_its_name_is_found() -> None:
    assert list(strays('A = 1\nB = 2\n"""Of B."""\n"""Of A."""\n')) == [4]
    assert not list(strays('"""Of all."""\nA = 1\n"""Of A."""\nB = 2\n"""Of B."""\n'))


def strays(source: str) -> Iterator[int]:
    """Lines of docstrings that describe nothing, because they follow another docstring."""
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            for before, each in zip(node.body, node.body[1:], strict=False):
                if _is_text(before) and _is_text(each):
                    yield each.lineno


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
