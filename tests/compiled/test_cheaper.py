"""What is left out of the C of compiled modules is not used there, and what is not optimised is not hot."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from kdissect.leaves import CALLED, LEAVES

TOP = Path(__file__).resolve().parents[2]
TYPE = """\
  __pyx_mstate->__pyx_ptype_{0} = __Pyx_ImportType_3_3_1(__pyx_t_1, "m", "{0}",
  sizeof(struct __pyx_obj_{0}), __PYX_GET_STRUCT_ALIGNMENT_3_3_1(struct __pyx_obj_{0}),
  __Pyx_ImportType_CheckSize_Warn_3_3_1); if (!__pyx_mstate->__pyx_ptype_{0}) __PYX_ERR(1, 6, __pyx_L1_error)
  if (unlikely(__Pyx_GetVtable(__pyx_mstate->__pyx_ptype_{0}, (void**)&__pyx_vtabptr_{0}) != 1)) __PYX_ERR(1)
"""
MODULE = """\
  __pyx_t_1 = PyImport_ImportModule("m"); if (unlikely(!__pyx_t_1)) __PYX_ERR(1, 6, __pyx_L1_error)
  __Pyx_GOTREF(__pyx_t_1);
{}  __Pyx_DECREF(__pyx_t_1); __pyx_t_1 = 0;
"""
VARIABLES = """\
  {{
    __pyx_t_1 = PyImport_ImportModule("m"); if (unlikely(!__pyx_t_1)) __PYX_ERR(0, 1, __pyx_L1_error)
    void **const __pyx_import_pointers[] = {{(void **)&__pyx_vp_{0}, (void **) NULL}};
    while (*__pyx_import_pointer) {{
    }}
  }}
"""
IMPORTS = """
static int __Pyx_modinit_{}_import_code(__pyx_mstatetype *__pyx_mstate) {{
{}  return 0;
}}
"""
DECLARED = """\
static struct __pyx_vtabstruct_{0} *__pyx_vtabptr_{0};
    PyTypeObject *__pyx_ptype_{0};
  Py_CLEAR(clear_module_state->__pyx_ptype_{0});
  Py_VISIT(traverse_module_state->__pyx_ptype_{0});
"""
OF_C = "static int __pyx_f_m_walk(int, int __pyx_skip_dispatch); /*proto*/\n"
OF_PYTHON = """\
static PyObject *__pyx_pw_m_1walk(PyObject *__pyx_self,
#if CYTHON_METH_FASTCALL
PyObject *const *__pyx_args
#endif
); /*proto*/
"""
SPECIAL = "static int __pyx_pw_m_1C_1__init__(PyObject *__pyx_v_self, PyObject *__pyx_args); /*proto*/\n"
PICKLED = (
    "static PyObject *__pyx_pf_m_1C_4__reduce_cython__(struct __pyx_obj_m_C *__pyx_v_self); /* proto */\n"
)
GENERATOR = "static PyObject *__pyx_gb_m_2generator(__pyx_CoroutineObject *__pyx_generator); /* proto */\n"
MARK = "CYTHON_SMALL_CODE "


@pytest.fixture(scope="module")
def cheaper() -> Callable[..., str]:
    """What ``.build/cheaper.py`` does to the C of a module."""
    made: Callable[..., str] = runpy.run_path(str(TOP / ".build" / "cheaper.py"))["cheaper"]
    return made


def test_types_are_imported_only_where_they_are_used(cheaper: Callable[..., str]) -> None:
    def text(*names: str) -> str:
        return IMPORTS.format("Type", MODULE.format("".join(TYPE.format(name) for name in names)))

    declared = DECLARED.format("Used") + DECLARED.format("Idle") + DECLARED.format("Called")
    uses = "  __Pyx_TypeTest(o, __pyx_mstate_global->__pyx_ptype_Used);\n  __pyx_vtabptr_Called->walk(o);\n"
    assert cheaper(declared + uses + text("Idle", "Used", "Called"), True) == (
        declared + uses + text("Used", "Called")
    )


def test_modules_of_which_no_type_is_used_are_not_imported_for_types(cheaper: Callable[..., str]) -> None:
    declared = DECLARED.format("Idle")
    imports = IMPORTS.format("Type", MODULE.format(TYPE.format("Idle")))
    assert cheaper(declared + imports, True) == declared + IMPORTS.format("Type", "")


def test_variables_are_imported_only_where_they_are_used(cheaper: Callable[..., str]) -> None:
    declared = "".join(
        f"static int *__pyx_vp_{name} = 0;\n#define __pyx_v_{name} (*__pyx_vp_{name})\n"
        for name in ("m_USED", "m_IDLE")
    )
    use = "  __pyx_r = __pyx_v_m_USED;\n"

    def text(*names: str) -> str:
        return declared + use + IMPORTS.format("Variable", "".join(VARIABLES.format(name) for name in names))

    assert cheaper(text("m_IDLE", "m_USED"), True) == text("m_USED")


@pytest.mark.parametrize("is_called_often", [False, True])
def test_pickling_is_not_optimised_and_special_methods_are(
    cheaper: Callable[..., str], is_called_often: bool
) -> None:
    assert cheaper(PICKLED, is_called_often) == MARK + PICKLED
    for function in (OF_C, SPECIAL):
        assert cheaper(function, is_called_often) == function


def test_what_only_python_calls_is_optimised_where_it_is_called_often(cheaper: Callable[..., str]) -> None:
    for function in (OF_PYTHON, GENERATOR):
        assert cheaper(function, False) == MARK + function
        assert cheaper(function, True) == function


def test_leaves_that_are_called_often_are_leaves() -> None:
    assert set(LEAVES) >= CALLED
