"""The ten questions of ``kdissect help spark``, each checked against ``kdissect stats``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kdissect.spark
from kdissect.cli import main
from kdissect.help import page
from kdissect.insight.judge import Judge
from kdissect.present.findings import FINDINGS
from tests.spark.same import CAPTURES
from tests.spark.test_stats import events_of, on_one_machine, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CAPTURE = CAPTURES / "transactions-kafka39.pcapng"
Rows = list[dict[str, Any]]


def questions() -> dict[str, str]:
    """By the question, its query."""
    (block,) = re.findall(r"```sql\n(-- .*?)```", page("spark"), re.DOTALL)
    return dict(re.findall(r"-- (.*?\?)\n(.*?);\n", block, re.DOTALL))


def test_there_are_ten() -> None:
    assert len(questions()) == 10


@pytest.fixture(scope="module")
def answers(spark: SparkSession, stored: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    out = tmp_path_factory.mktemp("questions")
    more = [str(CAPTURE), "--out", str(out), "--master", "local[2]", "-q"]
    tables = ("exchanges", "records", "connections")
    assert main(["spark", "batch", *(word for name in tables for word in ("--table", name)), *more]) == 0
    (out / "stats").symlink_to(stored / "stats")
    made = kdissect.spark.views(spark, out)
    assert {*tables, "stats_findings", "stats_lag"} <= set(made)
    try:
        return {
            question: [row.asDict() for row in spark.sql(query).collect()]
            for question, query in questions().items()
        }
    finally:
        for name in made:
            spark.catalog.dropTempView(name)


@pytest.fixture(scope="module")
def alone() -> Callable[[str], Rows]:
    """The rows of a statistic on one machine."""
    events = events_of(CAPTURE)

    def rows(text: str) -> Rows:
        if text == "findings":
            judge = Judge()
            for event in events:
                judge.feed(event)
            return rows_of(FINDINGS, judge.judged().findings)
        (fold,) = on_one_machine(events, [text])
        return fold.result()

    return rows


def summed(rows: Iterable[dict[str, Any]], key: Callable[[dict[str, Any]], Any], *of: str) -> Any:
    """By key, sums of columns; or how many rows there are."""
    out: dict[Any, Counter[str]] = {}
    for row in rows:
        counter = out.setdefault(key(row), Counter())
        for name in of or ("rows",):
            counter[name] += (row[name] or 0) if of else 1
    return out


def test_answers_are_those_of_stats(answers: dict[str, Rows], alone: Callable[[str], Rows]) -> None:
    writes, slow, errors, behind, rebalances, throttled, versions, hosts, slowest, wrong = answers.values()
    produced = [row for row in alone("topics") if row["direction"] == "produce"]
    assert summed(writes, lambda row: row["topic"], "records") == summed(
        produced, lambda row: row["topic"], "records"
    )

    def place(row: dict[str, Any]) -> Any:
        return row["broker"], row["api"], row["api_version"]

    times = {place(row): row for row in alone("srt,broker") if row["count"]}
    assert {place(row): row["exchanges"] for row in slow} == {key: row["count"] for key, row in times.items()}
    for row in slow:
        assert row["p99_ns"] == pytest.approx(times[place(row)]["p99_ns"], rel=1 / 100)
    by_error = summed(alone("errors,client_id"), lambda row: (row["client_id"], row["error"]), "count")
    for row in errors:  # a response may have several: one of them is the exchange's
        assert row["exchanges"] <= by_error[row["client_id"], row["error"]]["count"]
    assert errors
    lag = summed(alone("lag"), lambda row: (row["group"], row["topic"]), "lag")
    assert {(row["group"], row["topic"]): row["lag"] or 0 for row in behind} == {
        key: count["lag"] for key, count in lag.items()
    }
    assert {(row["group"], row["trigger"]): row["rebalances"] for row in rebalances} == {
        key: count["rows"]
        for key, count in summed(alone("rebalances"), lambda row: (row["group"], row["trigger"])).items()
    }
    assert summed(throttled, lambda row: row["client_id"], "exchanges") == {
        key: Counter(exchanges=count["throttled"])
        for key, count in summed(alone("srt,client_id"), lambda row: row["client_id"], "throttled").items()
        if count["throttled"]
    }
    assert sum(row["exchanges"] for row in versions) == sum(
        row["count"] for row in alone("versions") if row["verdict"] != "ok"
    )
    for name in ("request_bytes", "response_bytes"):
        assert sum(row[name] or 0 for row in hosts) == sum(row[name] or 0 for row in alone("connections"))
    assert [(row["number"], row["taken_ns"]) for row in slowest] == [
        (row["number"], row["taken_ns"]) for row in alone("slowest")
    ]
    assert summed(wrong, lambda row: (row["severity"], row["finding"]), "findings") == {
        key: Counter(findings=count["rows"])
        for key, count in summed(alone("findings"), lambda row: (row["severity"], row["finding"])).items()
    }


def test_views_of_nothing_are_none(spark: SparkSession, tmp_path: Path) -> None:
    assert kdissect.spark.views(spark, tmp_path) == []
    with pytest.raises(FileNotFoundError):
        kdissect.spark.views(spark, tmp_path / "none")
