from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from kdissect.capture.files import read_packets
from kdissect.model import Packet
from tests.cli.run import CAPTURES, ROOT, run, run_with, spawn
from tests.kafka import Talk, request, response
from tests.present.captures import write_capture
from tests.tcp.segments import CLIENT

CAPTURE = CAPTURES / "basic-kafka43.pcapng"
LOSS = CAPTURES / "loss.pcapng"

Capsys = pytest.CaptureFixture[bytes]


# -- what is shown


def test_files_without_a_command_are_read(capsysbinary: Capsys) -> None:
    assert run(capsysbinary, CAPTURE).out == run(capsysbinary, "read", CAPTURE).out
    assert run(capsysbinary, "-r", CAPTURE).out == run(capsysbinary, "read", "-r", CAPTURE).out != b""


def test_standard_input_reads_as_the_file_does(capsysbinary: Capsys) -> None:
    ran = spawn("read", "-", "-T", "ndjson", stdin=CAPTURE.read_bytes())
    assert ran.out == run(capsysbinary, "read", CAPTURE, "-T", "ndjson").out


def test_a_compressed_capture_reads_as_the_capture_does(tmp_path: Path, capsysbinary: Capsys) -> None:
    path = tmp_path / "capture"
    path.write_bytes(gzip.compress(CAPTURE.read_bytes()))
    assert run(capsysbinary, path).out == run(capsysbinary, CAPTURE).out


@pytest.mark.parametrize("more", [(), ("--two-pass",), ("-w",), ("--two-pass", "-w")])
def test_a_named_pipe_reads_as_the_file_does(
    more: tuple[str, ...], tmp_path: Path, capsysbinary: Capsys
) -> None:
    pipe, path = tmp_path / "pipe", tmp_path / "written.pcapng"
    os.mkfifo(pipe)
    arguments = [*more, path] if "-w" in more else [*more]
    writer = Thread(target=pipe.write_bytes, args=(CAPTURE.read_bytes(),), daemon=True)
    writer.start()
    ran = run(capsysbinary, "read", pipe, *arguments)
    writer.join()
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == run(capsysbinary, "read", CAPTURE).out
    if "-w" in more:
        assert run(capsysbinary, path, "-T", "csv", "-e", "api").out.count(b"\n") == len(ran.lines) + 1


@pytest.mark.parametrize("more", [(), ("--two-pass",)])
def test_standard_input_is_called_so_whatever_is_wrong_with_it(more: tuple[str, ...]) -> None:
    refused = run_with(b"hello", "read", "-", *more)
    assert (refused.code, refused.err.startswith("kdissect: standard input: is not a capture")) == (3, True)
    damaged = run_with(CAPTURE.read_bytes()[:3000], "read", "-", *more)
    assert damaged.err.startswith("kdissect: -: the file ends inside a block")


def test_a_fault_behind_the_rows_that_are_asked_for_does_not_count(
    tmp_path: Path, capsysbinary: Capsys
) -> None:
    path = tmp_path / "cut.pcapng"
    path.write_bytes(CAPTURE.read_bytes()[:-5])
    assert run(capsysbinary, path).code == 3
    ran = run(capsysbinary, path, "-c", 1)
    assert (ran.code, len(ran.lines)) == (0, 1)


def test_count_stops_after_so_many_rows(capsysbinary: Capsys) -> None:
    assert len(run(capsysbinary, CAPTURE, "-T", "ndjson", "-c", 3).lines) == 3
    assert len(run(capsysbinary, CAPTURE, "-T", "records", "-c", 7).lines) == 7


def test_fields_without_a_format_print_with_tabs(capsysbinary: Capsys) -> None:
    assert run(capsysbinary, CAPTURE, "-e", "number,API", "-c", 1).lines == ["1\tApiVersions"]


