"""Sources as trees, for tests that examine all of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
_STRING = re.compile(r'"([^"\n\\]*)"')


def inner(node: ast.AST) -> Iterator[ast.AST]:
    """The statements directly inside a module, a class, a function or another statement."""
    for name in _BLOCKS:
        yield from getattr(node, name, ())


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all statements below it, including those of functions and classes. Expressions are
    skipped, because they are nine tenths of a tree.
    """
    yield node
    for each in inner(node):
        yield from statements(each)


def strings(path: Path) -> set[str]:
    """The strings in a source that are on one line, including those inside docstrings, without parsing."""
    return set(_STRING.findall(path.read_text("utf-8")))
