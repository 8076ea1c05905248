"""The hottest functions of compiled modules work on no Python object."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("Cython")

TOP = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def check() -> dict[str, Any]:
    """What ``.build/hot_lines.py`` has."""
    return runpy.run_path(str(TOP / ".build" / "hot_lines.py"))


def test_no_hot_line_fell_back_to_python_objects(check: dict[str, Any]) -> None:
    for module, functions in check["HOT"].items():
        assert [str(each) for each in check["fallen"](module, functions)] == []


SOURCE = """
def untyped(data, at):
    value = data[at] << 8
    return value - 1


def typed(data, at):
    if at > len(data):
        raise ValueError(f"{at} of {len(data)}")
    return data[at] * 256 - 1


def looped(limits, data, size):
    most = limits.most
    while size > 0:
        size -= 1
    return most
"""
TYPES = """
cdef int typed(bytes data, Py_ssize_t at) except? -1
cpdef looped(limits, bytes data, Py_ssize_t size)
"""


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A folder with one module, which has types for two of its functions."""
    (tmp_path / "sample.py").write_text(SOURCE)
    (tmp_path / "sample.pxd").write_text(TYPES)
    return tmp_path


def test_lines_without_types_are_named(check: dict[str, Any], sample: Path) -> None:
    found = check["fallen"]("sample", ("untyped",), sample)
    assert [(each.line, each.text) for each in found] == [
        (3, "value = data[at] << 8"),
        (4, "return value - 1"),
    ]
    assert str(found[1]).startswith("sample.py:4: untyped: return value - 1  (")


def test_typed_lines_loops_and_lines_that_raise_are_not(check: dict[str, Any], sample: Path) -> None:
    assert check["fallen"]("sample", ("typed",), sample) == []
    assert check["fallen"]("sample", ("looped loops",), sample) == []
    assert [each.text for each in check["fallen"]("sample", ("looped",), sample)] == ["most = limits.most"]


def test_a_function_that_is_not_there_is_told(check: dict[str, Any], sample: Path) -> None:
    with pytest.raises(LookupError, match="no function gone"):
        check["fallen"]("sample", ("gone",), sample)