def test_written_packets_are_those_of_what_is_shown(tmp_path: Path, capsysbinary: Capsys) -> None:
    path = tmp_path / "out.pcapng"
    shown = run(capsysbinary, CAPTURE, "-T", "ndjson", "-c", 5, "-w", path)
    numbers = {json.loads(line)["request_packet"] for line in shown.lines}
    packets = {item.number: item.data for item in read_packets([CAPTURE]) if isinstance(item, Packet)}
    written = [item.data for item in read_packets([path]) if isinstance(item, Packet)]
    assert {packets[number] for number in numbers} <= set(written) < set(packets.values())
    again = run(capsysbinary, path, "-T", "ndjson", "-e", "api", "-e", "correlation_id")
    assert len(again.lines) == 5


def test_packets_of_standard_input_can_be_written_too(tmp_path: Path, capsysbinary: Capsys) -> None:
    path, other = tmp_path / "out.pcapng", tmp_path / "other.pcapng"
    assert run_with(CAPTURE.read_bytes(), "read", "-", "-w", path).code == 0
    assert run(capsysbinary, CAPTURE, "-w", other).code == 0
    assert path.read_bytes() == other.read_bytes()


def topic_id_capture(path: Path) -> Path:
    """A fetch by topic id, and only then the metadata that tell its name."""
    topic_id = "lVhqmGaYRoKUVMnTbJRSXA"
    fetch: dict[str, Any] = {
        "maxWaitMs": 1,
        "minBytes": 1,
        "maxBytes": 1,
        "isolationLevel": 0,
        "sessionId": 0,
        "sessionEpoch": -1,
        "topics": [{"topicId": topic_id, "partitions": []}],
        "forgottenTopicsData": [],
        "rackId": "",
    }
    empty = {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 0, "responses": []}
    topic = {
        "errorCode": 0,
        "name": "orders",
        "topicId": topic_id,
        "isInternal": False,
        "partitions": [],
        "topicAuthorizedOperations": 0,
    }
    metadata: dict[str, Any] = {
        "topics": None,
        "allowAutoTopicCreation": False,
        "includeTopicAuthorizedOperations": False,
    }
    told = {"throttleTimeMs": 0, "brokers": [], "clusterId": None, "controllerId": 1, "topics": [topic]}
    talk = (
        Talk()
        .ask(request("Fetch", 15, 1, **fetch))
        .answer(response("Fetch", 15, 1, **empty))
        .ask(request("Metadata", 12, 2, **metadata))
        .answer(response("Metadata", 12, 2, **told))
        .close()
    )
    return write_capture(path, talk)


