"""Files of several capture points of one traffic, on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import run
from tests.points.places import BASIC, MS, brokers_of, elsewhere, packets_of, written

Told = Callable[..., bytes]


@pytest.fixture
def told(capsysbinary: pytest.CaptureFixture[bytes]) -> Told:
    def what(*arguments: object) -> bytes:
        done = run(capsysbinary, *arguments)
        assert done.code == 0, done.err
        return done.out

    return what


@pytest.fixture
def both(tmp_path: Path) -> tuple[str, str]:
    packets = elsewhere(packets_of(BASIC), brokers_of(BASIC), away_ns=5 * MS, ahead_ns=40 * MS)
    return written(tmp_path / "far.pcapng", packets), str(BASIC)


def rows(out: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_connections_have_a_row_of_each_point(told: Told, both: tuple[str, str]) -> None:
    found = rows(told("stats", *both, "-z", "connections", "-T", "ndjson"))
    alone = rows(told("stats", BASIC, "-z", "connections", "-T", "ndjson"))
    assert len(found) == 2 * len(alone)
    at_the_broker = [each for each in found if each["capture_point"] == "basic-kafka43"]
    assert [each | {"capture_point": None} for each in at_the_broker] == alone
    assert {each["clock_ahead_ns"] for each in found if each["capture_point"] == "far"} == {40 * MS}


@pytest.mark.parametrize("table", ["srt", "topics", "groups", "positions", "latency", "io,1s"])
def test_other_statistics_are_those_of_the_point_at_the_broker(
    table: str, told: Told, both: tuple[str, str]
) -> None:
    how = ("-z", table, "-T", "csv", "-q")
    assert told("stats", *both, *how) == told("stats", BASIC, *how)


def test_a_filter_knows_points_and_several_processes_change_nothing(
    told: Told, both: tuple[str, str]
) -> None:
    text = 'capture_point == "basic-kafka43" and also_at == "far" and between_ns == 10ms'
    chosen = ("-Y", text, "-T", "ndjson")
    found = told("read", *both, *chosen, "--jobs", "1")
    assert found.count(b"\n") > 50
    assert told("read", *both, *chosen, "--jobs", "2") == found
    assert told("read", *both, *chosen, "--two-pass") == found
    assert told("read", *reversed(both), *chosen) == found


def test_written_packets_are_those_of_the_rows(told: Told, both: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "out.pcapng"
    chosen = ("-Y", "api == Produce", "-T", "ndjson")
    shown = rows(told("read", *both, *chosen, "-w", path))
    assert shown
    again = rows(told("read", path, *chosen))
    requests = [sorted(json.dumps(each["request"]) for each in some) for some in (again, shown)]
    assert requests[0] == requests[1]


def test_explain_is_not_misled(told: Told, both: tuple[str, str]) -> None:
    ours, alone = (rows(told("explain", *paths, "-T", "ndjson")) for paths in (both, (BASIC,)))
    assert [each["finding"] for each in ours] == [each["finding"] for each in alone]
