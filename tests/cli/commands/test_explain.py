"""``kdissect explain``."""

from __future__ import annotations

import json
import pickle
import re
import stat
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kdissect
from kdissect.capture.files import read_packets
from kdissect.cli.commands.explain.selection import FindingChoice
from kdissect.cli.states import load, save
from kdissect.insight.catalogue import RULES
from kdissect.insight.finding import Finding, FindingSubject
from kdissect.insight.judge import Judge, of_captures
from kdissect.insight.rule import Facts
from kdissect.present.findings import FINDINGS
from kdissect.protocol.errors import errors
from tests.amount import some
from tests.cli.run import CAPTURES, Ran, run, run_with
from tests.dissecting import dissect
from tests.shared import requires_shared, shared

LOSS = CAPTURES / "loss.pcapng"
HEALTHY = CAPTURES / "basic-kafka43.pcapng"
MIDSTREAM = CAPTURES / "midstream.pcapng"
TRANSACTIONS = CAPTURES / "transactions-kafka39.pcapng"
KIP848 = CAPTURES / "consumer-group-kip848.pcapng"

Command = Callable[..., Ran]


@pytest.fixture
def explain(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return lambda *arguments: run(capsysbinary, "explain", *arguments)


def rows(ran: Ran) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ran.lines]


# -- findings ---------------------------------------------------------------------------------------


def test_a_finding_for_people(explain: Command) -> None:
    ran = explain(LOSS, "--id", "capture-gaps")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.lines
    assert lines[0] == "NOTICE   capture-gaps   the capture" + " " * 38 + "3.0 KiB"
    assert len(lines[0]) == 80
    assert lines[1].startswith("  3,050 bytes (3.6 %) of 3 connections")
    assert [line[2:6].strip() for line in lines if line[2:6] in ("why ", "do  ", "see ")] == [
        "why",
        "do",
        "see",
    ]
    assert f"  see   kdissect {LOSS} -Y 'connection in {{2, 3, 14}}'" in lines
    assert all(len(line) <= 80 for line in lines if "see" not in line)
    captured = "captured: 3.37 s, 71 exchanges, 15 connections with Kafka, 3.0 KiB missing"
    assert captured in lines
    assert lines[lines.index(captured) + 1].startswith("judged ")


def test_with_no_finding_one_line_says_what_was_looked_at(explain: Command) -> None:
    ran = explain(HEALTHY, "--id", "no-kafka")
    assert (ran.code, ran.err) == (0, "")
    assert ran.lines[:2] == [
        "none of the 4 findings matches what you asked for",
        "captured: 3.37 s, 71 exchanges, 15 connections with Kafka",
    ]


