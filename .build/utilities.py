"""Cython writes its own functions anew into each module that calls them. Here they go into files of their
own, which are compiled once and linked to every module.

A function goes there if its text is the same in all modules and knows nothing of the module it stands in.
Short inline functions stay, because GCC puts them into their callers. What does not look as expected stays.
"""

from __future__ import annotations

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

_DECLARED, _BEGIN, _END = (
    f"/* #### Code section: {name} ### */\n"
    for name in ("module_declarations", "utility_code_def", "utility_code_pragmas_end")
)
"""A module declares what it uses before the first of these lines. Cython's functions are between two more."""
_BLOCK = "\n/* "
"""So begins each block of C that belongs together."""
_FUNCTION = re.compile(
    r"^(?P<head>(?:CYTHON_\w+ )?static\s[^(;{}#=]*\b(?P<name>\w+)\s*\([^;{}#]*\))\s*\{\n.*?\n\}\n",
    re.DOTALL | re.MULTILINE,
)
_HEAD = re.compile(
    r"^(?:CYTHON_\w+ )?static\s+(?:CYTHON_\w+\s+)*(?P<type>[\w *\n]+)\b(?P<name>_\w+)(?=\s*\()", re.MULTILINE
)
_DATA = re.compile(r"^static [^\n(){}]*?\b(\w+)\s*(?:\[[^\n]*\])?\s*(?:=|;)", re.MULTILINE)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(?P<name>\w+)(?P<text>(?:\\\n|.)*)", re.MULTILINE)
_BETWEEN = re.compile(
    r"^[ \t]*#(?:\\\n|.)*\n|^static\s[^(;{}#=]*\b(?P<name>\w+)\s*\([^;{}#]*\);.*\n", re.MULTILINE
)
_OWN = re.compile(r"\nstatic\s[^(;{}#=]*\b(\w+)\s*\([^;{}#]*\)\s*\{\n|\n[ \t]*#[ \t]*define[ \t]+(\w+)")
"""A function or macro of a module's own."""
_NAMES = re.compile(r"\b[A-Za-z_]\w+")
_CALLED = re.compile(r"\b(__[Pp]yx\w+)\s*\(")
_OF_MODULE = re.compile(
    r"\b__pyx_(?:mstate|module|pymod|builtin|cython_runtime|filename|code_cache|pyframe|ptype|umethod|empty_|n_)"
    r"|\b__pyx_(?:(?:k|kp|int|tuple|const)_|[mdbf]\b)|CGLOBAL"
)
"""Names of what each module has of its own."""
_EMPTY = "__pyx_mstate_global->__pyx_empty_tuple"
_EMPTY_OF_ALL = """
static inline PyObject *__Pyx_EmptyTuple(void) {
    static PyObject *empty = NULL;
    return empty ? empty : (empty = PyTuple_New(0));
}
"""
"""Python has one empty tuple. What a function knows of its module is often no more than that."""
_MACROS = {"__Pyx_PyType_GetFullyQualifiedName"}
"""What is a macro for CPython, and a function only for others."""
_SHORT = 25
"""Lines of an inline function that stays where it is."""
_FEW = 3
"""A function that fewer modules have stays where it is."""
_HIDDEN = 'extern __attribute__((visibility("hidden"))) '


class _Block(NamedTuple):
    """What a block of C says. The same blocks stand in many modules."""

    functions: list[tuple[str, str]]
    """Each with its name."""
    macros: list[tuple[str, str]]
    static: set[str]
    """The functions that it declares."""
    data: set[str]


class _Module(NamedTuple):
    """The C of a module in its parts."""

    first: list[str]
    """The blocks that declare Cython's functions."""
    own: str
    """What the module has of its own."""
    functions: list[str]
    """The blocks with Cython's functions."""
    last: str


