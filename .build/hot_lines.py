"""Names the hot lines that fell back to Python objects, before a user waits for them.

    python .build/hot_lines.py [MODULE…]    all of HOT, or these modules: then every function of them

A leaf that lost a C type still runs and still gives the right answer, but several times slower: Cython then
calls Python for an addition or an attribute. Nothing says so. This reads the C that Cython writes: of each
line of a hot function, the calls in it that work on Python objects. Lines that raise are not hot.
"""

from __future__ import annotations

import ast
import os
import re
import runpy
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parents[1]

HOT: dict[str, tuple[str, ...]] = {
    "kdissect.protocol.cursor": (
        *("take", "read_int8", "read_boolean", "read_int16", "read_uint16", "read_int32", "read_uint32"),
        *("read_int64", "read_bytes", "read_unsigned_varint", "read_unsigned_varlong", "read_varint"),
        *("read_varlong",),
    ),
    "kdissect.protocol.framing": ("read_size_prefix",),
    "kdissect.protocol.header": ("read_correlation_id",),
    "kdissect.record.scan": ("are_sound loops", "_scan"),
}
"""Module: functions that stay in C; behind some the word ``loops``, where only these are hot."""

_OBJECTS = re.compile(
    r"\b(PyNumber_\w+|PyObject_RichCompare\w*|PyObject_GetItem|PyObject_SetItem|PyObject_Call\w*"
    r"|__Pyx_PyObject_GetAttrStr\w*|__Pyx_PyObject_SetAttrStr\w*|__Pyx_PyObject_(?:Fast)?Call\w*"
    r"|__Pyx_PyObject_CallMethod\w*|__Pyx_Py(?:Int|Long)_(?:Add|Subtract|And|Or|Xor|Rshift|Lshift|Eq|Ne)\w*"
    r"|__Pyx_Py(?:Int|Long)_As_\w+|__Pyx_Py(?:Int|Long)_From_\w+|__Pyx_GetModuleGlobalName"
    r"|__Pyx__?GetItemInt(?!_List|_Tuple|_Bytes)\w*|__Pyx_PyObject_GetItem|__Pyx_PyObject_IsTrue)\b"
)
"""Calls of the C that work on Python objects of any type."""
_LINE = re.compile(r'/\* "([^"]+\.py)":(\d+)\n')


class Fallen(NamedTuple):
    """A line that works on Python objects."""

    module: str
    function: str
    line: int
    text: str
    calls: tuple[str, ...]
    """What it calls, each once."""

    def __str__(self) -> str:
        path = self.module.replace(".", "/") + ".py"
        return f"{path}:{self.line}: {self.function}: {self.text}  ({', '.join(self.calls)})"


def fallen(module: str, functions: tuple[str, ...] | None = None, top: Path = TOP) -> list[Fallen]:
    """The lines of functions of a leaf that fell back to Python objects.

    :param functions: their names; None for every function of the module.
    :raises LookupError: the module has no function of such a name.
    """
    path = module.replace(".", "/") + ".py"
    source = (top / path).read_text(encoding="utf-8")
    spans = dict(_spans(ast.parse(source)))
    for name in functions or ():
        if name not in spans:
            raise LookupError(f"{path} has no function {name}: see HOT in {Path(__file__).name}")
    lines = source.split("\n")
    calls = _calls(_c_source(module, top), path)
    return [
        Fallen(module, name, line, lines[line - 1].strip(), tuple(sorted(calls[line])))
        for name in functions or (each for each in spans if not each.endswith(" loops"))
        for line in sorted(spans[name] & calls.keys())
    ]


def _spans(tree: ast.AST) -> Iterator[tuple[str, set[int]]]:
    """Each function, and the lines of its body that do not raise."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            cold: set[int] = set()
            for inner in ast.walk(node):
                if isinstance(inner, ast.Raise):
                    cold |= _lines(inner)
                elif isinstance(inner, ast.If) and isinstance(inner.body[-1], ast.Raise):
                    cold.update(*(_lines(each) for each in inner.body))
            loops = [each for each in ast.walk(node) if isinstance(each, ast.For | ast.While)]
            yield node.name, set().union(*map(_lines, node.body)) - cold
            yield f"{node.name} loops", set().union(*map(_lines, loops)) - cold


def _lines(node: ast.stmt) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def _calls(c_source: str, path: str) -> dict[int, set[str]]:
    """Line of the source: the calls on objects in the C that stands for it."""
    found: dict[int, set[str]] = {}
    marks = list(_LINE.finditer(c_source))
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        if mark[1] != path:
            continue
        code = c_source[mark.end() : following.start() if following else len(c_source)]
        code = code.partition("*/")[2].partition("\n/* Python wrapper */")[0]
        code = code.partition("function exit code")[0]
        names = set(_OBJECTS.findall(code))
        if names:
            found.setdefault(int(mark[2]), set()).update(names)
    return found


def _c_source(module: str, top: Path) -> str:
    """The C that Cython writes for a leaf, with the directives of the build."""
    from Cython.Compiler.Main import CompilationOptions
    from Cython.Compiler.Main import compile as to_c

    directives = runpy.run_path(str(TOP / ".build" / "compile.py"))["DIRECTIVES"]
    here = Path.cwd()
    os.chdir(top)
    try:
        with tempfile.TemporaryDirectory(prefix="kdissect-c-") as work:
            target = Path(work) / "leaf.c"
            rest = {name: value for name, value in directives.items() if name != "language_level"}
            rest["emit_code_comments"] = True  # they say of which line the C is
            options = CompilationOptions(
                language_level=directives["language_level"],
                compiler_directives=rest,
                output_file=str(target),
                include_path=[str(top)],
            )
            to_c(module.replace(".", "/") + ".py", options, full_module_name=module)
            return target.read_text(encoding="utf-8")
    finally:
        os.chdir(here)


def main(*modules: str) -> int:
    """Print what fell back; 1 where something did."""
    asked = dict.fromkeys(modules) if modules else HOT
    found = [each for module, functions in asked.items() for each in fallen(module, functions)]
    for each in found:
        print(each)  # noqa: T201
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