def test_rows_have_all_columns(explain: Command) -> None:
    ran = explain(LOSS, "-T", "ndjson", "--all")
    found = rows(ran)
    assert all(list(row) == [column.name for column in FINDINGS.columns] for row in found)
    (gaps,) = [row for row in found if row["finding"] == "capture-gaps"]
    assert gaps["severity"] == "notice"
    assert gaps["connections"] == [2, 3, 14]
    assert gaps["unit"] == "bytes"
    assert gaps["measure"] == 3050
    assert gaps["because"] is None
    assert ran.err.startswith("kdissect: judged ")


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet", "arrow"])
def test_other_formats(form: str, explain: Command, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = explain(LOSS, "-T", form, "-o", out)
    assert ran.code == 0
    assert out.stat().st_size > 100


def test_only_what_is_asked_for(explain: Command) -> None:
    def ids(*arguments: object) -> set[str]:
        return {row["finding"] for row in rows(explain(MIDSTREAM, "-T", "ndjson", *arguments))}

    assert "mid-stream" in ids()
    assert ids("--id", "mid-*") == {"mid-stream"}
    assert ids("--id", "mid-*", "--id", "no-kafka") == {"mid-stream"}
    assert ids("--id", "no-kafka", "--category", "lag", "--category", "capture") == set()
    assert ids("--category", "capture") == {"mid-stream"}
    assert "mid-stream" not in ids("--severity", "warning")
    assert ids("--subject", "group=nobody") == set()


@pytest.mark.parametrize(
    ("subject", "told"),
    [
        ("group=payrol", [" about it; did you mean payroll?"]),
        ("group=x", [" about it; there are findings about billing, payroll"]),
        ("topic=x", [" about it"]),
        ("group=pay*", []),
    ],
)
def test_a_subject_that_no_finding_is_about_is_said(subject: str, told: list[str]) -> None:
    about = [
        Finding(
            "rebalance-long", "critical", "certain", "groups", FindingSubject(group=group), "It was long."
        )
        for group in ("payroll", "billing")
    ]
    others = dict.fromkeys(("severity", "fail_on", "category", "ids"))
    wanted = FindingChoice({**others, "subject": [subject]})
    assert wanted.lines_without_findings(about) == [
        f"--subject {subject}: there is no finding{each}" for each in told
    ]


def test_what_no_finding_is_about_is_told_beside_the_others(explain: Command) -> None:
    ran = explain(MIDSTREAM, "--subject", "group=nobody")
    assert ran.code == 0
    assert "--subject group=nobody: there is no finding about it" in ran.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--id", "mid-strem"), "--id mid-strem: there is no such rule; did you mean mid-stream?"),
        (("--rule", "mid-strem"), "--rule mid-strem: there is no such rule; did you mean mid-stream?"),
        (("--id", "xyz-*"), "--id xyz-*: there is no such rule; kdissect fields rules lists them"),
        (("--error", "NOT_LEADER"), "--error NOT_LEADER: there is no such error"),
        (("--error", "XYZ"), "--error XYZ: there is no such error; kdissect fields errors lists them"),
        (("--error", "NOPE"), "--error NOPE: there is no such error; kdissect fields errors lists them"),
        (("--error", "4711"), "--error 4711: there is no such error; their codes are -1 to "),
        (("--error=-4711",), "--error -4711: there is no such error; their codes are -1 to "),
        (("--severity", "bad"), "--severity bad: there is no such severity"),
        (("--category", "captur"), "--category captur: there is no such category; did you mean capture?"),
        (("--subject", "grup=x"), "did you mean group?"),
        (
            ("--subject", "grup"),
            "NAME=VALUE is needed, with the name of a part of a subject; did you mean group?",
        ),
        (("--subject", "group"), "--subject group: a value is missing, as in group=VALUE"),
        (("--subject", "group="), "--subject group=: a value is missing, as in group=VALUE"),
        (("--fail-on", "warn"), "--fail-on warn: there is no such severity; did you mean warning?"),
        (("--exchange", "900"), "--exchange 900: there is no such exchange: they are numbered 1 to 92"),
        (("--group", "nobody"), "--group nobody: "),
        (("--topic", "nothing"), "--topic nothing: it is not in the capture"),
        (("--client", "nobody"), "--client nobody: it is not in the capture; there are consumer-midstream-"),
        (("--transactional-id", "x"), "--transactional-id x: there is no transactional id in the capture"),
        (("--offset", "orders"), "--offset orders: the form is TOPIC/PARTITION/OFFSET"),
        (("--offset", "orders/0/1"), "--offset orders/0/1: no records of orders/0 are in the capture"),
        (("--since", "noon"), "--since noon: this is not a time"),
    ],
)
def test_what_does_not_exist_is_told_in_one_line(
    arguments: tuple[object, ...], told: str, explain: Command
) -> None:
    ran = explain(MIDSTREAM, *arguments)
    assert ran.code == 2
    assert told in ran.err
    assert len(ran.err.splitlines()) == 1
    assert ran.out == b""


