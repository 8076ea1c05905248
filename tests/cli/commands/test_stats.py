"""``kdissect stats``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kdissect.analysis.catalogue import STATISTICS
from kdissect.analysis.fold import Row
from tests.amount import some
from tests.analysis.folds import case_of, rows_of
from tests.cli.run import Ran, run
from tests.kafka import Talk, request, response
from tests.lab import Case
from tests.present.captures import write_capture

CASE = "java43-groups"
CAPTURE = Case(CASE).capture

Command = Callable[..., Ran]


@pytest.fixture
def stats(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return lambda *arguments: run(capsysbinary, "stats", *arguments)


@pytest.mark.parametrize("name", STATISTICS)
def test_ndjson_has_the_rows_of_the_statistic(name: str, stats: Command) -> None:
    ran = stats(CAPTURE, "-z", name, "-T", "ndjson")
    assert (ran.code, ran.err) == (0, "")
    assert [json.loads(line) for line in ran.lines] == rows_of(name, CASE)


@pytest.mark.parametrize("name", STATISTICS)
def test_a_table_has_a_heading_and_a_line_a_row(name: str, stats: Command) -> None:
    ran = stats(CAPTURE, "-z", name)
    assert (ran.code, ran.err) == (0, "")
    assert len(ran.lines) == 1 + len(rows_of(name, CASE))
    assert not any(line.endswith(" ") for line in ran.lines)


def test_only_what_the_filter_shows_is_counted(stats: Command) -> None:
    rows = [json.loads(line) for line in stats(CAPTURE, "-z", "srt", "-T", "ndjson").lines]
    chosen = stats(CAPTURE, "-z", "srt", "-T", "ndjson", "-Y", "api in {Fetch, Heartbeat}").lines
    assert [json.loads(line) for line in chosen] == [
        row for row in rows if row["api"] in ("Fetch", "Heartbeat")
    ]
    (row,) = stats(CAPTURE, "-z", "srt", "-T", "ndjson", "-Y", "nowhere", "-e", "count").lines or [
        '{"count": 0}'
    ]
    assert json.loads(row) == {"count": 0}
    total = sum(json.loads(row)["count"] for row in stats(CAPTURE, "-z", "srt", "-T", "ndjson").lines)
    parts = 0
    for text in ("latency < 5ms", "not latency < 5ms"):
        lines = stats(CAPTURE, "-z", "srt", "-T", "ndjson", "-Y", text).lines
        parts += sum(json.loads(line)["count"] for line in lines)
        assert lines
    assert parts == total


@pytest.mark.parametrize(
    ("name", "form"),
    [
        *((name, "ndjson") for name in STATISTICS),
        *((name, form) for form in ("table", "csv", "parquet") for name in some(STATISTICS, 4)),
    ],
)
def test_every_statistic_takes_a_filter_in_every_format(
    name: str, form: str, stats: Command, tmp_path: Path
) -> None:
    path = tmp_path / "out"
    sizes = []
    # Every connection of the capture has an exchange, else some count without a filter only.
    capture = Case(case_of(name)).capture if name != "endpoints" else CAPTURE
    for text in ("api == Heartbeat and api == Vote", "not (api == Heartbeat and api == Vote)"):
        assert stats(capture, "-z", name, "-T", form, "-Y", text, "-o", path).code == 0
        sizes.append(path.stat().st_size)
    assert sizes[0] < sizes[1]
    assert stats(capture, "-z", name, "-T", form, "-o", path).code == 0
    # Faults of no exchange are counted without a filter only.
    assert path.stat().st_size == sizes[1] or (name == "damage" and path.stat().st_size > sizes[1])


def test_connections_are_those_with_a_shown_exchange(stats: Command) -> None:
    whole = [json.loads(line) for line in stats(CAPTURE, "-z", "connections", "-T", "ndjson").lines]
    found = [
        json.loads(line)
        for line in stats(CAPTURE, "-z", "connections", "-T", "ndjson", "-Y", "api == Heartbeat").lines
    ]
    assert 0 < len(found) < len(whole)
    ends = {row["connection"]: row["end"] for row in whole}
    assert all(row["end"] == ends[row["connection"]] == "fin" for row in found)


def test_a_wrong_filter_is_told_with_its_place_before_anything_is_read(stats: Command) -> None:
    ran = stats("no such file", "-z", "srt", "-Y", "error or latncy > 5ms")
    assert (ran.code, ran.out) == (2, b"")
    assert ran.err.split("\n") == [
        "kdissect: -Y: position 10: there is no field latncy; did you mean latency?",
        "  error or latncy > 5ms",
        "           ^~~~~~",
        "",
    ]


def test_statistics_of_what_is_slow(stats: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDISSECT_SLOW_MS", "5")
    found = stats(CAPTURE, "-z", "srt", "--slow", "-T", "ndjson").lines
    assert found == stats(CAPTURE, "-z", "srt", "-Y", "slow", "-T", "ndjson").lines
    rows = [json.loads(line) for line in found]
    assert rows
    assert all(row["work_count"] == 0 or row["min_ns"] > 5_000_000 for row in rows)
    assert {row["api"] for row in rows}.isdisjoint({"JoinGroup", "SyncGroup"})


def test_times_durations_and_sizes_are_for_people(stats: Command) -> None:
    heading, *lines = stats(CAPTURE, "-z", "io,5s", "-e", "start_ns,interval_ns,request_bytes").lines
    assert heading.split() == ["start", "interval", "request_bytes"]
    assert lines[1].split() == ["0.369436", "5.00", "s", "13.0", "KiB"]
    assert (
        stats(CAPTURE, "-z", "io,5s", "-e", "start_ns", "-t", "u").lines[2].strip()
        == "2026-11-21T09:13:10.000000Z"
    )


def test_csv_and_tsv(stats: Command) -> None:
    wanted = rows_of("topics", CASE)
    rows = list(csv.DictReader(io.StringIO(stats(CAPTURE, "-z", "topics", "-T", "csv").out.decode())))
    assert [(row["topic"], int(row["records"]), row["codecs"]) for row in rows] == [
        (row["topic"], row["records"], json.dumps(row["codecs"])) for row in wanted
    ]
    rates = [row["records_per_s"] for row in rows]
    assert [float(rate) if rate else None for rate in rates] == [row["records_per_s"] for row in wanted]
    assert len(stats(CAPTURE, "-z", "topics", "-T", "tsv").lines) == len(wanted) + 1


@pytest.mark.parametrize("name", STATISTICS)
def test_parquet(name: str, stats: Command, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "out.parquet"
    assert stats(CAPTURE, "-z", name, "-T", "parquet", "-o", path).code == 0
    assert parquet.read_table(path).to_pylist() == rows_of(name, CASE)


def test_several_tables(stats: Command) -> None:
    ran = stats(CAPTURE, "-z", "srt", "-z", "groups")
    assert ran.lines[0] == "srt"
    assert ran.lines[ran.lines.index("") + 1] == "groups"
    rows = [json.loads(line) for line in stats(CAPTURE, "-z", "srt", "-z", "groups", "-T", "ndjson").lines]
    assert {row["table"] for row in rows} == {"srt", "groups"}
    assert [without_table(row) for row in rows if row["table"] == "groups"] == rows_of("groups", CASE)


def without_table(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "table"}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("-z", "topcs"), "did you mean topics"),
        (("-z", "io,1x"), "the interval is a number"),
        (("-z", "srt,brokr"), "broker, client, client_id"),
        (("-z", "srt", "-z", "io", "-T", "csv"), "prints only one table"),
        (("-z", "srt", "-e", "apy"), "did you mean api"),
        (("-z", "srt", "-T", "xml"), "xml"),
        ((), "-z"),
    ],
)
def test_what_is_asked_for_wrongly(arguments: tuple[str, ...], complaint: str, stats: Command) -> None:
    ran = stats(CAPTURE, *arguments)
    assert (ran.code, ran.out) == (2, b"")
    assert complaint in ran.err
    assert ran.err.count("\n") == 1


def test_exit_codes(stats: Command, tmp_path: Path) -> None:
    assert stats("-z", "srt").code == 2
    assert stats(tmp_path / "none", "-z", "srt").code == 3
    (tmp_path / "empty").write_bytes(b"no capture")
    assert stats(tmp_path / "empty", "-z", "srt").code == 3
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(write_capture(tmp_path / "whole", talk()).read_bytes()[:-7])
    assert stats(cut, "-z", "topics").code == 3
    assert stats(CAPTURE, "-z", "srt", "--strict", "--exit-status").code == 0
    assert stats(Case("midstream").capture, "-z", "errors", "--exit-status").code in (0, 1)
    assert stats(tmp_path / "whole", "-z", "groups", "--exit-status").code == 1
    assert stats(Case("java43-basic-loss").capture, "-z", "srt", "--strict").code == 4


def test_hostile_names_reach_no_terminal(stats: Command, tmp_path: Path) -> None:
    path = write_capture(tmp_path / "hostile.pcapng", talk("\x1b[2J\u202eevil\n"))
    for name in ("topics", "clients", "connections", "srt,client_id"):
        out = stats(path, "-z", name).out.decode()
        assert "\x1b" not in out
        assert "\u202e" not in out
        assert "\\x1b[2J\\u202eevil\\n" in out
    rows = [json.loads(line) for line in stats(path, "-z", "clients", "-T", "ndjson").lines]
    assert rows[0]["client_id"] == "\x1b[2J\u202eevil\n"
    assert b"\x1b" not in stats(path, "-z", "topics", "-T", "csv").out


def test_names_that_are_not_utf8_go_into_every_format(stats: Command, tmp_path: Path) -> None:
    path = write_capture(tmp_path / "bytes.pcapng", talk({"base64": "/w=="}, "client"))
    for form in ("table", "ndjson", "csv", "tsv", "parquet", "arrow"):
        ran = stats(path, "-z", "topics", "-T", form, "-o", tmp_path / "out")
        assert (ran.code, ran.err) == (0, "")
        assert b"\\xff" in (tmp_path / "out").read_bytes()


def test_a_limit_that_was_hit_is_told(
    stats: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDISSECT_LIMITS_ROWS", "2")
    ran = stats(CAPTURE, "-z", "connections")
    assert len(ran.lines) == 3
    assert "connections: more than 2 rows, the limit" in ran.err


def talk(name: Any = "orders", client_id: str | None = None) -> Talk:
    """A produce request to a topic of this name, by a client of this name too, if it is not told."""
    client = name if client_id is None else client_id
    data: list[Any] = [{"name": name, "partitionData": [{"index": 0, "records": ""}]}]
    answer: dict[str, Any] = {"index": 0, "errorCode": 3, "baseOffset": 0, "logAppendTimeMs": -1}
    answers = [{"name": name, "partitionResponses": [{**answer, "logStartOffset": 0}]}]
    return (
        Talk()
        .ask(request("ApiVersions", 0, 1, client))
        .answer(response("ApiVersions", 0, 1, errorCode=0, apiKeys=[]))
        .ask(request("Produce", 5, 2, client, transactionalId=None, acks=1, timeoutMs=1, topicData=data))
        .answer(response("Produce", 5, 2, responses=answers, throttleTimeMs=0))
        .close()
    )
