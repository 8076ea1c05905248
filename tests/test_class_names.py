"""One word has one meaning."""

from __future__ import annotations

from pathlib import Path

from tests.class_names import shared_names


def test_no_two_classes_have_one_name() -> None:
    assert shared_names() == {}


def test_names_that_differ_in_an_underscore_are_one(tmp_path: Path) -> None:
    for folder, name in (("a", "Line"), ("b", "_Line"), ("c", "Line"), ("c", "Other")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / f"{name}.py").write_text(f"class {name}:\n    pass\n")
    assert shared_names((), tmp_path) == {"Line": ["a/Line.py", "b/_Line.py", "c/Line.py"]}
    assert shared_names(("a", "b"), tmp_path) == {"Line": ["a/Line.py", "b/_Line.py"]}
    assert shared_names(("a", "c"), tmp_path) == {"Line": ["a/Line.py", "c/Line.py"]}
    assert shared_names(("c",), tmp_path) == {}
