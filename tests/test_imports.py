"""No modules import each other in a circle, wherever in a module the import is."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import kdissect
from tests.trees import statements

ROOT = Path(kdissect.__file__ or "").parent


def imports_of(source: str, modules: Iterable[str]) -> set[str]:
    """The modules among ``modules`` that a source imports, including imports in functions and for types
    only."""
    known, found = set(modules), set()
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in known else node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return found & known


def circles(imports: Mapping[str, set[str]]) -> list[list[str]]:
    """The groups of modules that reach each other, each in order (Tarjan 1972)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for other in sorted(imports[module]):
            if other not in order:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in stack:
                lowest[module] = min(lowest[module], order[other])
        if lowest[module] == order[module]:
            at = stack.index(module)
            group = sorted(stack[at:])
            del stack[at:]
            if len(group) > 1 or module in imports[module]:
                found.append(group)

    for module in sorted(imports):
        if module not in order:
            visit(module)
    return found


@cache
def package() -> dict[str, set[str]]:
    """The imports of every module of kdissect."""
    files = {}
    for path in ROOT.rglob("*.py"):
        parts = ("kdissect", *path.relative_to(ROOT).with_suffix("").parts)
        files[".".join(parts).removesuffix(".__init__")] = path
    return {name: imports_of(path.read_text("utf-8"), files) for name, path in files.items()}


def test_no_circle_is_left() -> None:
    assert circles(package()) == []


def test_commands_import_what_they_share_and_not_each_other() -> None:
    commands = "kdissect.cli.commands."

    def command(name: str) -> str | None:
        return name.removeprefix(commands).partition(".")[0] if name.startswith(commands) else None

    wrong = [
        (name, other)
        for name, imports in package().items()
        for other in imports
        if command(other) is not None and command(other) != command(name)
    ]
    assert wrong == []


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == [["b", "c"]]
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == [["a", "b", "c"]]
    assert circles({"a": {"a"}}) == [["a"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_imports_in_functions_and_for_types_count() -> None:
    source = (
        "if TYPE_CHECKING:\n from k.a import A\ndef f():\n import k.b\n from k import c\n from k import d\n"
    )
    assert imports_of(source, ["k", "k.a", "k.b", "k.c"]) == {"k", "k.a", "k.b", "k.c"}
