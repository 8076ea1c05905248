"""Findings as they change from batch to batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kdissect.capture.files import read_packets
from kdissect.insight.judge import Judge
from kdissect.limits import DEFAULTS
from kdissect.spark.changes import FINDING_CHANGES, as_columns, change_batch, changes
from kdissect.spark.micro_batch import events_at_end, events_of_batch
from kdissect.spark.progress import Note
from kdissect.spark.questions import Judgement
from kdissect.spark.settings import TableSettings
from kdissect.spark.spool import FileSpan
from kdissect.spark.states import States
from tests.dissecting import dissect
from tests.spark.same import CAPTURES

JUDGEMENT = Judgement(DEFAULTS, {}, ())


def test_what_comes_changes_and_goes() -> None:
    before: dict[str, dict[str, Any]] = {}
    one, two = {"key": "1", "count": 1}, {"key": "2", "count": 1}
    assert changes(before, [one]) == [{"change": "new", **one}]
    assert changes(before, [one]) == []
    more = {"key": "1", "count": 2}
    assert changes(before, [more, two]) == [{"change": "changed", **more}, {"change": "new", **two}]
    assert changes(before, [two]) == [{"change": "over", **more}]
    assert changes(before, [one, two]) == [{"change": "new", **one}]


def stands(rows: list[dict[str, Any]]) -> list[str]:
    """How findings stand after all changes."""
    latest = {row["key"]: row for row in rows}
    found = [{**row, "change": None} for row in latest.values() if row["change"] != "over"]
    return sorted(map(repr, found))


@pytest.mark.parametrize("name", ["errors.pcapng", "consumer-group-kip848.pcapng", "loss.pcapng"])
def test_in_the_end_they_are_those_of_one_reading(tmp_path: Path, name: str) -> None:
    """Each batch loads what was kept: what findings are judged by is in it."""
    path, settings = CAPTURES / name, TableSettings()
    states = States(str(tmp_path / "state"))
    states.prepare()
    size, told = path.stat().st_size, []
    for batch, share in enumerate((0.3, 0.7, 0.7, 1.0)):
        span = FileSpan("", str(path), round(share * size), share == 1.0, 1, False)
        read = events_of_batch(states, batch, "", [span], settings, Note(None, ""), JUDGEMENT)
        assert list(read) or share == 0.7
        told.append(read.findings)
    end = events_at_end(states, 4, "", settings, JUDGEMENT)
    list(end)
    judge = Judge(DEFAULTS)
    for event in dissect(read_packets([path])):
        judge.feed(event)
    expected = [{"change": None, **row} for row in as_columns(judge.judged().findings)]
    assert expected
    assert told[2] == []
    assert stands([row for rows in (*told, end.findings) for row in rows]) == sorted(map(repr, expected))


def test_rows_have_the_columns_of_findings(tmp_path: Path) -> None:
    judge = Judge(DEFAULTS)
    for event in dissect(read_packets([CAPTURES / "errors.pcapng"])):
        judge.feed(event)
    rows = changes({}, as_columns(judge.judged().findings))
    batch = change_batch(FINDING_CHANGES, None, 7, rows)
    assert batch is not None
    assert batch.to_pylist() == [{"batch_number": 7, **row} for row in rows]
    assert change_batch(FINDING_CHANGES, None, 7, []) is None
