"""The ten questions of ``kdissect help spark``, each checked against ``kdissect stats``."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import kdissect.spark
from kdissect.cli import main
from kdissect.spark.target_files import TargetError
from tests.kafka import Talk, request, response
from tests.present.captures import write_capture
from tests.spark.answers import check, for_all, makers, questions
from tests.spark.same import CAPTURES
from tests.spark.test_stats import events_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLD = CAPTURES / "broker-0.9.pcap"
"""It has something for each question, but for the one on quotas."""


_OPTIONS = {"--table": "", "-z": "stats_"}
"""The options that name tables, and how their views begin."""


def _views_of(command: list[str]) -> set[str]:
    """The views of the tables that a command makes."""
    return {_OPTIONS[word] + name for word, name in pairwise(command) if word in _OPTIONS}


def test_there_are_ten() -> None:
    assert len(questions()) == 10


def test_each_names_the_command_that_makes_its_tables() -> None:
    assert list(makers()) == list(questions())
    for question, query in questions().items():
        read = set(re.findall(r"(?:from|join) (\w+)", query))
        assert _views_of(makers()[question]) == read, question
    every = set.union(*map(_views_of, makers().values()))
    assert set.union(*map(_views_of, for_all())) == every


def _throttled(path: Path) -> Path:
    """A client that a broker throttles twice, and another one that it does not."""
    talks = [Talk(bytes((10, 0, 0, last, 200, 0))) for last in (1, 3)]
    for talk, client, times in zip(talks, ("quick", "modest"), ((0, 100, 250), (0, 0, 0)), strict=True):
        asked = {"groupId": "g", "generationId": 1, "memberId": client}
        for number, throttle_ms in enumerate(times):
            talk.ask(request("Heartbeat", 1, number, client, **asked))
            talk.answer(response("Heartbeat", 1, number, throttleTimeMs=throttle_ms, errorCode=0))
    return write_capture(path, *talks)


def test_answers_are_those_of_stats(spark: SparkSession, tmp_path: Path) -> None:
    captures = [OLD, _throttled(tmp_path / "throttled.pcapng")]
    places = {"captures/*.pcapng": list(map(str, captures)), "tables": [str(tmp_path / "tables")]}
    for command in for_all():
        words = [each for word in command for each in places.get(word, [word])]
        assert main([*words, "--master", "local[2]", "-q"]) == 0
    made = kdissect.spark.views(spark, tmp_path / "tables")
    try:
        answers = {
            question: [row.asDict() for row in spark.sql(query).collect()]
            for question, query in questions().items()
        }
    finally:
        for name in made:
            spark.catalog.dropTempView(name)
    assert [question for question, rows in answers.items() if not rows] == []
    assert [row["client_id"] for row in answers["Which clients are throttled?"]] == ["quick"]
    events = [events_of(*captures)]
    check(answers, events, events)


def test_where_there_are_no_tables_one_line_says_so(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    foreign = tmp_path / "foreign"
    spark.range(1).write.parquet(str(foreign / "exchanges"))
    for place, kind, words in (
        ("none", FileNotFoundError, "there is no such folder"),
        (".", FileNotFoundError, "has no tables; kdissect spark batch and stats make them"),
        ("file", NotADirectoryError, "is a file; name the folder of the tables"),
        ("foreign", TargetError, "kdissect did not make this table: it has no column number"),
    ):
        with pytest.raises(kind) as raised:
            kdissect.spark.views(spark, tmp_path / place)
        assert str(raised.value).startswith(str(tmp_path / place))
        assert str(raised.value).endswith(words)
    (tmp_path / "foreign" / "connections").mkdir()
    assert main(["spark", "report", str(foreign), "--master", "local[2]"]) == 3
