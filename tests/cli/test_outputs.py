"""What becomes of files that a command writes, however it ends."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kdissect.capture.files import read_packets
from kdissect.capture.names import names_body
from kdissect.capture.reader import Interface, InterfaceCounts
from kdissect.capture.writer import PcapngWriter
from kdissect.cli import main
from kdissect.cli.interrupts import held
from kdissect.model import Packet
from tests.cli.run import CAPTURES, ROOT, Ran, run, run_with, spawn

CAPTURE = CAPTURES / "basic-kafka43.pcapng"
LONG = CAPTURES / "consumer-group-kip848.pcapng"

Capsys = pytest.CaptureFixture[bytes]


def rows(ran: Ran) -> list[dict[str, Any]]:
    """The exchanges, without what counts packets."""
    found = [json.loads(line) for line in ran.lines]
    for row in found:
        del row["request_packet"], row["response_packet"]
    return found


def without_waits(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Exchanges without what bare acknowledgements tell: of them ``-w`` writes only those of handshakes."""
    told = (
        "behind_ns",
        "behind_correlation_id",
        "network_ns",
        "served_ns",
        "wait_ns",
        "broker_ns",
        "think_ns",
    )
    return [{name: value for name, value in row.items() if name not in told} for row in found]


def until_idle(process: subprocess.Popen[bytes], seconds: float = 60) -> None:
    """Wait until it has taken all that was written to it, and waits for more."""
    assert process.stdin is not None
    end, idle = time.monotonic() + seconds, 0
    while idle < 5:
        assert time.monotonic() < end, "it did not read what was written"
        time.sleep(0.1)
        left = struct.unpack("i", fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4)))[0]
        state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        idle = idle + 1 if left == 0 and state == "S" else 0


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
        until_idle(process)
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


@pytest.fixture
def default_ctrl_c() -> Iterator[None]:
    """Ctrl-C as Python starts with: PySpark leaves a handler of its own in the process."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("default_ctrl_c")
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
    assert without_waits(rows(run(capsysbinary, path, "-T", "ndjson"))) == without_waits(rows(shown))


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
    assert without_waits(rows(run(capsysbinary, path, "-T", "ndjson"))) == without_waits(shown)
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


@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.parametrize("options", [("-Y", "number == 20"), ("--jobs", "2"), ("--comment", "findings")])
def test_names_of_addresses_and_counts_of_interfaces_are_kept(
    options: tuple[str, ...], piped: bool, tmp_path: Path, capsysbinary: Capsys
) -> None:
    source, path = tmp_path / "in.pcapng", tmp_path / "out.pcapng"
    packets = [item for item in read_packets([CAPTURE]) if isinstance(item, Packet)]
    body = names_body([(1, b"\x0a\0\0\1broker-of-alice\0")], [])
    counts = InterfaceCounts(packets[-1].timestamp_ns, None, None, ((4, (99).to_bytes(8, "little")),))
    with source.open("wb") as file:
        told = [Interface(1, name="eth7", counts=counts, names=(body,))]
        writer = PcapngWriter(file, told)
        writer.write_names(told)
        for item in packets:
            writer.write(item._replace(interface=0))
        writer.write_counts(told)
    if piped and options[0] != "--jobs":
        assert run_with(source.read_bytes(), "read", "-", *options, "-w", str(path)).code == 0
    else:
        assert run(capsysbinary, source, *options, "-w", path).code == 0
    with closing(read_packets([path])) as capture:
        assert all(isinstance(item, Packet) for item in capture)
    (found,) = capture.interfaces
    assert (found.name, found.names, found.counts) == ("eth7", (body,), counts)


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
        (["-w", "OUT", "-T", "connections"], "rows of -T connections have no packets"),
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


# -- signals and readers that go


def ended_by(number: int, *arguments: object) -> Ran:
    """What a command says when a signal ends it while more of standard input may still come."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "kdissect", *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.PIPE,
            cwd=ROOT,
        )
        assert process.stdin is not None
        # More than a pipe holds: once it is written, reading has begun.
        process.stdin.write(LONG.read_bytes()[:-1_000])
        process.stdin.flush()
        time.sleep(1)
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
        out.seek(0)
        return Ran(process.returncode, out.read(), err.decode())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("form", ["parquet", "connections"])
def test_a_signal_ends_the_input_and_what_there_was_is_said(number: int, form: str, tmp_path: Path) -> None:
    path = tmp_path / "out"
    ran = ended_by(number, "read", "-", "-T", form, "-o", path)
    assert (ran.code, ran.err) == (130, "")
    if form == "parquet":
        assert pq.read_table(path).num_rows > 5
    else:
        assert "open" in [json.loads(line)["end"] for line in path.read_bytes().splitlines()]


def test_statistics_up_to_a_signal_are_printed() -> None:
    ran = ended_by(signal.SIGINT, "stats", "-", "-z", "srt")
    assert (ran.code, ran.err) == (130, "")
    assert b"ApiVersions" in ran.out


def test_that_an_answer_is_missing_is_not_said_of_an_input_that_was_interrupted() -> None:
    ran = ended_by(signal.SIGINT, "read", "-", "-T", "ndjson")
    assert ran.code == 130
    assert not any(row["missing"] for row in map(json.loads, ran.lines))


