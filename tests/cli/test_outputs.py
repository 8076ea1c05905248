"""What becomes of files that a command writes, however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kdissect.capture.files import read_packets
from kdissect.capture.writer import PcapngWriter
from kdissect.cli import main
from kdissect.cli.interrupts import held
from kdissect.model import Packet
from tests.cli.run import CAPTURES, ROOT, Ran, run, spawn

CAPTURE = CAPTURES / "basic-kafka43.pcapng"

Capsys = pytest.CaptureFixture[bytes]


def rows(ran: Ran) -> list[dict[str, Any]]:
    """The exchanges, without what counts packets."""
    found = [json.loads(line) for line in ran.lines]
    for row in found:
        del row["request_packet"], row["response_packet"]
    return found


def interrupted(*arguments: object) -> int:
    """Ctrl-C while more of a capture may still come; gives the exit code."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kdissect", "read", "-", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(CAPTURE.read_bytes()[:30_000])
    process.stdin.flush()
    if "-o" in arguments:
        time.sleep(3)
    else:
        process.stdout.readline()
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert err == b""
    return process.returncode


# -- Ctrl-C


def test_parquet_up_to_ctrl_c_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    assert interrupted("-T", "parquet", "-o", path) == 130
    assert pq.read_table(path).num_rows > 5


def test_packets_of_what_was_shown_up_to_ctrl_c_are_written(tmp_path: Path, capsysbinary: Capsys) -> None:
    path = tmp_path / "out.pcapng"
    assert interrupted("-T", "ndjson", "-w", path) == 130
    assert len(run(capsysbinary, path, "-T", "ndjson").lines) > 5


def test_ctrl_c_waits_for_what_must_be_whole_but_a_second_does_not() -> None:
    done = []

    def press(times: int) -> None:
        with held():
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
            done.append(times)

    for times in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            press(times)
    assert done == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_while_modules_are_imported_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: Capsys
) -> None:
    class Impatient:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "kdissect.cli.root":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "kdissect.cli.root", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Impatient(), *sys.meta_path])
    assert main(["--version"]) == 130
    assert capsysbinary.readouterr() == (b"", b"")


# -- an output is replaced only by something


@pytest.mark.parametrize(
    "arguments",
    [
        ["read", "/nosuch", "-o", "OUT"],
        ["read", "/nosuch", "-w", "OUT"],
        ["read", "TEXT", "-T", "parquet", "-o", "OUT"],
        ["stats", "/nosuch", "-z", "io", "-o", "OUT"],
        ["log", "/nosuch", "-o", "OUT"],
        ["log", "/nosuch", "-T", "records.parquet", "-o", "OUT"],
    ],
)
def test_an_output_stays_where_there_is_no_input(
    arguments: list[str], tmp_path: Path, capsysbinary: Capsys
) -> None:
    output, text = tmp_path / "out", tmp_path / "hello.txt"
    output.write_bytes(b"of yesterday")
    text.write_bytes(b"hello")
    places = {"OUT": str(output), "TEXT": str(text)}
    ran = run(capsysbinary, *(places.get(word, word) for word in arguments))
    assert (ran.code, ran.err.count("\n")) == (3, 1)
    assert output.read_bytes() == b"of yesterday"


# -- -w


def test_written_packets_read_as_what_was_shown(tmp_path: Path, capsysbinary: Capsys) -> None:
    path = tmp_path / "out.pcapng"
    shown = run(capsysbinary, CAPTURE, "-T", "ndjson", "-w", path)
    assert rows(run(capsysbinary, path, "-T", "ndjson")) == rows(shown)


def test_handshakes_are_written_of_shown_connections_only(tmp_path: Path, capsysbinary: Capsys) -> None:
    path = tmp_path / "out.pcapng"
    (shown,) = rows(run(capsysbinary, CAPTURE, "-T", "ndjson", "-Y", "number == 20", "-w", path))
    (connection,) = [json.loads(line) for line in run(capsysbinary, path, "-T", "connections").lines]
    assert (connection["client"], connection["exchanges"]) == (shown["client"], 1)
    assert "inferred" in shown
    assert rows(run(capsysbinary, path, "-T", "ndjson"))[0]["inferred"] is None


