from __future__ import annotations

import time

import pytest

from kdissect import read
from kdissect.present import compared as module
from kdissect.present.compared import FIRST, LEFT_OUT, SAME, SECOND, ComparedLine, _merged, compared
from kdissect.present.tree import exchange_tree
from tests.cli.run import CAPTURES

EXCHANGES = sorted(read(CAPTURES / "errors.pcapng"), key=lambda each: each.number)
CREATED = [each for each in EXCHANGES if each.api == "CreateTopics"]


def test_what_one_exchange_alone_has_stands_beside_what_the_other_has() -> None:
    lines = list(compared(CREATED[0], CREATED[1]))
    first = [line.text for line in lines if line.sign == FIRST]
    second = [line.text for line in lines if line.sign == SECOND]
    assert first[0].startswith(f"Exchange {CREATED[0].number}: ")
    assert second[0].startswith(f"Exchange {CREATED[1].number}: ")
    assert any("correlationId" in text for text in first)
    assert any("correlationId" in text for text in second)
    assert not any("requestApiKey" in text for text in (*first, *second))


def test_an_exchange_does_not_differ_from_itself() -> None:
    lines = list(compared(CREATED[0], CREATED[0]))
    count = len(list(exchange_tree(CREATED[0])))
    assert lines == [ComparedLine(LEFT_OUT, f"{count:,} lines are the same")]


def test_every_line_is_shown_or_counted() -> None:
    lines = list(compared(CREATED[0], CREATED[1]))
    left_out = sum(int(line.text.split()[0]) for line in lines if line.sign == LEFT_OUT)
    same = sum(line.sign == SAME for line in lines)
    for exchange, sign in ((CREATED[0], FIRST), (CREATED[1], SECOND)):
        alone = sum(line.sign == sign for line in lines)
        assert alone + same + left_out == len(list(exchange_tree(exchange)))


def test_a_long_exchange_is_compared_in_part_which_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_LINES", 5)
    lines = list(compared(CREATED[0], CREATED[1]))
    assert lines[-1] == ComparedLine(LEFT_OUT, "only the first 5 lines of each are compared")


def test_elements_are_compared_with_those_of_the_same_index() -> None:
    one, other = (_tree(errors) for errors in ([0, 0, 7, 0], [0, 5, 7]))
    lines = list(_merged(one, other))
    assert [(line.sign, line.text.strip()) for line in lines if line.sign != SAME] == [
        (FIRST, "errorCode: 0"),
        (SECOND, "errorCode: 5"),
        (FIRST, "[3]"),
        (FIRST, "errorCode: 0"),
    ]


def test_lines_that_repeat_cost_no_more_than_others() -> None:
    one, other = _tree([0] * 40_000), _tree([0, 5] * 20_000)
    began = time.process_time()
    assert sum(1 for line in _merged(one, other) if line.sign == SECOND) == 20_000
    assert time.process_time() - began < 20  # it takes a twentieth of a second; all with all, an hour


def _tree(errors: list[int]) -> dict[tuple[str, ...], str]:
    lines: dict[tuple[str, ...], str] = {("body",): "body"}
    for at, error in enumerate(errors):
        lines["body", f"[{at}]"] = f"  [{at}]"
        lines["body", f"[{at}]", "errorCode"] = f"    errorCode: {error}"
    return lines
