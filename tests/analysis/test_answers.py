"""What follows from the bytes of an answer is read once for all answers of the same bytes."""

from __future__ import annotations

from typing import Any

from kdissect.analysis.answers import KnownAnswers
from kdissect.exchange import Exchange
from tests.analysis.test_lag import named

ONE, OTHER, THIRD = (f"{number:021d}A" for number in (1, 2, 3))


class Reader:
    """Says which topics an answer names, and counts how often it was asked."""

    def __init__(self) -> None:
        self.times = 0

    def read(self, answer: dict[str, Any]) -> list[str]:
        self.times += 1
        return [each["topicId"] for each in answer["topics"]]


def said(known: KnownAnswers[list[str]], exchange: Exchange) -> list[str]:
    assert exchange.response is not None
    return known.of(exchange, exchange.response)


def test_the_same_bytes_are_read_once() -> None:
    reader = Reader()
    known = KnownAnswers(reader.read)
    assert said(known, named(1, ONE)) == said(known, named(2, ONE)) == [ONE]
    assert reader.times == 1
    assert said(known, named(3, OTHER)) == [OTHER]
    assert reader.times == 2


def test_only_so_many_are_remembered() -> None:
    reader = Reader()
    known = KnownAnswers(reader.read, most=2)
    for topic_id in (ONE, OTHER, THIRD, OTHER, ONE):
        assert said(known, named(1, topic_id)) == [topic_id]
    assert reader.times == 4


def test_long_ones_are_read_each_time() -> None:
    reader = Reader()
    known = KnownAnswers(reader.read, most_bytes=10)
    assert said(known, named(1, ONE)) == said(known, named(2, ONE)) == [ONE]
    assert reader.times == 2