def test_two_passes_know_the_names_of_topic_ids_from_the_start(
    tmp_path: Path, capsysbinary: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = topic_id_capture(tmp_path / "ids.pcapng")

    def first_topics(*more: str) -> list[str]:
        row: dict[str, list[str]] = json.loads(run(capsysbinary, path, "-T", "ndjson", *more).lines[0])
        return row["topics"]

    assert first_topics() == ["lVhqmGaYRoKUVMnTbJRSXA"]
    assert first_topics("--two-pass") == ["orders"]
    config = tmp_path / "config.toml"
    config.write_text('[topics]\n"lVhqmGaYRoKUVMnTbJRSXA" = "by-hand"\n')
    monkeypatch.setenv("KDISSECT_CONFIG", str(config))
    assert first_topics() == ["by-hand"]


def test_decode_as_takes_a_port_for_kafkas(tmp_path: Path, capsysbinary: Capsys) -> None:
    odd = Talk().say(CLIENT, b"\0\0\0\x0a" + bytes((0x12, 0x67, 0, 0, 0, 0, 0, 1, 0xFF, 0xFF))).close()
    path = write_capture(tmp_path / "odd.pcapng", odd)
    assert run(capsysbinary, path).out == b""
    assert len(run(capsysbinary, path, "-d", "tcp.port==19092,kafka").lines) == 1


# -- exit codes


def test_nothing_shown_is_told_only_when_asked_for(tmp_path: Path, capsysbinary: Capsys) -> None:
    empty = write_capture(tmp_path / "empty.pcapng")
    assert run(capsysbinary, empty).code == 0
    assert run(capsysbinary, empty, "--exit-status").code == 1
    assert run(capsysbinary, CAPTURE, "--exit-status").code == 0


def test_faults_are_told_only_when_asked_for(capsysbinary: Capsys) -> None:
    assert run(capsysbinary, LOSS).code == 0
    assert run(capsysbinary, LOSS, "--strict").code == 4
    assert run(capsysbinary, CAPTURE, "--strict").code == 0


def test_damage_comes_before_faults_and_faults_before_nothing_shown(
    tmp_path: Path, capsysbinary: Capsys
) -> None:
    none = ("--exit-status", "-Y", 'api == "Heartbeat"')
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes(Path(LOSS).read_bytes()[:-10])
    assert run(capsysbinary, cut, "--strict", *none).code == 3
    assert run(capsysbinary, LOSS, "--strict", *none).code == 4
    assert run(capsysbinary, LOSS, *none).code == 1


def test_faults_of_messages_count_too(tmp_path: Path, capsysbinary: Capsys) -> None:
    too_long = request("Metadata", 1, 1, topics=[]) + b"\0\0\0"
    talk = Talk().ask(request("Metadata", 1, 0, topics=[]), too_long).close()
    path = write_capture(tmp_path / "long.pcapng", talk)
    assert run(capsysbinary, path, "--strict", "-T", "ndjson").code == 4
    (fault,) = map(json.loads, run(capsysbinary, path, "-T", "faults").lines)
    assert (fault["kind"], fault["exchange"], fault["connection"]) == ("remainder", 2, 0)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["read"], "no capture is given"),
        (["read", "X", "--nosuch"], "nosuch"),
        (["read", "X", "-T", "parket"], "did you mean parquet?"),
        (["read", "X", "-T", "record"], "did you mean records?"),
        (["read", "X", "-T", "records.xml"], "records."),
        (["read", "X", "-e", "latenci"], "did you mean latency?"),
        (["read", "X", "-T", "tree", "-e", "number"], "-e works with tables"),
        (["read", "X", "-T", "csv", "-x"], "-x works with"),
        (["read", "X", "-T", "csv", "-V"], "-V means -T tree"),
        (["read", "X", "-d", "tcp.port==1"], "tcp.port==N,kafka"),
        (["read", "X", "-d", "tcp.port==99999,kafka"], "there is no port 99999: ports are 1 to 65535"),
        (["read", "X", "-c", "0"], "0"),
        (["read", "X", "-t", "z"], "z"),
        (["raed"], "did you mean read?"),
        (["read", "X", "-o", "/nosuch/folder/out"], "/nosuch/folder/out: cannot be written"),
        (["read", "X", "-w", "/nosuch/folder/out"], "/nosuch/folder/out: cannot be written"),
        (["read", "-", "-"], "-"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    arguments: list[str], part: str, capsysbinary: Capsys
) -> None:
    ran = run(capsysbinary, *(CAPTURE if word == "X" else word for word in arguments))
    assert ran.code in ((3,) if arguments == ["read", "-", "-"] else (2,))
    assert ran.out == b""
    assert ran.err.startswith("kdissect: ")
    assert ran.err.count("\n") == 1
    assert part in ran.err


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (None, "No such file"),
        (b"", "is empty"),
        (b"\xd4\xc3\xb2\xa1", ""),
        (b"hello, this is text", "is not a capture"),
        (b"\x1f\x8b\x08\x00broken", ""),
    ],
)
def test_what_cannot_be_read_is_one_line_and_exit_code_3(
    content: bytes | None, part: str, tmp_path: Path, capsysbinary: Capsys
) -> None:
    path = tmp_path / "in"
    if content is not None:
        path.write_bytes(content)
    ran = run(capsysbinary, path)
    assert (ran.code, ran.out) == (3, b"")
    assert ran.err.startswith(f"kdissect: {path}")
    assert ran.err.count("\n") == 1
    assert part in ran.err


def _folder(path: Path) -> Path:
    """Two captures, and what does not count beside them."""
    (path / "below").mkdir(parents=True)
    for name in ("errors.pcapng", "loss.pcapng"):
        shutil.copy(ROOT / "captures" / name, path)
    for name in (".hidden", "_SUCCESS", "below/more.pcap"):
        (path / name).write_text("no capture")
    return path


