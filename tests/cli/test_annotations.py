"""``-w OUT --comment``: what packets say, read back by kdissect and by tshark."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

import pytest

from kdissect.capture.files import Capture, read_packets
from kdissect.capture.options import COMMENT
from kdissect.model import Packet
from tests.cli.run import CAPTURES, Ran, run, run_with
from tests.tshark import requires_tshark, tshark

CAPTURE = CAPTURES / "errors.pcapng"


def packets_of(path: Path) -> tuple[list[Packet], Capture]:
    capture = read_packets([path])
    return [item for item in capture if isinstance(item, Packet)], capture


def comments_of(path: Path) -> dict[int, tuple[str, ...]]:
    return {each.number: each.comments for each in packets_of(path)[0] if each.comments}


def section_comment(path: Path) -> str:
    _, capture = packets_of(path)
    (section,) = {each.section for each in capture.interfaces}
    (comment,) = [value.decode() for code, value in section if code == COMMENT]
    return comment


def annotated(
    capsysbinary: pytest.CaptureFixture[bytes], out: Path, *options: object, capture: Path = CAPTURE
) -> Ran:
    return run(capsysbinary, "read", capture, "-w", out, *options)


def findings(capsysbinary: pytest.CaptureFixture[bytes], capture: Path = CAPTURE) -> list[dict[str, object]]:
    ran = run(capsysbinary, "explain", capture, "--all", "-q", "-T", "ndjson")
    return [json.loads(line) for line in ran.lines]


def test_packets_of_findings_say_so(capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    assert annotated(capsysbinary, out, "--comment", "findings").code == 0
    said = comments_of(out)
    found = findings(capsysbinary)
    assert found
    rows = run(capsysbinary, "read", CAPTURE, "-T", "ndjson", "-e", "number,request_packet,response_packet")
    packets = {row["number"]: row for row in map(json.loads, rows.lines)}
    expected: dict[int, set[str]] = {}
    for finding in found:
        exchanges = finding["exchanges"]
        assert isinstance(exchanges, list)
        for number in exchanges:
            for side in ("request_packet", "response_packet"):
                if packets[number][side] is not None:
                    begin = f"kdissect {finding['severity']} {finding['finding']}: "
                    expected.setdefault(packets[number][side], set()).add(begin)
    for packet, begins in expected.items():
        for begin in begins:
            assert any(text.startswith(begin) for text in said[packet])


def test_all_packets_are_there_and_keep_their_numbers(
    capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    out = tmp_path / "out.pcapng"
    annotated(capsysbinary, out, "--comment", "findings")
    before, after = packets_of(CAPTURE)[0], packets_of(out)[0]
    assert [each._replace(comments=()) for each in after] == [each._replace(comments=()) for each in before]
    assert out.stat().st_mode & 0o777 == 0o600


def test_where_rows_are_chosen_their_packets_are_written_with_the_numbers_they_have_there(
    capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    out = tmp_path / "out.pcapng"
    annotated(capsysbinary, out, "--comment", "exchanges", "-Y", "api == Produce")
    packets, said = packets_of(out)[0], comments_of(out)
    assert len(packets) < len(packets_of(CAPTURE)[0])
    shown = [text for texts in said.values() for text in texts if "api=Produce" in text]
    assert shown
    rows = run(
        capsysbinary, "read", out, "-T", "ndjson", "-e", "request_packet,response_packet,correlation_id"
    )
    there = {row["correlation_id"]: row for row in map(json.loads, rows.lines)}
    for text in shown:
        told = dict(part.split("=", 1) for part in text.split() if "=" in part)
        for side in ("request_packet", "response_packet"):
            if side in told:
                assert int(told[side]) == there[int(told["correlation_id"])][side]


def test_comments_are_not_said_twice(capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    once, twice = tmp_path / "once.pcapng", tmp_path / "twice.pcapng"
    annotated(capsysbinary, once, "--comment", "findings", "--comment", "exchanges")
    annotated(capsysbinary, twice, "--comment", "findings", "--comment", "exchanges", capture=once)
    assert comments_of(twice) == comments_of(once)
    assert section_comment(twice) == section_comment(once)


def test_the_section_tells_all_findings(capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    annotated(capsysbinary, out, "--comment", "findings")
    head, *lines = section_comment(out).split("\n")
    assert re.match(r"kdissect \S+: \d+ exchanges, ", head)
    found = findings(capsysbinary)
    told = [line.split(": ")[0] for line in lines]
    assert told == [f"kdissect {each['severity']} {each['finding']}" for each in found]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("wrong-advertised-listener", "listener-unreachable"),
        ("client-0.10.2-on-4.3", "request-refused-by-close"),
    ],
)
def test_findings_that_look_at_tcp_are_known_too(
    name: str, found: str, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    capture, out = CAPTURES / "incidents" / f"{name}.pcapng.gz", tmp_path / "out.pcapng"
    assert found in {each["finding"] for each in findings(capsysbinary, capture)}
    annotated(capsysbinary, out, "--comment", "findings", capture=capture)
    assert f" {found}: " in section_comment(out)


def test_a_filter_knows_findings_that_look_at_tcp(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    capture = CAPTURES / "incidents" / "client-0.10.2-on-4.3.pcapng.gz"
    asked = ("-Y", 'finding == "request-refused-by-close"')
    assert run(capsysbinary, "read", capture, *asked).lines
    ran = run(capsysbinary, "stats", capture, *asked, "-z", "srt", "-T", "ndjson")
    assert ran.lines


def test_standard_input_can_be_annotated_too(tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    ran = run_with(CAPTURE.read_bytes(), "read", "-", "-w", str(out), "--comment", "findings")
    assert ran.code == 0, ran.err
    assert comments_of(out)
    assert len(packets_of(out)[0]) == len(packets_of(CAPTURE)[0])


def test_comments_need_a_file_of_packets(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    ran = run(capsysbinary, "read", CAPTURE, "--comment", "findings")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "--comment needs -w" in ran.err


@requires_tshark
def test_tshark_finds_the_comments(capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    annotated(capsysbinary, out, "--comment", "findings")
    frames = tshark("-r", out, "-Y", "frame.comment", "-T", "fields", "-e", "frame.number").split()
    assert list(map(int, frames)) == sorted(comments_of(out))


def block(order: str, kind: int, body: bytes, *options: tuple[int, bytes]) -> bytes:
    told = b""
    for code, value in (*options, (0, b"")):
        told += struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)
    length = struct.pack(order + "I", 12 + len(body) + len(told))
    return struct.pack(order + "I", kind) + length + body + told + length


def capture_with_options(order: str) -> bytes:
    frame = bytes(60)
    speed, flags, drops = (
        struct.pack(order + "Q", 10**9),
        struct.pack(order + "I", 1),
        struct.pack(order + "Q", 7),
    )
    custom = struct.pack(order + "I", 32473) + b"own"
    section = block(
        order,
        0x0A0D0D0A,
        struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1),
        *((2, b"a machine"), (3, b"a system"), (4, b"an application"), (1, b"a comment"), (2988, custom)),
    )
    interface = block(
        order,
        1,
        struct.pack(order + "HHI", 1, 0, 0),
        *((2, b"eth7"), (8, speed), (9, b"\x09"), (11, b"\0tcp"), (12, b"Linux"), (15, b"a card")),
    )
    packet = struct.pack(order + "IIIII", 0, 0, 5, len(frame), len(frame)) + frame
    return section + interface + block(order, 6, packet, (2, flags), (4, drops), (1, b"mine"), (2988, custom))


@pytest.mark.parametrize("order", ["<", ">"])
def test_options_of_the_original_are_kept(
    capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path, order: str
) -> None:
    original, out = tmp_path / "in.pcapng", tmp_path / "out.pcapng"
    original.write_bytes(capture_with_options(order))
    annotated(capsysbinary, out, "--comment", "findings", capture=original)
    (packet,), capture = packets_of(out)
    custom = struct.pack("<I", 32473) + b"own"
    assert packet.comments == ("mine",)
    assert packet.options == ((2, b"\1\0\0\0"), (4, b"\7\0\0\0\0\0\0\0"), (2988, custom))
    (interface,) = capture.interfaces
    assert interface.options == (
        *((8, struct.pack("<Q", 10**9)), (11, b"\0tcp"), (12, b"Linux"), (15, b"a card")),
    )
    told = ((2, b"a machine"), (3, b"a system"), (4, b"an application"), (1, b"a comment"), (2988, custom))
    assert interface.section[:-1] == told