@pytest.mark.parametrize(
    "asked", [("--exchange", 11), ("--group", "java43-errors-g"), ("--topic", "java43-errors")]
)
@pytest.mark.parametrize(
    "idle",
    [
        ("--fail-on", "warning"),
        ("--severity", "warning"),
        ("--state", "x"),
        ("--deep",),
        ("-Y", "error"),
        ("--not-judged",),
    ],
)
def test_what_would_do_nothing_is_refused(
    asked: tuple[object, ...], idle: tuple[str, ...], explain: Command
) -> None:
    ran = explain(CAPTURES / "errors.pcapng", *asked, *idle)
    told = f"{idle[0]}: it chooses findings, and {asked[0]} asks for something else; leave out one"
    assert (ran.code, ran.err.splitlines(), ran.out) == (2, [f"kdissect: {told}"], b"")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("--rule", "broker-gone", MIDSTREAM),
            "--rule reads no capture; --id broker-gone chooses its findings",
        ),
        (("--error", "6", "x.pcap"), "--error reads no capture; leave out x.pcap"),
        (("--rule", "broker-gone", "--error", "6"), "--rule and --error are given: give only one of them"),
        (("--rule", "broker-gone", "--group", "g"), "--rule and --group are given: give only one of them"),
        (("--error", "6", "--exchange", "0"), "--error and --exchange are given: give only one of them"),
        (("--rule", "broker-gone", "-T", "csv"), "-T csv: the page of a rule prints as text"),
        (("--error", "6", "--fail-on", "info"), "--fail-on: it chooses findings, and --error asks for"),
    ],
)
def test_a_page_is_asked_for_alone(arguments: tuple[object, ...], told: str, explain: Command) -> None:
    ran = explain(*arguments)
    assert (ran.code, len(ran.err.splitlines()), ran.out) == (2, 1, b"")
    assert told in ran.err


@pytest.mark.parametrize(
    "asked", [("--rule", "broker-gone"), ("--error", "6"), ("--error", "6", "-T", "ndjson")]
)
def test_a_page_goes_to_a_file(asked: tuple[str, ...], explain: Command, tmp_path: Path) -> None:
    ran = explain(*asked, "-o", tmp_path / "page")
    assert (ran.code, ran.err, ran.out) == (0, "", b"")
    assert (tmp_path / "page").read_bytes() == explain(*asked).out


def test_the_nearest_offset_is_told(explain: Command) -> None:
    ran = explain(CAPTURES / "basic-kafka43.pcapng", "--offset", "java43-basic/1/99999")
    assert ran.code == 2
    assert "with that offset is in the capture; the nearest is java43-basic/1/" in ran.err


def test_fail_on_tells_by_the_exit_code(explain: Command) -> None:
    assert explain(MIDSTREAM, "--fail-on", "notice").code == 1
    assert explain(MIDSTREAM, "--fail-on", "critical").code == 0


def test_fail_on_follows_what_is_chosen(explain: Command) -> None:
    def code(*chosen: str) -> int:
        return explain(MIDSTREAM, *chosen, "--fail-on", "notice", "-q").code

    assert code("--id", "mid-*") == code("--category", "capture") == code("--severity", "notice") == 1
    assert code("--id", "rebalance-*") == code("--category", "groups") == code("--subject", "group=x") == 0
    assert code("--id", "mid-*", "-T", "ndjson") == code("--id", "mid-*", "--not-judged") == 1


def test_fail_on_is_not_weakened_by_what_is_left_out(explain: Command) -> None:
    ran = explain(MIDSTREAM, "--severity", "critical", "--fail-on", "notice")
    assert ran.code == 2
    assert ran.err.splitlines() == [
        "kdissect: --fail-on notice: --severity critical leaves out such findings; give --severity notice"
    ]