def apart(texts: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The C of the modules without the functions that they share, and the C of these."""
    modules = {module: _parts(text) for module, text in texts.items()}
    bodies = {module: _bodies(each.functions) for module, each in modules.items()}
    free = _shared(modules.values(), bodies.values())
    short = {name for name, forms in free.items() if _is_short(forms)}
    shared = {name: forms for name, forms in free.items() if name not in short}
    left = {
        module: {name for name in each.keys() & shared if each[name] == shared[name]}
        for module, each in bodies.items()
    }
    files: list[str] = []
    while any(left.values()):
        giver = max(left, key=lambda module: len(left[module]))
        given = left[giver]
        files.append(_file(modules[giver], given, set(shared), short))
        left = {module: names - given for module, names in left.items()}
    without = functools.cache(lambda block: _without(block, set(shared)))
    declared = functools.cache(lambda block: _declared(block, set(shared)))

    def rest(module: _Module) -> str:
        first, functions = map(declared, module.first), map(without, module.functions)
        return "".join([*first, module.own, *functions, module.last])

    return {name: rest(module) for name, module in modules.items()}, files


def _parts(text: str) -> _Module:
    until, begin, end = text.index(_DECLARED), text.index(_BEGIN), text.index(_END)
    return _Module(_split(text[:until]), text[until:begin], _split(text[begin:end]), text[end:])


def _split(text: str) -> list[str]:
    """The text in its blocks."""
    first, *others = text.split(_BLOCK)
    blocks = [first, *(_BLOCK[1:] + block for block in others)]
    return [*(f"{block}\n" for block in blocks[:-1]), blocks[-1]]


@functools.cache
def _read(block: str) -> _Block:
    return _Block(
        [(found["name"], found[0]) for found in _FUNCTION.finditer(block)],
        [(found["name"], found["text"]) for found in _MACRO.finditer(block)],
        {found["name"] for found in _HEAD.finditer(block)},
        {*_DATA.findall(block)},
    )


def _bodies(blocks: Iterable[str]) -> dict[str, set[str]]:
    """The functions in these blocks, each in all its forms: the preprocessor takes one."""
    bodies: dict[str, set[str]] = defaultdict(set)
    for block in map(_read, blocks):
        for name, function in block.functions:
            bodies[name].add(function)
    return bodies


def _shared(modules: Iterable[_Module], bodies: Collection[Mapping[str, set[str]]]) -> dict[str, set[str]]:
    """The functions that may stand apart, in all their forms."""
    known: dict[str, set[str]] = {}
    macros: dict[str, set[str]] = defaultdict(set)
    first: set[str] = set()
    bound: set[str] = set()
    static: set[str] = set()
    for module, of_module in zip(modules, bodies, strict=True):
        for block in map(_read, [*module.first, *module.functions]):
            static |= block.static
            for name, macro in block.macros:
                macros[name].add(macro)
        bound.update(name for names in _OWN.findall(module.own) for name in names if name)
        for block in map(_read, module.functions):
            bound |= block.data
        at_first = _bodies(module.first)
        first |= at_first.keys()
        for name, forms in [*of_module.items(), *at_first.items()]:
            whole = known.setdefault(name, forms)
            if whole < forms:
                known[name] = forms
            elif not forms <= whole:
                bound.add(name)
    bound |= static - known.keys()
    called = {name for forms in known.values() for form in forms for name in _CALLED.findall(form)}
    bound |= called - known.keys() - macros.keys()
    uses = Counter(name for each in bodies for name in each)
    bound |= {name for name, count in uses.items() if count < _FEW}
    whole_texts = {
        name: "\n".join(known.get(name, set()) | macros.get(name, set())).replace(_EMPTY, "")
        for name in [*known, *macros]
    }
    bound |= {name for name, text in whole_texts.items() if _OF_MODULE.search(text)}
    bound -= _MACROS
    kept = bound | _MACROS
    names = {name: {*_NAMES.findall(text)} for name, text in whole_texts.items() if name not in kept}
    while more := {name for name, each in names.items() if name not in bound and each & bound}:
        bound |= more
    return {name: forms for name, forms in known.items() if name not in bound | first | _MACROS}


def _is_short(forms: set[str]) -> bool:
    """Whether GCC puts the function into its callers."""
    return all("INLINE" in form and form.count("\n") <= _SHORT for form in forms)


def _without(text: str, moved: set[str]) -> str:
    """The text with declarations in place of these functions."""

    def put(found: re.Match[str]) -> str:
        return f"{found['head']};\n" if found["name"] in moved else found[0]

    return _declared(_FUNCTION.sub(put, text), moved)


def _declared(text: str, moved: set[str]) -> str:
    """The text, which declares these functions as those of another file."""

    def put(found: re.Match[str]) -> str:
        return f"{_HIDDEN}{found['type']}{found['name']}" if found["name"] in moved else found[0]

    return _HEAD.sub(put, text)


def _file(module: _Module, given: set[str], shared: set[str], short: set[str]) -> str:
    """A file with these functions of a module, and all that they need."""
    text = "".join(module.functions)
    known = shared | short
    kept: list[str] = []
    at = 0
    for found in [*_FUNCTION.finditer(text), None]:
        between = _BETWEEN.finditer(text, at, found.start() if found else len(text))
        kept += [each[0] for each in between if each["name"] is None or each["name"] in known]
        if found is None:
            break
        at = found.end()
        if found["name"] in given or found["name"] in short:
            kept.append(found[0])
        elif found["name"] in shared:
            kept.append(f"{found['head']};\n")
    functions = "".join(kept).replace(_EMPTY, "__Pyx_EmptyTuple()")
    return _declared("".join(module.first) + _EMPTY_OF_ALL + functions + module.last, shared)
