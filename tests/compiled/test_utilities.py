"""Functions of Cython that all modules have alike are compiled once."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
MODULE = """\
#include "Python.h"
{declared}/* #### Code section: module_declarations ### */
static int __pyx_own(void) {{
  return 1;
}}
/* #### Code section: utility_code_def ### */
{functions}/* #### Code section: utility_code_pragmas_end ### */
"""
DECLARED = "static int {}(void); /*proto*/\n"
FUNCTION = """\
static {1}int {0}(void) {{
    {2};
}}
"""
HIDDEN = 'extern __attribute__((visibility("hidden"))) int '

Apart = Callable[[dict[str, str]], tuple[dict[str, str], list[str]]]


@pytest.fixture(scope="module")
def apart() -> Apart:
    """What ``.build/utilities.py`` does to the C of all modules."""
    made: Apart = runpy.run_path(str(TOP / ".build" / "utilities.py"))["apart"]
    return made


def modules(*functions: str, names: tuple[str, ...] = ("__Pyx_A",)) -> dict[str, str]:
    """Three modules with these functions, and declarations of these names."""
    declared = "".join(DECLARED.format(name) for name in names)
    text = MODULE.format(declared=declared, functions="".join(functions))
    return dict.fromkeys(("m.a", "m.b", "m.c"), text)


def function(name: str, does: str = "return 0", kind: str = "") -> str:
    """A function of Cython."""
    return FUNCTION.format(name, kind, does)


def test_a_function_that_all_modules_have_alike_is_in_one_file(apart: Apart) -> None:
    texts, files = apart(modules(function("__Pyx_A")))
    (file,) = files
    assert file.count(f"{HIDDEN}__Pyx_A(void) {{\n    return 0;\n}}\n") == 1
    assert "__pyx_own" not in file
    for text in texts.values():
        assert text.count(f"{HIDDEN}__Pyx_A(void);") == 2
        assert "return 0" not in text
        assert "static int __pyx_own(void) {" in text


@pytest.mark.parametrize(
    "does",
    [
        "return __pyx_mstate_global->__pyx_n_u_name",
        "return __pyx_own()",
        "return __pyx_d != NULL",
        "return __Pyx_Elsewhere()",
    ],
)
def test_a_function_that_needs_something_of_its_module_stays(apart: Apart, does: str) -> None:
    given = modules(function("__Pyx_A", does), names=("__Pyx_A", "__Pyx_Elsewhere"))
    assert apart(given) == (given, [])


def test_so_does_a_function_that_calls_it(apart: Apart) -> None:
    first, second = function("__Pyx_A", "return __pyx_d != NULL"), function("__Pyx_B", "return __Pyx_A()")
    given = modules(first, second, names=("__Pyx_A", "__Pyx_B"))
    assert apart(given) == (given, [])


def test_so_does_a_function_that_uses_data_beside_it(apart: Apart) -> None:
    given = modules("static int __pyx_counted = 0;\n", function("__Pyx_A", "return ++__pyx_counted"))
    assert apart(given) == (given, [])


def test_so_does_a_function_that_uses_a_macro_for_something_of_the_module(apart: Apart) -> None:
    macro = "#define __Pyx_Name()  \\\n    __pyx_mstate_global->name\n"
    given = modules(macro, function("__Pyx_A", "return __Pyx_Name()"))
    assert apart(given) == (given, [])


def test_each_module_has_the_same_empty_tuple(apart: Apart) -> None:
    given = modules(function("__Pyx_A", "return f(__pyx_mstate_global->__pyx_empty_tuple)"))
    texts, (file,) = apart(given)
    assert "return f(__Pyx_EmptyTuple());" in file
    assert not any("return f" in text for text in texts.values())


@pytest.mark.parametrize(("lines", "is_apart"), [(5, False), (40, True)])
def test_short_inline_functions_stay(apart: Apart, lines: int, is_apart: bool) -> None:
    given = modules(function("__Pyx_A", "f();\n" * lines, "CYTHON_INLINE "))
    texts, files = apart(given)
    assert bool(files) is is_apart
    assert (texts == given) is not is_apart


def test_a_file_has_the_short_inline_functions_that_its_own_call(apart: Apart) -> None:
    short = function("__Pyx_A", "return 0", "CYTHON_INLINE ")
    given = modules(short, function("__Pyx_B", "return __Pyx_A()"), names=("__Pyx_A", "__Pyx_B"))
    texts, (file,) = apart(given)
    assert short in file
    assert all(short in text for text in texts.values())


def test_what_few_modules_have_or_modules_have_differently_stays(apart: Apart) -> None:
    given = modules(function("__Pyx_A"))
    few = {name: given[name] for name in ("m.a", "m.b")}
    assert apart(few) == (few, [])
    other = {**given, "m.d": modules(function("__Pyx_A", "return 2"))["m.a"]}
    assert apart(other) == (other, [])


def test_a_function_of_two_forms_comes_from_a_module_with_both(apart: Apart) -> None:
    first, second = function("__Pyx_A"), function("__Pyx_A", "return 2")
    both = modules("#if X\n", first, "#else\n", second, "#endif\n")["m.a"]
    given = {**modules("#if X\n", first, "#endif\n"), "m.d": both}
    texts, (file,) = apart(given)
    assert "return 0" in file
    assert "return 2" in file
    assert not any("return 0" in text or "return 2" in text for text in texts.values())