def test_a_capture_without_kafka_is_a_finding(explain: Command, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
    ran = explain(empty, "-T", "ndjson")
    assert ran.code == 0
    assert [row["finding"] for row in rows(ran)] == ["no-kafka"]
    assert ("no Kafka was captured" in ran.err) == (len(of_captures()) > 6)


def test_of_what_cannot_be_read_nothing_is_found(explain: Command, tmp_path: Path) -> None:
    data = bytearray((CAPTURES / "incidents" / "member-killed.pcapng.gz").read_bytes())
    data[300:400] = b"\xff" * 100
    damaged = tmp_path / "damaged.pcapng.gz"
    damaged.write_bytes(data)
    ran = explain(damaged)
    assert ran.code == 3
    assert ran.out.decode() == "nothing was judged: nothing of the capture could be read\n"
    assert "no Kafka was found" not in ran.err
    assert "the gzip data is damaged" in ran.err


def test_packets_of_another_protocol_are_read_too(explain: Command, tmp_path: Path) -> None:
    ip = bytes.fromhex("450000200000000040110000 0a000001 0a000002 00350035000c0000")
    packet = bytes(12) + b"\x08\x00" + ip + b"abcd"
    record = struct.pack("<IIII", 1, 0, len(packet), len(packet)) + packet
    path = tmp_path / "udp.pcap"
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + 3 * record + record[:-1])
    ran = explain(path)
    assert "No Kafka was found in what could be read of the capture" in " ".join(ran.out.decode().split())


def test_an_input_that_cannot_be_read(explain: Command, tmp_path: Path) -> None:
    ran = explain(tmp_path / "nothing.pcap")
    assert (ran.code, len(ran.err.splitlines())) == (3, 1)