@pytest.mark.parametrize(
    "command",
    ["read", "stats -z srt", "explain --all -T ndjson -q", "read -T connections", "graph", "cluster"],
)
def test_a_folder_stands_for_the_files_in_it(command: str, tmp_path: Path, capsysbinary: Capsys) -> None:
    folder = _folder(tmp_path / "captures")
    words = command.split()
    ran = run(capsysbinary, *words, folder)
    assert (ran.code, ran.err) == (0, "")
    files = [folder / name for name in ("errors.pcapng", "loss.pcapng")]
    alone = run(capsysbinary, *words, *files)
    assert ran.out == alone.out != b""
    plan = run(capsysbinary, "spark", "batch", folder, "--plan").out.decode()
    assert re.findall(rf"{folder}/(\S+) \(", plan) == [each.name for each in files]


def test_an_output_replaces_no_file_of_a_folder(tmp_path: Path, capsysbinary: Capsys) -> None:
    folder = _folder(tmp_path / "captures")
    ran = run(capsysbinary, "read", folder, "-T", "ndjson", "-o", folder / "loss.pcapng")
    assert ran.code == 2
    assert "is also an input" in ran.err


@pytest.mark.parametrize("command", ["read", "stats -z srt", "explain", "report", "spark batch --plan"])
def test_a_folder_without_files_is_told(command: str, tmp_path: Path, capsysbinary: Capsys) -> None:
    ran = run(capsysbinary, *command.split(), tmp_path)
    assert (ran.code, ran.err) == (3, f"kdissect: {tmp_path}: no file is in this directory\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path, capsysbinary: Capsys) -> None:
    path = tmp_path / "in"
    path.write_bytes(CAPTURE.read_bytes())
    path.chmod(0)
    assert run(capsysbinary, path).code == 3


def test_what_can_be_read_of_a_cut_file_is_printed(tmp_path: Path, capsysbinary: Capsys) -> None:
    path = tmp_path / "cut.pcapng"
    path.write_bytes(CAPTURE.read_bytes()[:-100])
    ran = run(capsysbinary, path)
    whole = run(capsysbinary, CAPTURE)
    assert ran.code == 3
    assert len(ran.lines) >= len(whole.lines) - 3
    assert ran.err.count("\n") == 1
    assert str(path) in ran.err


def test_one_bad_file_among_several_costs_only_itself(tmp_path: Path, capsysbinary: Capsys) -> None:
    bad = tmp_path / "bad"
    bad.write_bytes(b"no capture at all")
    ran = run(capsysbinary, bad, CAPTURE)
    assert ran.code == 3
    assert ran.out == run(capsysbinary, CAPTURE).out
    assert str(bad) in ran.err


def test_an_output_that_is_there_is_replaced(tmp_path: Path, capsysbinary: Capsys) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"x" * 1_000_000)
    assert run(capsysbinary, CAPTURE, "-o", path).out == b""
    assert path.read_bytes() == run(capsysbinary, CAPTURE).out


@pytest.mark.parametrize("option", ["-o", "-w"])
def test_an_input_is_never_overwritten(option: str, tmp_path: Path, capsysbinary: Capsys) -> None:
    path = tmp_path / "in.pcapng"
    path.write_bytes(CAPTURE.read_bytes())
    ran = run(capsysbinary, path, option, path)
    assert ran.code == 2
    assert path.read_bytes() == CAPTURE.read_bytes()


