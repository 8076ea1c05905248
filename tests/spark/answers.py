"""The ten questions of ``kdissect help spark``: their answers, checked against ``kdissect stats``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import pytest

from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.help import page
from kdissect.insight.judge import Judge
from kdissect.present.findings import FINDINGS
from tests.spark.test_stats import on_one_machine, rows_of

Rows = list[dict[str, Any]]
_HOUR = 3_600_000_000_000


def questions() -> dict[str, str]:
    """By the question, its query."""
    (block,) = re.findall(r"```sql\n(-- .*?)```", page("spark"), re.DOTALL)
    return dict(re.findall(r"-- (.*?\?)\n-- kdissect spark [^\n]*\n(.*?);\n", block, re.DOTALL))


def makers() -> dict[str, list[str]]:
    """By the question, the words of the command that makes its tables, without ``kdissect``."""
    found = re.findall(r"-- (.*?\?)\n-- kdissect (spark [^\n]*)\n", page("spark"))
    return {question: command.split() for question, command in found}


def for_all() -> list[list[str]]:
    """The same of the commands that make the tables of all questions."""
    (block,) = re.findall(r"Two commands make.*?```sh\n(.*?)```", page("spark"), re.DOTALL)
    return [line.split()[1:] for line in block.splitlines()]


def alone(points: Sequence[Sequence[Event]], text: str) -> Rows:
    """The rows of a statistic, or of findings, on one machine: those of each capture point."""
    return list(chain.from_iterable(_rows(events, text) for events in points))


def _rows(events: Iterable[Event], text: str) -> Rows:
    if text == "findings":
        judge = Judge()
        for event in events:
            judge.feed(event)
        return rows_of(FINDINGS, judge.judged().findings)
    (fold,) = on_one_machine(events, [text])
    return fold.result()


def _summed(rows: Iterable[dict[str, Any]], key: Callable[[dict[str, Any]], Any], *of: str) -> Any:
    """By key, sums of columns; or how many rows there are."""
    out: dict[Any, Counter[str]] = {}
    for row in rows:
        counter = out.setdefault(key(row), Counter())
        for name in of or ("rows",):
            counter[name] += (row[name] or 0) if of else 1
    return out


def check(
    answers: Mapping[str, Rows], tables: Sequence[Sequence[Event]], whole: Sequence[Sequence[Event]]
) -> None:
    """See that the answers are those of ``kdissect stats``.

    :param tables: the events of each capture point of which the tables are.
    :param whole: those of which the statistics are, with what is open at the end.
    """
    writes, slow, errors, behind, rebalances, throttled, versions, hosts, slowest, wrong = answers.values()
    produced = [row for row in alone(tables, "topics") if row["direction"] == "produce"]
    assert _summed(writes, lambda row: row["topic"], "records") == _summed(
        produced, lambda row: row["topic"], "records"
    )
    _check_times(slow, tables)
    by_error = _summed(
        alone(tables, "errors,client_id"), lambda row: (row["client_id"], row["error"]), "count"
    )
    asked = _summed(errors, lambda row: (row["client_id"], row["error"]), "exchanges")
    for key, count in asked.items():  # a response may have several: one of them is the exchange's
        assert count["exchanges"] <= by_error[key]["count"]
    assert asked
    assert _summed(errors, lambda row: row["error"], "exchanges") == _summed(
        [row for row in alone(tables, "traffic,error") if row["error"]], lambda row: row["error"], "exchanges"
    )
    lag = alone(whole, "lag")
    of_group = _summed(lag, lambda row: (row["group"], row["topic"]), "lag")
    assert {(row["group"], row["topic"]): row["lag"] or 0 for row in behind} == {
        key: count["lag"] for key, count in of_group.items()
    }
    assert max(row["worst"] or 0 for row in behind) == max(row["lag_max"] or 0 for row in lag)
    begun = alone(whole, "rebalances")
    by_trigger = _summed(begun, lambda row: (row["group"], row["trigger"]))
    assert {(row["group"], row["trigger"]): row["rebalances"] for row in rebalances} == {
        key: count["rows"] for key, count in by_trigger.items()
    }
    assert sum(row["stopped_ns"] or 0 for row in rebalances) == sum(row["stopped_ns"] or 0 for row in begun)
    quotas = _summed(alone(tables, "srt,client_id"), lambda row: row["client_id"], "throttled", "throttle_ms")
    assert _summed(throttled, lambda row: row["client_id"], "exchanges", "told_ms") == {
        key: Counter(exchanges=count["throttled"], told_ms=count["throttle_ms"])
        for key, count in quotas.items()
        if count["throttled"]
    }
    assert sum(row["exchanges"] for row in versions) == sum(
        row["count"] for row in alone(whole, "versions") if row["verdict"] != "ok"
    )
    sizes = ("request_bytes", "response_bytes")
    assert _summed(hosts, lambda row: (row["client_host"], row["broker_host"]), *sizes) == _summed(
        alone(tables, "connections"), lambda row: (_host(row["client"]), _host(row["broker"])), *sizes
    )
    assert sorted((row["number"], row["taken_ns"]) for row in slowest) == sorted(
        (row["number"], row["taken_ns"]) for row in alone(whole, "slowest")
    )
    assert _summed(wrong, lambda row: (row["severity"], row["finding"]), "findings") == {
        key: Counter(findings=count["rows"])
        for key, count in _summed(
            alone(whole, "findings"), lambda row: (row["severity"], row["finding"])
        ).items()
    }


def _host(end: str) -> str:
    return end.rpartition(":")[0]


def _check_times(slow: Rows, tables: Sequence[Sequence[Event]]) -> None:
    """By hour, broker, API and version: a statistic of each hour's exchanges."""
    hours: dict[int, list[Event]] = {}
    for exchange in _timed(tables):
        hours.setdefault((exchange.request_time_ns or 0) // _HOUR, []).append(exchange)
    times = {
        (hour, row["broker"], row["api"], row["api_version"]): row
        for hour, events in hours.items()
        for row in _rows(events, "srt,broker")
        if row["count"]
    }

    def place(row: dict[str, Any]) -> Any:
        hour = int(row["hour"].timestamp()) // 3_600
        return hour, row["broker"], row["api"], row["api_version"]

    assert {place(row): row["exchanges"] for row in slow} == {key: row["count"] for key, row in times.items()}
    for row in slow:
        assert row["p99_ns"] == pytest.approx(times[place(row)]["p99_ns"], rel=1 / 100)


def _timed(tables: Iterable[Iterable[Event]]) -> Iterator[Exchange]:
    for event in chain.from_iterable(tables):
        if isinstance(event, Exchange) and event.request_time_ns is not None:
            yield event
