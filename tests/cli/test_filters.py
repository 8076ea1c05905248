"""``read -Y``: what is shown, in every format, and what a wrong filter says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kdissect.capture.files import read_packets
from kdissect.cli.formats import LINES
from kdissect.model import Packet
from kdissect.present.tables import FORMATS
from tests.cli.run import CAPTURES, ROOT, run, run_with
from tests.kafka import Talk, request, response
from tests.present.captures import write_capture

Capsys = pytest.CaptureFixture[bytes]
CAPTURE = CAPTURES / "basic-kafka43.pcapng"


def numbers(capsysbinary: Capsys, *arguments: object) -> list[int]:
    lines = run(capsysbinary, CAPTURE, "-T", "ndjson", "-e", "number", *arguments).lines
    return [json.loads(line)["number"] for line in lines]


def test_only_what_the_filter_chooses_is_shown(capsysbinary: Capsys) -> None:
    rows = [json.loads(line) for line in run(capsysbinary, CAPTURE, "-T", "ndjson").lines]
    expected = [row["number"] for row in rows if row["api"] == "Produce" and row["latency_ns"]]
    assert expected
    assert numbers(capsysbinary, "-Y", "api == Produce and latency") == expected
    assert numbers(capsysbinary, "-Y", "api == Produce and latency", "-c", 2) == expected[:2]


@pytest.mark.parametrize("form", [*LINES, *FORMATS])
def test_every_format_takes_a_filter(form: str, tmp_path: Path, capsysbinary: Capsys) -> None:
    path = tmp_path / "out"
    nothing, some, everything = (
        (run(capsysbinary, CAPTURE, "-T", form, "-o", path, "-Y", text).code, path.stat().st_size)
        for text in ("api == Vote", "api == Produce", "number >= 0")
    )
    assert (nothing[0], some[0], everything[0]) == (0, 0, 0)
    assert nothing[1] < some[1] < everything[1]
    assert run(capsysbinary, CAPTURE, "-T", form, "-o", path).code == 0
    assert path.stat().st_size == everything[1]


def test_of_the_records_those_that_match_are_shown(capsysbinary: Capsys) -> None:
    rows = run(capsysbinary, CAPTURE, "-T", "records").lines
    expected = [line for line in rows if json.loads(line)["key"] == "key-7"]
    assert 0 < len(expected) < len(rows)
    assert run(capsysbinary, CAPTURE, "-T", "records", "-Y", "record.key == key-7").lines == expected
    others = run(capsysbinary, CAPTURE, "-T", "records", "-Y", "not record.key == key-7").lines
    assert sorted(others + expected) == sorted(rows)


def test_of_the_connections_those_with_a_shown_exchange_are_shown(capsysbinary: Capsys) -> None:
    rows = [
        json.loads(line) for line in run(capsysbinary, CAPTURE, "-T", "ndjson", "-Y", "api == Produce").lines
    ]
    shown = run(capsysbinary, CAPTURE, "-T", "connections", "-Y", "api == Produce").lines
    assert [json.loads(line)["connection"] for line in shown] == sorted({row["connection"] for row in rows})


@pytest.mark.parametrize("form", ["records", "connections", "faults"])
@pytest.mark.parametrize("written", FORMATS)
def test_every_table_takes_a_filter_in_every_format(
    form: str, written: str, tmp_path: Path, capsysbinary: Capsys
) -> None:
    capture, text = (
        (CAPTURES / "loss.pcapng", "fault.kind == gap") if form == "faults" else (CAPTURE, "api == 0")
    )
    sizes = []
    for chosen in ("api == Vote", text, "not api == Vote"):
        path = tmp_path / "out"
        assert run(capsysbinary, capture, "-T", f"{form}.{written}", "-o", path, "-Y", chosen).code == 0
        sizes.append(path.stat().st_size)
    assert sizes[0] < sizes[1] <= sizes[2]


def test_of_the_faults_those_that_match_are_shown(capsysbinary: Capsys) -> None:
    loss = CAPTURES / "loss.pcapng"
    rows = run(capsysbinary, loss, "-T", "faults").lines
    expected = [line for line in rows if json.loads(line)["kind"] == "gap"]
    assert expected
    assert run(capsysbinary, loss, "-T", "faults", "-Y", "fault.kind == gap").lines == expected


def test_the_packets_of_what_is_shown_are_written(tmp_path: Path, capsysbinary: Capsys) -> None:
    path = tmp_path / "out.pcapng"
    rows = run(capsysbinary, CAPTURE, "-T", "ndjson", "-Y", "api == Produce", "-w", path).lines
    wanted = {json.loads(row)["request_packet"] for row in rows}
    packets = {item.number: item.data for item in read_packets([CAPTURE]) if isinstance(item, Packet)}
    written = {item.data for item in read_packets([path]) if isinstance(item, Packet)}
    assert {packets[number] for number in wanted} <= written
    assert len(written) < len(packets)


def test_nothing_shown_is_told_by_the_exit_code_on_demand(capsysbinary: Capsys) -> None:
    assert run(capsysbinary, CAPTURE, "-Y", "api == Vote").code == 0
    assert run(capsysbinary, CAPTURE, "-Y", "api == Vote", "--exit-status").code == 1
    assert run(capsysbinary, CAPTURE, "-Y", "api == Fetch", "--exit-status").code == 0


def test_a_wrong_filter_is_told_with_its_place(capsysbinary: Capsys) -> None:
    ran = run(capsysbinary, CAPTURE, "-Y", "error or latncy > 5ms")
    assert (ran.code, ran.out) == (2, b"")
    assert ran.err.split("\n") == [
        "kdissect: -Y: position 10: there is no field latncy; did you mean latency?",
        "  error or latncy > 5ms",
        "           ^~~~~~",
        "",
    ]


def test_a_wrong_filter_is_told_before_anything_is_read(capsysbinary: Capsys) -> None:
    assert run(capsysbinary, "no such file", "-Y", "latncy > 5ms").code == 2


def test_what_is_shown_of_a_wrong_filter_is_safe(capsysbinary: Capsys) -> None:
    ran = run(capsysbinary, CAPTURE, "-Y", "\x1b[31m\u202e > \x07")
    assert ran.code == 2
    assert all(line.isprintable() for line in ran.err.split("\n"))


def test_what_may_not_be_meant_is_hinted_at(capsysbinary: Capsys) -> None:
    ran = run(capsysbinary, CAPTURE, "-Y", "eror")
    assert (ran.code, ran.err) == (0, "kdissect: -Y: eror is searched as text; did you mean error?\n")


def test_standard_input_can_be_filtered(capsysbinary: Capsys) -> None:
    ran = run_with(CAPTURE.read_bytes(), "read", "-", "-T", "ndjson", "-Y", "error")
    assert ran.out == run(capsysbinary, CAPTURE, "-T", "ndjson", "-Y", "error").out


def test_only_a_filter_loads_what_filters_need() -> None:
    code = (
        "import sys; from kdissect.cli import main\n"
        "for more in ([], ['-Y', 'api == Fetch'], ['-Y', 'topic ~ x']):\n"
        f"    main(['read', {str(CAPTURE)!r}, '-T', 'ndjson', '-c', '5', *more])\n"
        "    print(*sorted({'lark', 're2', 'numpy', 'kdissect.filter'} & set(sys.modules)), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, cwd=ROOT, check=True, text=True)
    assert ran.stderr.splitlines() == ["", "kdissect.filter lark", "kdissect.filter lark re2"]


def test_fields_lists_what_a_filter_can_ask(capsysbinary: Capsys) -> None:
    rows = [json.loads(line) for line in run(capsysbinary, "fields", "filter", "-T", "ndjson").lines]
    assert {row["table"] for row in rows} == {"filter"}
    assert {"partition", "acks", "record.key", "fault.layer", "no_response"} <= {row["name"] for row in rows}
    assert "api" not in {row["name"] for row in rows}
    assert run(capsysbinary, "fields", "recrd.key").err.endswith("did you mean record.key?\n")


def test_slow_shows_what_took_longer_than_is_configured(
    capsysbinary: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDISSECT_SLOW_MS", "5")
    rows = [json.loads(line) for line in run(capsysbinary, CAPTURE, "-T", "ndjson").lines]
    expected = []
    for row in rows:
        wait = row["request"]["body"]["maxWaitMs"] if row["api"] == "Fetch" else 0
        waits_for_members = row["api"] in ("JoinGroup", "SyncGroup")
        taken = (row["latency_ns"] or 0) - (row["behind_ns"] or 0) - wait * 1_000_000
        if not waits_for_members and taken > 5_000_000:
            expected.append(row["number"])
    assert 0 < len(expected) < len(rows)
    assert numbers(capsysbinary, "--slow") == numbers(capsysbinary, "-Y", "slow") == expected
    some = [row["number"] for row in rows if row["api"] == "Produce" and row["number"] in expected]
    assert numbers(capsysbinary, "--slow", "-Y", "api == Produce") == some
    assert sorted(numbers(capsysbinary, "-Y", "not slow") + expected) == sorted(row["number"] for row in rows)


def test_slow_is_measured_in_the_capture_itself(tmp_path: Path, capsysbinary: Capsys) -> None:
    path = write_capture(tmp_path / "beats.pcapng", beats(120, slow={17}))
    (number,) = run(capsysbinary, path, "--slow", "-e", "number").lines
    assert number == "18"
    piped = run_with(path.read_bytes(), "read", "-", "--slow", "-e", "number")
    assert (piped.lines, piped.err) == (["18"], "")
    run(capsysbinary, path, "--slow", "-w", tmp_path / "slow.pcapng", "-o", tmp_path / "rows")
    assert run(capsysbinary, tmp_path / "slow.pcapng", "-e", "api").lines == ["Heartbeat"]
    records = run(capsysbinary, path, "--slow", "-T", "connections", "-e", "connection").lines
    assert [json.loads(line) for line in records] == [{"connection": 0}]


def test_of_a_handful_the_slow_ones_are_found(tmp_path: Path, capsysbinary: Capsys) -> None:
    path = write_capture(tmp_path / "beats.pcapng", beats(6, slow={3}))
    assert run(capsysbinary, path, "--slow", "-e", "number").lines == ["4"]


def test_where_nothing_is_slow_it_is_said_why(tmp_path: Path, capsysbinary: Capsys) -> None:
    ran = run(capsysbinary, write_capture(tmp_path / "beats.pcapng", beats(6, slow=set())), "--slow")
    assert (ran.code, ran.out) == (0, b"")
    assert "no exchange took longer than 99 % of its API" in ran.err


def beats(count: int, slow: set[int]) -> Talk:
    """Heartbeats, each answered a millisecond later; after some of them time passes first."""
    talk = Talk()
    for each in range(count):
        talk.ask(request("Heartbeat", 0, each, "beats", groupId="g", generationId=1, memberId="m"))
        if each in slow:
            talk.segments += [talk.segments[-1]] * 30  # sent again; the capture's clock goes on
        talk.answer(response("Heartbeat", 0, each, errorCode=0))
    return talk.close()


def test_fields_lists_the_old_names_of_kafkas_fields(capsysbinary: Capsys) -> None:
    rows = [json.loads(line) for line in run(capsysbinary, "fields", "aliases", "-T", "ndjson").lines]
    found = {
        alias: row["name"] for row in rows if row["table"] == "Kafka's fields" for alias in row["aliases"]
    }
    assert found["candidateId"] == "vote.request.replicaId"


def test_a_saved_filter_is_named_where_its_name_is_looked_for(
    tmp_path: Path, capsysbinary: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[filters]\nmine = "api == Fetch"\n')
    monkeypatch.setenv("KDISSECT_CONFIG", str(config))
    said = "kdissect: -Y: mine is searched as text; the saved filter of that name is: api == Fetch\n"
    ran = run(capsysbinary, "read", CAPTURES / "errors.pcapng", "-Y", "mine")
    assert ran.err == said
    (tmp_path / "filters.toml").write_text('other = "acks == 0"\n')
    assert (
        "filter of that name is: acks == 0"
        in run(capsysbinary, "read", CAPTURES / "errors.pcapng", "-Y", "other").err
    )
    config.write_text("[filters]\nmine = 1\n")  # which is for the screens to tell
    assert run(capsysbinary, "read", CAPTURES / "errors.pcapng", "-Y", "mine").code == 0