def test_a_defect_of_ours_is_one_line(capsysbinary: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdissect.present.text.topics_text", lambda _: dict[str, str]()["hunter2"])
    ran = run(capsysbinary, CAPTURE)
    assert ran.code == 3
    assert "a defect in kdissect, please report it: KeyError in kdissect." in ran.err
    assert ran.err.count("\n") == 1
    assert "hunter2" not in ran.err


# -- streams


def test_a_closed_pipe_ends_quietly() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "kdissect", str(CAPTURE), "-V", "-x"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    assert (process.stderr.read(), process.wait(30)) == (b"", 0)
    process.stderr.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("form", ["text", "ndjson", "parquet"])
def test_an_output_that_is_full_is_one_line(form: str, capsysbinary: Capsys) -> None:
    with open("/dev/full", "wb") as stdout:
        ran = subprocess.run(
            [sys.executable, "-m", "kdissect", "read", str(CAPTURE), "-T", form],
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            check=False,
        )
    file = run(capsysbinary, "read", CAPTURE, "-T", form, "-o", "/dev/full")
    for code, said in ((ran.returncode, ran.stderr.decode()), (file.code, file.err)):
        assert code == 2
        assert "No space left" in said
        assert said.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
def test_closed_streams_are_no_reason_to_fail() -> None:
    command = f"{sys.executable} -m kdissect read {CAPTURE} <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], cwd=ROOT, check=False).returncode == 0


def test_ctrl_c_ends_with_130_and_says_nothing() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "kdissect", "read", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(CAPTURE.read_bytes()[:30_000])
    process.stdin.flush()
    assert process.stdout.readline()  # rows come while standard input is still open
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, b"")


def test_nothing_but_data_on_a_pipe() -> None:
    ran = spawn("read", CAPTURE, "-T", "ndjson")
    assert ran.err == ""
    assert all(json.loads(line) for line in ran.lines)


def test_lines_are_coloured_only_where_that_is_wanted(
    capsysbinary: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert b"\x1b" not in run(capsysbinary, CAPTURE).out
    assert b"\x1b" in run(capsysbinary, CAPTURE, "--color", "always").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert b"\x1b" in run(capsysbinary, CAPTURE).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert b"\x1b" not in run(capsysbinary, CAPTURE).out
    assert b"\x1b" in run(capsysbinary, CAPTURE, "--color", "always").out


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_gets_a_closing_line_and_no_binary() -> None:
    import pty

    def on_terminal(*arguments: str) -> tuple[int, str, bytes]:
        main_end, terminal = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "kdissect", "read", str(LOSS), *arguments],
            stdout=subprocess.PIPE if "-q" in arguments else terminal,
            stderr=terminal,
            stdin=subprocess.DEVNULL,
            cwd=ROOT,
        )
        os.close(terminal)
        data = b""
        if process.stdout is not None:
            process.stdout.read()
            process.stdout.close()
        while True:
            try:
                piece = os.read(main_end, 65_536)
            except OSError:
                break
            if not piece:
                break
            data += piece
        os.close(main_end)
        return process.wait(30), data.decode("utf-8"), data

    code, text, _ = on_terminal()
    assert code == 0
    assert "303 packets, 15 connections, " in text.splitlines()[-1]
    assert "not decoded: " in text.splitlines()[-1]
    assert on_terminal("-q") == (0, "", b"")
    code, text, _ = on_terminal("-T", "parquet")
    assert code == 2
    assert "is binary" in text


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_the_exit_code_stays_where_nothing_can_be_said() -> None:
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "kdissect", "read", "no-such-file"], stderr=full, cwd=ROOT, check=False
        )
    assert ran.returncode == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ("-e", ""),
        ("-e", "api,,number"),
        ("--records",),
        ("--bytes", "hex"),
        ("-T", "text", "--records"),
        ("-T", "connections", "--records"),
        ("-T", "connections", "--embedded"),
        ("-T", "faults.csv", "--bytes", "hex"),
    ],
)
def test_options_that_would_do_nothing_are_refused(arguments: tuple[str, ...], capsysbinary: Capsys) -> None:
    ran = run(capsysbinary, "read", CAPTURE, *arguments)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, b"", 1)


@pytest.mark.parametrize(
    "command",
    [("read", "--slow"), ("read", "-Y", "slow"), ("read", "--two-pass"), ("stats", "-z", "srt", "--slow")],
)
def test_a_pipe_that_must_be_read_twice_is(command: tuple[str, ...], capsysbinary: Capsys) -> None:
    data = CAPTURE.read_bytes()
    for path in ("-", "/dev/stdin"):
        assert run_with(data, *command, path) == run(capsysbinary, *command, CAPTURE)
