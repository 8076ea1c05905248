"""The C types of compiled classes have every attribute that their sources have: a class of C can be given no
other, and a module that does not compile is left out of a wheel with no more than a warning."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from kdissect.leaves import LEAVES

_CLASS = re.compile(r"^cdef class (\w+)(?:\(\w+\))?:\n((?:(?: .*)?\n)*)", re.MULTILINE)
_ATTRIBUTE = re.compile(
    r"^    cdef (?:public )?(?!dict __|object __)[\w.:\[\]]+ (\w+(?:, \w+)*)$", re.MULTILINE
)


def source_of(leaf: str) -> Path:
    parent, _, name = leaf.rpartition(".")
    found = find_spec(parent)
    assert found is not None
    assert found.submodule_search_locations is not None
    return Path(found.submodule_search_locations[0]) / f"{name}.py"


def slots(body: ast.ClassDef) -> set[str] | None:
    """What a class says itself; None where it does not."""
    for line in body.body:
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "__slots__":
            return set(re.findall(r"'(\w+)'", ast.unparse(line.value)))
    return None


def declared() -> Iterator[tuple[str, str, set[str], set[str]]]:
    for leaf in LEAVES:
        source = source_of(leaf)
        types = source.with_suffix(".pxd")
        if not types.exists() or source.with_suffix(".pyx").exists():
            continue  # the other source has its own
        text = types.read_text("utf-8") + "\n"
        classes = {
            each.name: each
            for each in ast.parse(source.read_text("utf-8")).body
            if isinstance(each, ast.ClassDef)
        }
        for name, body in _CLASS.findall(text):
            mine = slots(classes[name])
            if mine is not None:
                names = {one for line in _ATTRIBUTE.findall(body) for one in line.split(", ")}
                yield leaf, name, mine, names


def test_there_are_classes_of_c() -> None:
    assert {"Exchange", "Message", "Session", "Cursor", "Reassembler"} <= {
        name for _, name, _, _ in declared()
    }


@pytest.mark.parametrize(
    ("mine", "names"),
    [pytest.param(mine, names, id=f"{leaf}.{name}") for leaf, name, mine, names in declared()],
)
def test_a_class_of_c_has_the_attributes_of_its_source(mine: set[str], names: set[str]) -> None:
    assert mine == names
