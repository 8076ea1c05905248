from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

from kdissect.wording import plural

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


COUNTED = re.compile(r"^ (bytes|records|messages|headers|batches|elements|fields)\b")
"""What may not stand behind a number without a word for one."""


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
