"""The table of mutations fits the code; ``python -m tests.mutations`` tries them, which takes minutes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutations import TOP, Mutation, is_caught, mutations

ALL = tuple(mutations())


@pytest.mark.parametrize("mutation", ALL, ids=lambda each: each.path)
def test_it_still_applies(mutation: Mutation) -> None:
    assert mutation.applies
    assert mutation.new not in ("", mutation.old)
    assert all((TOP / each).exists() for each in mutation.tests)


def test_there_are_some_in_every_package() -> None:
    packages = {each.name for each in (TOP / "kdissect").iterdir() if (each / "__init__.py").exists()}
    touched = {Path(each.path).parts[1] for each in ALL}
    assert len(ALL) >= 30
    assert packages - touched == {"help"}  # the package help has no code


@pytest.mark.parametrize(("new", "caught"), [("return 2", True), ("return 1  # as before", False)])
def test_one_is_caught_where_tests_fail(new: str, caught: bool, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("def one() -> int:\n    return 1\n")
    (tmp_path / "test_one.py").write_text("from one import one\ndef test_one():\n    assert one() == 1\n")
    assert is_caught(Mutation("one.py", "return 1", new, ("test_one.py",)), tmp_path) is caught
    assert "return 1\n" in (tmp_path / "one.py").read_text()
