from __future__ import annotations

import ast
import re
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from kdissect.model import endpoint_text
from kdissect.wording import EXTRAS, defect, how_to_install, plural

KDISSECT = Path(__file__).resolve().parents[1] / "kdissect"


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (1, "1 byte"), (2, "2 bytes"), (-1, "-1 bytes"), (1_234, "1,234 bytes")],
)
def test_one_is_singular_and_everything_else_plural(count: int, text: str) -> None:
    assert plural(count, "byte") == text


def test_words_without_a_plural_s_say_theirs() -> None:
    assert plural(1, "batch", "batches") == "1 batch"
    assert plural(3, "is", "are") == "3 are"


def test_what_is_to_be_installed_is_what_the_extras_install() -> None:
    project = tomllib.loads((KDISSECT.parent / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]

    def packages(requirements: list[str]) -> set[str]:
        names: set[str] = set()
        for each in requirements:
            found = re.match(r"'?([a-z0-9-]+)(?:\[([a-z,-]+)\])?", each)
            assert found
            inner = (found[2] or "").split(",")
            names |= packages([r for i in inner for r in extras[i]]) if found[1] == "kdissect" else {found[1]}
        return names

    for_tests = {"dev", "fuzz", "browser"}
    assert EXTRAS.keys() == {name for name, packages in extras.items() if packages} - for_tests
    for extra, told in EXTRAS.items():
        assert packages(told.split()) == packages(extras[extra])


def test_no_package_of_the_name_kdissect_is_asked_of_an_index() -> None:
    assert how_to_install("arrow") == "pip install pyarrow, or kdissect with its extra arrow"
    texts = [file.read_text(encoding="utf-8") for file in KDISSECT.rglob("*.py")]
    assert not any(re.search(r"pip install '?kdissect", text) for text in texts)


COUNTED = re.compile(r"^ (bytes|records|messages|headers|batches|elements|fields)\b")
"""Words that must not follow a number directly in a message."""


@pytest.mark.parametrize("package", ["protocol", "record", "embedded"])
def test_what_is_wrong_with_bytes_is_never_told_in_a_plural_written_by_hand(package: str) -> None:
    files = sorted((KDISSECT / package).glob("*.py"))
    assert files
    by_hand = [
        f"{file.name}:{text.lineno}"
        for file in files
        for text in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(text, ast.JoinedStr)
        for number, words in pairwise(text.values)
        if isinstance(number, ast.FormattedValue) and isinstance(words, ast.Constant)
        if COUNTED.match(str(words.value))
    ]
    assert by_hand == []


def test_a_defect_says_what_and_where_and_nothing_that_was_captured() -> None:
    with pytest.raises(ValueError, match="hunte") as caught:
        endpoint_text(b"hunter2")
    said = defect(caught.value)
    assert re.fullmatch(
        r"a defect in kdissect, please report it: AddressValueError in kdissect\.model, line \d+", said
    )


def test_a_defect_outside_of_kdissect_has_no_place() -> None:
    assert defect(KeyError("hunter2")) == "a defect in kdissect, please report it: KeyError"
