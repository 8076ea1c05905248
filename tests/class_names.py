"""Finds class names with several meanings.

    python -m tests.class_names [PACKAGE…]    in these packages of kdissect; without any, in all

A leading underscore does not matter: a reader of ``_Line`` in three modules has to learn three meanings.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from tests.trees import inner

TOP = Path(__file__).resolve().parents[1] / "kdissect"


def shared_names(packages: Collection[str] = (), top: Path = TOP) -> dict[str, list[str]]:
    """Each class name that is defined more than once, with the modules that define it.

    :param packages: subpackages of ``top``; all of them by default.
    """
    found: dict[str, list[str]] = {}
    for path in sorted(top.rglob("*.py")):
        module = path.relative_to(top)
        if packages and module.parts[0] not in packages:
            continue
        for name in _names(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(name, []).append(module.as_posix())
    return {name: modules for name, modules in sorted(found.items()) if len(modules) > 1}


def _names(node: ast.AST, outer: str = "") -> Iterator[str]:
    """The classes below a node. An inner class has both names, such as ``Tabs.Chosen``."""
    for child in inner(node):
        if isinstance(child, ast.ClassDef):
            name = outer + child.name.lstrip("_")
            yield name
            yield from _names(child, f"{name}.")
        else:
            yield from _names(child, outer)


if __name__ == "__main__":
    for each, where in shared_names(sys.argv[1:]).items():
        print(f"{each}: {', '.join(where)}")  # noqa: T201
