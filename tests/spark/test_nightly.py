"""Runs that add what is new, without Spark: they find what one reading of all files finds."""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kdissect.limits import Limits
from kdissect.model import Fault
from kdissect.spark import nightly as runs
from kdissect.spark import tailing
from kdissect.spark.replay import new_pass
from kdissect.spark.runs import RunPlan, Runs
from kdissect.spark.settings import TableSettings
from kdissect.spark.spool import FileSpan
from kdissect.spark.states import States
from kdissect.spark.stream_state import Carried
from tests.spark.cuts import cut
from tests.spark.nights import NIGHTS, RULE, Made, Week
from tests.spark.same import CAPTURES
from tests.spark.simulated import Nightly


def test_a_week_is_one_reading(tmp_path: Path) -> None:
    week, nightly, made = Week(tmp_path / "in"), Nightly(tmp_path / "state", RULE), Made()
    late = []
    for _ in week:
        for point, event in nightly.add(*sorted((tmp_path / "in").iterdir())):
            made.add(point, event)
            late += [event.message] if isinstance(event, Fault) and event.kind == "late-file" else []
    assert len(week.paths()) > 2 * NIGHTS * 3
    (line,) = late
    assert "broker-3/day-2-21.pcap" in line
    found, expected = made.rows(), week.expected()
    for name, rows in expected.items():
        assert found[name] == rows, name
        assert rows, name


def test_the_state_of_another_release_stays_until_it_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    files = sorted(cut(CAPTURES / "basic-kafka43.pcapng", tmp_path / "in", 3))
    states = States(str(tmp_path / "state"))
    states.prepare()
    with monkeypatch.context() as older:
        older.setattr("kdissect.__version__", "0.0.1")
        for batch in (1, 2):
            states.save("", batch, Carried(new_pass(TableSettings())))
    history = [
        [FileSpan("", str(file), file.stat().st_size, True, 1 + at, False)] for at, file in enumerate(files)
    ]

    def renew() -> None:
        number = pa.record_batch([[0]], names=["id"])
        list(runs._read_again([""], history, states.folder, 3, TableSettings(), False, [number]))

    with monkeypatch.context() as dying:
        dying.setattr(runs, "keep", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            renew()
    assert states.of_others(3) == [""]
    renew()
    assert states.of_others(3) == []
    carried = states.load("", 3)
    assert carried is not None
    assert (carried.packets, carried.final) == (313, set(map(str, files)))


def test_while_a_run_reads_it_is_shown_how_much_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing: Any = None  # neither a session nor a target is needed until the tasks run
    path = CAPTURES / "errors.pcapng"
    kept, asked = Runs(str(tmp_path)), runs.NightlyOptions(("exchanges",), (), TableSettings())
    shown: list[int] = []

    @contextmanager
    def showing(size: int) -> Iterator[None]:
        shown.append(size)
        yield

    def dies(*_: object, **__: object) -> None:
        assert shown
        raise KeyError("the machine went down")

    monkeypatch.setattr(runs, "add_batch", dies)
    for _ in range(2):  # it is done again
        with kept.held(), pytest.raises(KeyError):
            runs.add_new(nothing, [str(path)], nothing, asked, kept, print, print, shown=showing)
    assert shown == [path.stat().st_size] * 2


def idle_night(monkeypatch: pytest.MonkeyPatch, kept: Runs, path: Path) -> list[int]:
    """The numbers of the runs of a night; none of them does anything."""
    nothing: Any = None

    def ran(_: object, plan: RunPlan, *__: object) -> dict[str, Any]:
        row = {"run": plan.number}
        kept.begin(plan)
        kept.end(row)
        return row

    monkeypatch.setattr(runs, "_run", ran)
    asked = runs.NightlyOptions(("exchanges",), (), TableSettings())
    with kept.held():
        made = runs.add_new(nothing, [str(path)], nothing, asked, kept, print, print)
    return [each.row["run"] for each in made]


@pytest.mark.parametrize("damage", [None, b"{", b"{}", b'{"form": 1, "end": {"files": 7}}'])
def test_whether_a_file_ends_whole_is_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes | None
) -> None:
    path = tmp_path / "a.pcapng.gz"
    path.write_bytes(gzip.compress((CAPTURES / "errors.pcapng").read_bytes()))
    looked: list[str] = []

    def ends_whole(path: str, size: int, limits: Limits) -> bool:
        looked.append(path)
        return tailing.ends_whole(path, size, limits)

    monkeypatch.setattr(runs, "ends_whole", ends_whole)
    night = partial(idle_night, monkeypatch, Runs(str(tmp_path / "runs")), path)
    assert night() == [1]
    then = time.time() - 3_600
    os.utime(path, (then, then))
    assert [night() for _ in range(3)] == [[], [], []]
    assert len(looked) == 1
    if damage is None:
        os.utime(path, (then + 1, then + 1))
    else:
        (tmp_path / "runs" / "whole.json").write_bytes(damage)
    assert [night(), night()] == [[], []]
    assert len(looked) == 2


@pytest.mark.parametrize(("missing_bytes", "looks_again"), [(0, False), (7, True)])
def test_a_file_that_ends_whole_is_not_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing_bytes: int, *, looks_again: bool
) -> None:
    data = (CAPTURES / "errors.pcapng").read_bytes()
    path = tmp_path / "a.pcapng"
    path.write_bytes(data[: len(data) - missing_bytes])
    night = partial(idle_night, monkeypatch, Runs(str(tmp_path / "runs")), path)
    assert night() == [1]
    assert night() == []  # it was written to just now: more may come
    an_hour_ago = time.time() - 3_600
    os.utime(path, (an_hour_ago, an_hour_ago))
    assert night() == ([2] if looks_again else [])
    assert night() == []
    os.utime(path)
    path.write_bytes(data + data)
    assert night() == [3 if looks_again else 2]
