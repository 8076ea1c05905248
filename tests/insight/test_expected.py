"""What is found in the shipped captures is what ``expected.tsv`` has, whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.amount import some
from tests.insight.expected import COLUMNS, EXPECTED, captures, lines_of
from tests.insight.judged import CAPTURES


def expected() -> dict[str, list[str]]:
    """The lines of the file by capture."""
    heading, *lines = EXPECTED.read_text("utf-8").splitlines()
    assert heading.split("\t") == list(COLUMNS)
    found: dict[str, list[str]] = {}
    for line in lines:
        found.setdefault(line.partition("\t")[0], []).append(line)
    return found


@pytest.mark.parametrize("path", some(captures(), 14), ids=lambda path: str(path.relative_to(CAPTURES)))
def test_the_findings_of_a_capture(path: Path) -> None:
    assert list(lines_of(path)) == expected().get(str(path.relative_to(CAPTURES)), [])


def test_no_line_is_of_a_capture_that_is_gone() -> None:
    assert set(expected()) <= {str(path.relative_to(CAPTURES)) for path in captures()}


def test_no_healthy_capture_has_many_notices() -> None:
    for lines in expected().values():
        assert sum(line.split("\t")[4] == "notice" for line in lines) <= 5
