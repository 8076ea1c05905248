"""The C types of compiled modules name what their sources have.

A class of C can be given no attribute but those that are declared. A module that does not compile is left out
of a wheel with no more than a warning. And a type of a variable that no function has any more says nothing:
the variable that took its place is a Python object, right but slow.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from kdissect.leaves import LEAVES

_CLASS = re.compile(r"^cdef class (\w+)(?:\(\w+\))?:\n((?:(?: .*)?\n)*)", re.MULTILINE)
_ATTRIBUTE = re.compile(
    r"^    cdef (?:public )?(?!dict __|object __)[\w.:\[\]]+ (\w+(?:, \w+)*)$", re.MULTILINE
)

_FUNCTION = re.compile(
    r"^(?P<indent> *)(?:@cython\.locals\((?P<locals>(?:[^()]|\([^)]*\))*)\)\s*)?(?:@[^\n]*\n\s*)*"
    r"cp?def (?!class )[^\n(=]*?(?P<name>\w+)\((?P<arguments>[^)]*)\)",
    re.MULTILINE,
)
_CLASS_BEGIN = re.compile(r"^cdef class (\w+)", re.MULTILINE)


class DeclaredFunction(NamedTuple):
    """A function that a ``.pxd`` names."""

    name: str
    """With its class."""
    arguments: list[str]
    variables: set[str]
    """Those that have a C type."""


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


def test_a_class_of_c_has_the_attributes_of_its_source() -> None:
    differ = {f"{leaf}.{name}": mine ^ names for leaf, name, mine, names in declared() if mine != names}
    assert differ == {}


_HAVE_GC = 1 << 14
"""The flag of classes at whose objects the collector looks (Py_TPFLAGS_HAVE_GC)."""


@pytest.mark.parametrize("leaf", LEAVES)
def test_the_collector_leaves_alone_what_is_declared_to_be_in_no_cycle(leaf: str) -> None:
    types = source_of(leaf).with_suffix(".pxd")
    module = import_module(leaf)
    if not types.exists() or (module.__file__ or "").endswith(".py"):
        pytest.skip("it is not compiled")
    names = re.findall(r"@cython\.no_gc\n(?:@cython[^\n]*\n)*cdef class (\w+)", types.read_text("utf-8"))
    assert [name for name in names if getattr(module, name).__flags__ & _HAVE_GC] == []


def functions_declared(types: str) -> Iterator[DeclaredFunction]:
    classes = [(each.start(), each[1]) for each in _CLASS_BEGIN.finditer(types)]
    for found in _FUNCTION.finditer(types):
        owner = [f"{name}." for at, name in classes if at < found.start()][-1] if found["indent"] else ""
        arguments = [each.replace("=*", "").strip() for each in found["arguments"].split(",")]
        variables = re.sub(r'"[^"]*"', "", found["locals"] or "")
        yield DeclaredFunction(
            owner + found["name"],
            [re.split(r"[ *]+", each)[-1] for each in arguments if each],
            set(re.findall(r"(\w+) *=", variables)),
        )


def functions_of(source: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for each in ast.parse(source).body:
        if isinstance(each, ast.FunctionDef):
            yield each.name, each
        elif isinstance(each, ast.ClassDef):
            yield from (
                (f"{each.name}.{one.name}", one) for one in each.body if isinstance(one, ast.FunctionDef)
            )


def differences(types: str, source: str) -> Iterator[str]:
    """What a ``.pxd`` says of functions that is not so, a line each."""
    functions = dict(functions_of(source))
    for name, arguments, variables in functions_declared(types):
        function = functions.get(name)
        if function is None:
            yield f"{name}: the source has no such function"
            continue
        given = function.args
        own = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        if own != arguments:
            yield f"{name}: the arguments are {own}, not {arguments}"
        assigned = {each.id for each in ast.walk(function) if isinstance(each, ast.Name)} | set(own)
        for variable in sorted(variables - assigned):
            yield f"{name}: it has no variable {variable}"


@pytest.mark.parametrize("leaf", LEAVES)
def test_types_are_of_functions_arguments_and_variables_that_are_there(leaf: str) -> None:
    types = source_of(leaf).with_suffix(".pxd")
    if not types.exists() or types.with_suffix(".pyx").exists():
        pytest.skip("its types stand elsewhere")
    found = differences(types.read_text("utf-8"), source_of(leaf).read_text("utf-8"))
    assert [f"{types.name}: {each}" for each in found] == []


SOURCE = """
def read(data, at):
    value = data[at]
    return value


class Reader:
    def take(self, count):
        return count
"""


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ("@cython.locals(value=int)\ncpdef int read(bytes data, Py_ssize_t at) except -1", []),
        ("cdef class Reader:\n    cdef public bytes data\n\n    cpdef take(self, int64_t count=*)", []),
        ("cpdef reads(bytes data)", ["reads: the source has no such function"]),
        ("cpdef read(bytes data)", ["read: the arguments are ['data', 'at'], not ['data']"]),
        (
            '@cython.locals(\n    value=int, raw="const unsigned char*", child=dict,\n)\n'
            "cpdef read(bytes data, Py_ssize_t at)",
            ["read: it has no variable child", "read: it has no variable raw"],
        ),
        (
            "cdef class Reader:\n    @cython.locals(at=int)\n    cdef take(self, n)",
            [
                "Reader.take: the arguments are ['self', 'count'], not ['self', 'n']",
                "Reader.take: it has no variable at",
            ],
        ),
    ],
)
def test_a_difference_is_named(types: str, expected: list[str]) -> None:
    assert list(differences(types, SOURCE)) == expected


def test_every_function_of_a_pxd_is_compared() -> None:
    for leaf in LEAVES:
        types = source_of(leaf).with_suffix(".pxd")
        if types.exists():
            text = types.read_text("utf-8")
            count = len(re.findall(r"^ *cp?def (?!class )[^\n=]*\(", text, re.MULTILINE))
            assert len(list(functions_declared(text))) == count, leaf
