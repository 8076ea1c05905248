"""Runs that add what is new, without Spark: they find what one reading of all files finds."""

from __future__ import annotations

from pathlib import Path

from kdissect.model import Fault
from tests.spark.nights import NIGHTS, RULE, Made, Week
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