def test_what_was_not_judged_as_rows(explain: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(facts: Facts) -> tuple[Finding, ...]:
        facts.cannot_judge("needs 60 s")
        return ()

    rule = RULES["mid-stream"]._replace(id="silent", judge=silent)
    monkeypatch.setitem(RULES, "silent", rule)
    found = rows(explain(MIDSTREAM, "--not-judged", "-T", "ndjson"))
    assert {"rule": "silent", "why": "needs 60 s"} in found
    assert "silent" in explain(MIDSTREAM, "--not-judged").out.decode()
    assert "needs 60 s" in " ".join(explain(MIDSTREAM).lines)


def test_the_same_rows_in_several_processes(explain: Command) -> None:
    for path in (LOSS, MIDSTREAM, TRANSACTIONS):
        one, two = (explain(path, "-T", "ndjson", "--all", "--jobs", n) for n in (1, 2))
        assert (one.out, one.err) == (two.out, two.err)


def test_since_and_until_choose_what_is_judged(explain: Command) -> None:
    for jobs in (1, 2):
        ran = explain(TRANSACTIONS, "--since", "+2s", "--until", "+4s", "--jobs", jobs)
        assert ran.code == 0
        assert b" exchanges, " in ran.out
        assert b" of 163 exchanges" in ran.out
    whole = explain(TRANSACTIONS, "--since", "+0s", "-T", "ndjson", "--all")
    assert whole.out == explain(TRANSACTIONS, "-T", "ndjson", "--all").out


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_filter_that_selects_nothing_judges_nothing(explain: Command, jobs: int) -> None:
    ran = explain(TRANSACTIONS, "-Y", "topic == nobodys", "--jobs", jobs)
    assert (ran.code, ran.lines) == (0, ["nothing was judged: none of 163 exchanges is selected"])


def test_a_span_that_ends_before_it_begins_is_refused(explain: Command) -> None:
    ran = explain(TRANSACTIONS, "--since", "+4s", "--until", "+2s")
    assert (ran.code, ran.out, ran.err) == (2, b"", "kdissect: --since must be before --until\n")


def test_a_filter_of_findings_reads_the_capture_twice(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    shown = run(capsysbinary, "read", LOSS, "-Y", "finding == capture-gaps", "-e", "connection", "-T", "csv")
    assert {line.strip('"') for line in shown.lines[1:]} == {"2", "3", "14"}


def test_a_pipe_is_read_once() -> None:
    ran = run_with(LOSS.read_bytes(), "read", "-", "-Y", "finding.severity >= notice")
    assert ran.code == 2
    assert ran.err == (
        "kdissect: -Y: findings are known only after all was read, and a pipe can be read only once: "
        "give a file\n"
    )


# -- configuration ----------------------------------------------------------------------------------


def test_what_the_configuration_ignores_is_not_run(
    explain: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[findings]\nignore = ["mid-*"]\n')
    monkeypatch.setenv("KDISSECT_CONFIG", str(config))
    assert "mid-stream" not in {row["finding"] for row in rows(explain(MIDSTREAM, "-T", "ndjson"))}


# -- pages ------------------------------------------------------------------------------------------


def test_a_page_needs_no_capture(explain: Command) -> None:
    for id, rule in RULES.items():
        ran = explain("--rule", id)
        assert (ran.code, ran.err) == (0, ""), id
        assert ran.lines[0] == f"{id}   {rule.severity}, {rule.confidence}, category {rule.category}"
        assert {"why", "do", "sources"} <= set(ran.lines), id


def test_pages_are_chosen_by_patterns(explain: Command) -> None:
    ran = explain("--rule", "broker-gone,rebalance-*")
    chosen = [id for id in RULES if id == "broker-gone" or id.startswith("rebalance-")]
    heads = [line.split()[0] for line in ran.lines if re.fullmatch(r"\S+   \w+, \w+, category \w+", line)]
    assert set(heads) == set(chosen)
    assert len(heads) == len(chosen) > 3
    for pattern, words in (
        ("rebalance-*,xyz-*", "--rule xyz-*: there is no such rule; kdissect fields rules lists them"),
        (",", "--rule: an id is missing; kdissect fields rules lists them"),
    ):
        ran = explain("--rule", pattern)
        assert (ran.code, ran.err) == (2, f"kdissect: {words}\n")


def test_a_page_says_what_a_threshold_is(explain: Command) -> None:
    lines = explain("--rule", "broker-gone").lines
    at = lines.index("thresholds, [findings.broker-gone] of the configuration")
    assert lines[at + 1] == "  together_s = 1    connections that end within this many seconds count together"
    assert lines[at + 5 : at + 7] == [
        "  orderly_s = 300   seconds that a broker may be away for an orderly restart (a",
        "                    notice)",
    ]
    lines = explain("--rule", "log-large-batch").lines
    assert "  bytes = 1048588   bytes that a batch must exceed" in lines


def test_an_error_by_name_and_by_code(explain: Command) -> None:
    ran = explain("--error", "not_leader_or_follower")
    assert ran.code == 0
    assert ran.lines[0] == "NOT_LEADER_OR_FOLLOWER   code 6"
    assert "  Retriable: the client goes on by itself." in ran.lines
    assert ran.out == explain("--error", "6").out
    (row,) = rows(explain("--error", "6", "-T", "ndjson"))
    assert row["name"] == "NOT_LEADER_OR_FOLLOWER"
    assert row["causes"]


def test_every_error_has_a_page(explain: Command) -> None:
    for code in errors():
        ran = explain("--error", code)
        assert ran.code == 0, code
        assert [line for line in ran.lines if len(line) > 80] == [], code


def test_errors_are_explained_where_they_stand(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    chosen = (CAPTURES / "errors.pcapng", "-Y", "number in {10, 11}")
    for form in ("text", "tree"):
        plain = run(capsysbinary, "read", *chosen, "-T", form).lines
        told = run(capsysbinary, "read", *chosen, "-T", form, "--explain-errors").lines
        more = [line for line in told if line not in plain]
        assert more[0] == "  MESSAGE_TOO_LARGE   code 10"
        assert any("max.message.bytes" in line for line in more)
        assert [line for line in told if line in plain] == plain


# -- stories ----------------------------------------------------------------------------------------


def test_the_story_of_a_group(explain: Command) -> None:
    ran = explain(KIP848, "--group", "java43-kip848-g")
    assert ran.code == 0
    assert " 0.542  new0           joined the group, and was given 6 partitions: epoch 2" in ran.out.decode()
    assert all(len(line) <= 80 for line in ran.lines)


def test_the_story_of_a_transactional_id_as_rows(explain: Command) -> None:
    found = rows(explain(TRANSACTIONS, "--transactional-id", "java39-transactions-tx", "-T", "ndjson"))
    texts = [row["text"] for row in found]
    assert "committed the transaction" in texts
    assert "aborted the transaction" in texts
    assert [row["ns"] for row in found] == sorted(row["ns"] for row in found)


def test_the_story_of_an_offset(explain: Command) -> None:
    ran = explain(HEALTHY, "--offset", "java43-basic/1/82")
    text = ran.out.decode()
    assert "wrote it, with offsets 81 to 88" in text
    assert "read it, with offsets 81 to 88" in text
    assert "committed 141," in text


def test_the_story_of_an_exchange(explain: Command) -> None:
    ran = explain(TRANSACTIONS, "--exchange", 46)
    lines = ran.lines
    assert lines[0] == "#46 EndTxn v4 of tx to broker 127.0.0.1:23011, at 1.125"
    assert lines[1] == "  tx aborted the transaction."
    assert {"before it", "after it"} <= set(lines)
    assert any("wrote 10 records" in line for line in lines)


@requires_shared
def test_an_exchange_that_was_slow_for_lost_packets_says_so(explain: Command) -> None:
    ran = explain(shared("testdata/incidents/packet-loss/capture-client.pcapng"), "--exchange", 143)
    text = " ".join(ran.out.decode().split())
    assert "the broker worked, or the network sent lost bytes again" in text
    assert "bytes of the connection were lost and sent again: at 7.266 (packet 344)." in text


def test_an_exchange_that_failed_says_why(explain: Command) -> None:
    text = explain(CAPTURES / "errors.pcapng", "--exchange", 11).out.decode()
    assert "MESSAGE_TOO_LARGE   code 10" in text
    assert "max.message.bytes" in text


# -- states -----------------------------------------------------------------------------------------


def test_a_state_puts_captures_together(explain: Command, tmp_path: Path) -> None:
    state = tmp_path / "state"
    explain(MIDSTREAM, "--state", state)
    both = explain(LOSS, "--state", state, "-T", "ndjson", "--all")
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    assert {"mid-stream", "capture-gaps"} <= {row["finding"] for row in rows(both)}


def test_a_state_alone_is_judged(explain: Command, tmp_path: Path) -> None:
    state = tmp_path / "state"
    ran = explain("--state", state)
    assert (ran.code, len(ran.err.splitlines())) == (3, 1)
    first = explain(MIDSTREAM, "--state", state, "-T", "ndjson", "--all")
    data = state.read_bytes()
    assert explain("--state", state, "-T", "ndjson", "--all").out == first.out
    assert state.read_bytes() == data


@pytest.mark.parametrize("path", some(sorted(CAPTURES.rglob("*.pcap*")), 6), ids=lambda path: path.name)
def test_a_state_gives_what_the_capture_gives(path: Path, tmp_path: Path) -> None:
    whole, state = Judge(), tmp_path / "state"
    for event in dissect(iter(read_packets([path]))):
        whole.feed(event)
    save(str(state), whole)
    kept = load(str(state))
    assert kept is not None
    assert kept.judged() == whole.judged()


class _Evil:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("touched-by-a-state"),)


@pytest.mark.parametrize("how", ["foreign", "empty", "damaged", "newer", "evil"])
def test_a_state_that_is_none_is_left_as_it_is(
    how: str, explain: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kdissect.cli import states

    monkeypatch.chdir(tmp_path)
    path = tmp_path / "state"
    explain(MIDSTREAM, "--state", path)
    data = path.read_bytes()
    if how == "evil":
        monkeypatch.setattr(pickle, "dumps", lambda *_, **__: _evil_pickle())
        states.save(str(path), None)  # type: ignore[arg-type]
        monkeypatch.undo()
        monkeypatch.chdir(tmp_path)
        data = path.read_bytes()
    else:
        newer = data.replace(b"findings 2", b"findings 3", 1)
        data = {
            **{"foreign": b"something else", "empty": b"", "damaged": data[:-1] + b"?", "newer": newer},
        }[how]
        path.write_bytes(data)
    ran = explain(MIDSTREAM, "--state", path)
    assert ran.code == 3
    assert len(ran.err.splitlines()) == 1
    assert "was not changed" in ran.err
    assert ("another version or build of kdissect" in ran.err) == (how == "newer")
    assert path.read_bytes() == data
    assert not (tmp_path / "touched-by-a-state").exists()


def _evil_pickle() -> bytes:
    return pickle._dumps(_Evil())  # type: ignore[attr-defined,no-any-return]


def test_a_state_holds_no_key_and_no_value(explain: Command, tmp_path: Path) -> None:
    state = tmp_path / "state"
    for path in (HEALTHY, TRANSACTIONS, CAPTURES / "sasl-scram.pcapng", KIP848):
        explain(path, "--state", state)
    data = state.read_bytes()
    found = 0
    for path in (HEALTHY, TRANSACTIONS):
        for exchange in kdissect.read(path):
            for batch in (
                batch
                for place in exchange.record_sets()
                for batch in kdissect.records(place.data).batches
                if not batch.is_control
            ):
                for record in batch.records():
                    for secret in (record.key, record.value):
                        if secret is not None and len(secret) >= 8:
                            found += 1
                            assert secret not in data
    assert found > 100


@pytest.mark.parametrize("command", ["explain", "report"])
def test_a_state_is_not_written_over(
    command: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    one, lost = tmp_path / "one", tmp_path / "missing" / "state"
    capture = CAPTURES / "errors.pcapng"
    ran = run(capsysbinary, command, capture, "--state", one, "-o", one)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "-o and --state both name" in ran.err
    assert not one.exists()
    ran = run(capsysbinary, command, capture, "--state", lost)
    assert (ran.code, ran.out) == (2, b"")  # before anything is read
    assert f"--state {lost}: cannot be written" in ran.err


def test_only_records_of_the_time_asked_for_are_read_twice(explain: Command) -> None:
    capture = CAPTURES / "basic-kafka43.pcapng"
    assert rows(explain(capture, "-T", "ndjson", "--id", "records-read-twice"))
    span = ("--since", "+0s", "--until", "+1ms")
    assert not rows(explain(capture, "-T", "ndjson", "--id", "records-read-twice", *span))


@pytest.mark.parametrize("option", [("--since", "+99h"), ("--until", "2020-01-01")])
def test_a_time_at_which_the_capture_has_nothing_is_refused(
    explain: Command, option: tuple[str, str]
) -> None:
    ran = explain(CAPTURES / "errors.pcapng", *option)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, b"", 1)
    assert f"{' '.join(option)}: the capture has no packets at that time; it lasts from" in ran.err


def test_a_folder_without_a_log_is_one_line(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "notes.txt").write_text("no capture")
    ran = run(capsysbinary, "explain", tmp_path)
    assert (ran.code, ran.out, ran.err.count("\n")) == (3, b"", 1)
    assert "this folder contains no file of a log directory, and no capture\n" in ran.err


@pytest.mark.parametrize("files", [(), ("notes.txt",)])
def test_captures_in_folders_of_a_folder_are_not_looked_for(
    files: tuple[str, ...], tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    below = tmp_path / "below"
    below.mkdir()
    (below / "loss.pcapng").write_bytes((CAPTURES / "loss.pcapng").read_bytes())
    for name in files:
        (tmp_path / name).write_text("no capture")
    ran = run(capsysbinary, "explain", tmp_path)
    assert (ran.code, ran.out, ran.err.count("\n")) == (3, b"", 1)
    assert "folders" in ran.err
    assert ran.err.endswith(f"give {tmp_path}/*/\n")