def test_packets_of_rows_are_written_although_their_reader_has_gone(tmp_path: Path) -> None:
    path = tmp_path / "out.pcapng"
    process = subprocess.Popen(
        [sys.executable, "-m", "kdissect", "read", str(CAPTURE), "-V", "-x", "-w", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(150_000)
    process.stdout.close()
    err = process.stderr.read().decode()
    process.stderr.close()
    assert (process.wait(30), err.count("\n")) == (0, 1)
    assert f"{path}: the file is incomplete" in err
    assert any(isinstance(each, Packet) for each in read_packets([path]))


# -- outputs that are inputs, outputs of commands that fail


def test_a_file_of_a_log_folder_is_never_overwritten(tmp_path: Path, capsysbinary: Capsys) -> None:
    folder = tmp_path / "logs"
    shutil.copytree(CAPTURES / "logs", folder)
    segment = folder / "t09-0" / "00000000000000000000.log"
    before = segment.read_bytes()
    (tmp_path / "symbolic").symlink_to(segment)
    os.link(segment, tmp_path / "hard")
    index = segment.with_suffix(".index")
    for out in (segment, tmp_path / "symbolic", tmp_path / "hard"):
        for given in (folder, folder / "t09-0", segment, index):
            ran = run(capsysbinary, "log", given, "-o", out)
            assert (ran.code, ran.err.count("\n")) == (2, 1)
            assert "is also an input" in ran.err
    assert segment.read_bytes() == before
    assert run(capsysbinary, "log", folder, "-o", tmp_path / "another").code == 0


def test_raw_bytes_and_key_logs_are_never_overwritten(tmp_path: Path, capsysbinary: Capsys) -> None:
    path = tmp_path / "bytes"
    path.write_bytes((CAPTURES / "logs/t09-0/00000000000000000000.log").read_bytes())
    os.link(path, tmp_path / "hard")
    before = path.read_bytes()
    for arguments in (
        ("bytes", "records", path, "-o", tmp_path / "hard"),
        ("bytes", "message", "--api", "Fetch", "--api-version", "4", path, "-o", path),
        ("read", CAPTURE, "--keylog", path, "-o", path),
        ("stats", CAPTURE, "-z", "srt", "--keylog", tmp_path, "-o", path),
    ):
        ran = run(capsysbinary, *arguments)
        assert ran.code == 2
        assert "is also an input" in ran.err
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("read", CAPTURE, "-w", "no/such/folder/x"),
        ("read", CAPTURE, "-T", "parquet"),
        ("stats", CAPTURE, "-z", "srt", "-T", "parquet"),
        ("log", CAPTURES / "logs", "-T", "records.parquet"),
        ("bytes", "records", "abcd", "--input", "hex", "--encode"),
    ],
)
def test_a_command_that_fails_leaves_its_output_as_it_was(
    arguments: tuple[object, ...], tmp_path: Path, capsysbinary: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "kdissect.present.arrow", raising=False)
    path = tmp_path / "out"
    assert run(capsysbinary, *arguments, "-o", path).code in (2, 3)
    assert not path.exists()
    path.write_bytes(b"as it was")
    ran = run(capsysbinary, *arguments, "-o", path)
    assert (ran.code, ran.err.count("\n")) in ((2, 1), (3, 1))
    assert path.read_bytes() == b"as it was"


def test_an_output_that_nothing_was_written_to_is_empty(tmp_path: Path, capsysbinary: Capsys) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"as it was")
    assert run(capsysbinary, "read", CAPTURE, "-Y", "api == 4711", "-o", path).code == 0
    assert path.read_bytes() == b""


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("usual_umask")
@pytest.mark.parametrize(
    "arguments",
    [
        ("read", CAPTURE, "-w"),
        ("read", CAPTURE, "-T", "ndjson", "-o"),
        ("read", CAPTURE, "-T", "parquet", "-o"),
        ("read", CAPTURE, "-T", "records.parquet", "-o"),
        ("read", CAPTURE, "-T", "faults.csv", "-o"),
        ("stats", CAPTURE, "-z", "srt", "-T", "csv", "-o"),
        (
            "bytes",
            "message",
            "--api",
            "Metadata",
            "--kind",
            "request",
            "--api-version",
            "0",
            "00000000",
            "-o",
        ),
        ("log", ROOT / "captures" / "logs", "-T", "records", "-o"),
    ],
    ids=lambda arguments: " ".join(each for each in arguments if isinstance(each, str)),
)
def test_a_new_output_is_for_its_owner_only_and_an_old_one_keeps_its_mode(
    arguments: tuple[object, ...], tmp_path: Path, capsysbinary: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out"
    # It is made with that mode: what is given one later is open to all for a moment.
    for name in ("chmod", "fchmod"):
        monkeypatch.setattr(os, name, None)
    assert run(capsysbinary, *arguments, path).code == 0
    assert path.stat().st_mode & 0o777 == 0o600
    monkeypatch.undo()
    path.chmod(0o640)
    assert run(capsysbinary, *arguments, path).code == 0
    assert path.stat().st_mode & 0o777 == 0o640


def test_arrow_takes_its_memory_from_the_system(tmp_path: Path) -> None:
    """Its own allocator keeps 45 MB more; it is chosen where the library is loaded."""
    script = """
import sys
from kdissect.cli import main
code = main(["read", *sys.argv[1:]])
import pyarrow
print(code, pyarrow.default_memory_pool().backend_name)
"""
    written = tmp_path / "x.parquet"
    command = [sys.executable, "-c", script, str(CAPTURE), "-q", "-T", "records.parquet", "-o", str(written)]
    calm = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    assert subprocess.check_output(command, cwd=ROOT, env=calm, text=True) == "0 system\n"
    assert pq.ParquetFile(written).metadata.num_rows > 0