def test_all_fragments_of_what_is_shown_are_written(tmp_path: Path, capsysbinary: Capsys) -> None:
    source, path = tmp_path / "in.pcapng", tmp_path / "out.pcapng"
    whole = 0
    with source.open("wb") as file:
        writer = PcapngWriter(file)
        number = 0
        for item in read_packets([CAPTURE]):
            if isinstance(item, Packet):
                whole += 1
                for data in in_fragments(item.data):
                    number += 1
                    writer.write(item._replace(number=number, data=data, wire_length=len(data)))
    assert number > 2 * whole
    shown = rows(run(capsysbinary, source, "-T", "ndjson", "-w", path))
    assert shown == rows(run(capsysbinary, CAPTURE, "-T", "ndjson"))
    assert rows(run(capsysbinary, path, "-T", "ndjson")) == shown
    one = run(capsysbinary, source, "-T", "ndjson", "-Y", "number == 20", "-w", path)
    again = rows(run(capsysbinary, path, "-T", "ndjson"))
    assert [row["request"] for row in again] == [row["request"] for row in rows(one)]
    assert [row["response"] for row in again] == [row["response"] for row in rows(one)]
    kinds = [json.loads(line)["kind"] for line in run(capsysbinary, path, "-T", "faults").lines]
    assert "fragment-lost" not in kinds


def in_fragments(frame: bytes, size: int = 48) -> list[bytes]:
    """The Ethernet frames of the fragments of an IPv4 packet (20 bytes of header)."""
    header, payload = frame[14:34], frame[34 : 14 + int.from_bytes(frame[16:18], "big")]
    out = []
    for at in range(0, len(payload), size):
        part = payload[at : at + size]
        where = at // 8 | (0x2000 if at + size < len(payload) else 0)
        length = (20 + len(part)).to_bytes(2, "big")
        fixed = header[:2] + length + header[4:6] + where.to_bytes(2, "big") + header[8:]
        out.append(frame[:14] + fixed + part)
    return out


def test_names_of_interfaces_are_kept(tmp_path: Path, capsysbinary: Capsys) -> None:
    path = tmp_path / "out.pcapng"
    assert run(capsysbinary, CAPTURE, "-w", path).code == 0
    names = []
    for each in (CAPTURE, path):
        capture = read_packets([each])
        assert any(isinstance(item, Packet) for item in capture)
        names.append([interface.name for interface in capture.interfaces])
        capture.close()
    assert names[0][0] is not None
    assert names[0][0] in names[1]


def test_packets_can_go_to_standard_output(tmp_path: Path) -> None:
    path, lines = tmp_path / "out.pcapng", tmp_path / "rows"
    ran = spawn("read", CAPTURE, "-w", "-", "-o", lines)
    assert (ran.code, ran.err) == (0, "")
    assert spawn("read", CAPTURE, "-w", path).out == lines.read_bytes()
    assert ran.out == path.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["-w", "-"], "both go to standard output"),
        (["-w", "-", "-o", "-"], "both go to standard output"),
        (["-w", "OUT", "-o", "OUT"], "both go to"),
        (["-w", "OUT", "-o", "SAME"], "both go to"),
        (["-w", "OUT", "-T", "connections"], "-T connections shows no packets"),
    ],
)
def test_packets_that_have_no_place_of_their_own_are_refused(
    arguments: list[str], part: str, tmp_path: Path, capsysbinary: Capsys
) -> None:
    output = tmp_path / "out"
    output.write_bytes(b"of yesterday")
    same = os.path.join(tmp_path, ".", "out")
    ran = run(capsysbinary, "read", CAPTURE, *({"OUT": output, "SAME": same}.get(x, x) for x in arguments))
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, b"", 1)
    assert part in ran.err
    assert output.read_bytes() == b"of yesterday"
