"""Makes the C that Cython writes cheaper to compile: without what a module does not use, and with marks at
functions that need no optimisation. What does not look as expected stays as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

_MARK = r"CYTHON_SMALL_CODE \g<0>"
"""GCC does not optimise a function so marked: ``compile.py`` defines the macro."""
_DECLARED = r"^static [\w ]+[ *]{}\w*\([^{{;]*;"
"""Where the C declares a function whose name matches."""
_PICKLING = re.compile(
    _DECLARED.format(r"__pyx_p?[fw]_\w*(?:__reduce_cython__|__setstate_cython__|__pyx_unpickle_)"),
    re.MULTILINE,
)
"""How objects are pickled: a sixteenth of the code. Python's own pickle takes most of that time."""
_OF_PYTHON = re.compile(_DECLARED.format(r"__pyx_(?:gb|p[fw])_(?!\w*__[a-z]+__\()"), re.MULTILINE)
"""Functions and generators that Python calls. Special methods are left out: Python makes and compares objects
often. If C calls one of them, it has another function for that, which is optimised."""

_TYPE = re.compile(
    r"^  __pyx_mstate->(?P<type>__pyx_ptype_\w+) = __Pyx_ImportType_\w+\(__pyx_t_1,(?:.*\n){1,8}?"
    r"  __Pyx_ImportType_CheckSize_\w+\); if .*\n"
    r"(?:  if \(unlikely\(__Pyx_GetVtable\(.*&(?P<table>__pyx_vtabptr_\w+)\) != 1\)\) .*\n)?",
    re.MULTILINE,
)
_NO_TYPE_OF_MODULE = re.compile(
    r"^  __pyx_t_1 = PyImport_ImportModule\(.*\n  __Pyx_GOTREF\(__pyx_t_1\);\n"
    r"  __Pyx_DECREF\(__pyx_t_1\); __pyx_t_1 = 0;\n",
    re.MULTILINE,
)
_VARIABLES = re.compile(r"^  \{\n    __pyx_t_1 = PyImport_ImportModule(?:.*\n)+?  \}\n", re.MULTILINE)
_VARIABLE = re.compile(r"&__pyx_vp_(\w+)")
_NAMES = re.compile(r"__pyx_(?:ptype|vtabptr|v)_\w+")


def cheaper(text: str, is_called_often: bool) -> str:
    """The C of a module, cheaper to compile.

    :param is_called_often: whether Python calls functions of this module for most exchanges.
    """
    text = _PICKLING.sub(_MARK, _without_needless_imports(text))
    return text if is_called_often else _OF_PYTHON.sub(_MARK, text)


def _without_needless_imports(text: str) -> str:
    """Cython imports all types and C variables of each module that a ``.pxd`` names, directly or not. Of six
    types a module uses one, and of the variables none. To import them took a twentieth of GCC's time."""
    uses = Counter(_NAMES.findall(text))

    def of_type(found: re.Match[str]) -> str:
        name, table = found["type"], found["table"]
        own = Counter(_NAMES.findall(found[0]))
        is_used = uses[name] - own[name] > _UNUSED_TYPE or (table and uses[table] - own[table] > 1)
        return found[0] if is_used else ""

    def of_variables(found: re.Match[str]) -> str:
        is_used = any(uses[f"__pyx_v_{name}"] != 1 for name in _VARIABLE.findall(found[0]))
        return found[0] if is_used else ""

    text = _in_function(text, "__Pyx_modinit_Type_import_code", _TYPE, of_type)
    text = _in_function(text, "__Pyx_modinit_Type_import_code", _NO_TYPE_OF_MODULE, lambda _: "")
    return _in_function(text, "__Pyx_modinit_Variable_import_code", _VARIABLES, of_variables)


_UNUSED_TYPE = 3
"""How often a type that a module imports but does not use stands in it: it is declared, cleared, visited."""


def _in_function(text: str, name: str, pattern: re.Pattern[str], put: Callable[[re.Match[str]], str]) -> str:
    """The text, with what matches in the body of this function of C replaced."""
    head = f"\nstatic int {name}(__pyx_mstatetype *__pyx_mstate) {{\n"
    begin = text.find(head)
    if begin < 0:
        return text
    end = text.index("\n}\n", begin)
    return text[:begin] + pattern.sub(put, text[begin:end]) + text[end:]
