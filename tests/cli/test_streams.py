"""``read -T follow``: the bytes of connections, checked against Wireshark's own reassembly."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kdissect.present.follow import MASK
from tests.amount import some
from tests.cli.run import CAPTURES, run
from tests.lab import LAB
from tests.shared import requires_shared, shared
from tests.tshark import requires_tshark, tshark

Blocks = dict[int, tuple[list[str], list[str]]]
"""By connection: the nodes, and the lines of bytes."""

MISSING = re.compile(rb"\[\d+ bytes missing in capture file\]\0")


def blocks(text: str) -> Blocks:
    """What follows each filter."""
    found: Blocks = {}
    for block in text.split("Filter: tcp.stream eq ")[1:]:
        number, *lines = block.split("\n")
        nodes = [line for line in lines if line.startswith("Node")]
        found[int(number)] = nodes, [line for line in lines if re.fullmatch(r"\t?([0-9a-f*]{2})+", line)]
    return found


def by_wireshark(capture: Path, numbers: list[int]) -> Blocks:
    asked = [each for number in numbers for each in ("-z", f"follow,tcp,raw,{number}")]
    return blocks(tshark("-r", capture, "-q", *asked))


def followed(capsysbinary: pytest.CaptureFixture[bytes], capture: Path, *options: str) -> Blocks:
    ran = run(capsysbinary, "read", "-T", "follow", capture, *options)
    assert ran.code == 0, ran.err
    return blocks(ran.out.decode())


def sent(lines: list[str], side: int, without_missing: bool = False) -> bytes:
    """What a node sent."""
    hexed = [line.strip() for line in lines if line.startswith("\t") == bool(side)]
    said = [bytes.fromhex(line) for line in hexed]
    return b"".join(b"" if without_missing and MISSING.fullmatch(each) else each for each in said)


WHOLE = (
    *("00_base", "01_ooo_adjacent", "03_dup_identical", "04_dup_all_any", "05_rexmit_different"),
    *("06_overlap_10B", "07_seq_wrap", "08_no_syn", "09_midstream_from_seg3", "14_keepalive_1B"),
    *("15_keepalive_0B", "16_rst_inject_mid", "17_port_reuse", "18_port_reuse_nofin", "22_gro_60k"),
    *("26_qinq", "27_ipv6_ext", "28_vxlan", "30_ipfrag", "31_ipfrag_reversed", "43_sll", "44_sll2"),
)
"""Captures of the hard cases of TCP that hold every byte."""


@requires_tshark
@requires_shared
@pytest.mark.parametrize(
    "name", some(WHOLE, 10, "00_base", "07_seq_wrap", "17_port_reuse", "30_ipfrag", "43_sll")
)
def test_blocks_are_those_of_wireshark_line_by_line(
    capsysbinary: pytest.CaptureFixture[bytes], name: str
) -> None:
    capture = shared(f"testdata/tcp/{name}.pcap")
    ours = followed(capsysbinary, capture)
    assert ours == by_wireshark(capture, list(ours))


@requires_tshark
@requires_shared
@pytest.mark.parametrize("name", ["11_lost_2pct", "12_lost_one_req_seg", "13_lost_one_resp_seg"])
def test_lost_bytes_are_told_in_the_same_places(
    capsysbinary: pytest.CaptureFixture[bytes], name: str
) -> None:
    capture = shared(f"testdata/tcp/{name}.pcap")
    ours = followed(capsysbinary, capture, "--show-secrets")
    for number, (_, lines) in by_wireshark(capture, list(ours)).items():
        for side in (0, 1):
            assert sent(ours[number][1], side) == sent(lines, side)


@requires_tshark
@pytest.mark.parametrize("name", ["ipv6", "java43-basic-loss", "midstream", "sasl-plain-reauth", "tls13"])
def test_captures_of_clients_hold_the_same_bytes(
    capsysbinary: pytest.CaptureFixture[bytes], name: str
) -> None:
    (capture,) = (LAB / name).glob("capture.pcap*")
    ours = followed(capsysbinary, capture, "--show-secrets")
    theirs = by_wireshark(capture, sorted(ours)[:20])
    assert len(theirs) > 1
    for number, (nodes, lines) in theirs.items():
        assert nodes == ours[number][0]
        for side in (0, 1):
            assert sent(ours[number][1], side, True) == sent(lines, side, True)


@requires_tshark
def test_hidden_bytes_are_as_many_as_there_are(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    (capture,) = (LAB / "sasl-plain-reauth").glob("capture.pcap*")
    hidden = followed(capsysbinary, capture)
    plain = followed(capsysbinary, capture, "--show-secrets")
    assert hidden.keys() == plain.keys()
    masked = 0
    for number, (_, lines) in plain.items():
        for shown, line in zip(hidden[number][1], lines, strict=True):
            assert re.fullmatch(re.sub(r"\*", "[0-9a-f]", shown), line)
            masked += shown.count(MASK)
    assert masked


def test_passwords_are_hidden(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    (capture,) = (LAB / "sasl-plain-reauth").glob("capture.pcap*")
    shown = run(capsysbinary, "read", "-T", "follow", "--show-secrets", capture)
    assert b"\0alice\0".hex().encode() in shown.out
    hidden = run(capsysbinary, "read", "-T", "follow", capture)
    assert b"\0alice\0".hex().encode() not in hidden.out


@requires_shared
@pytest.mark.parametrize("name", ["http_on_9092", "len_2e31"])
def test_what_is_not_known_is_hidden(capsysbinary: pytest.CaptureFixture[bytes], name: str) -> None:
    ours = followed(capsysbinary, shared(f"testdata/malicious/{name}.pcap"))
    assert ours
    assert all(set(line.strip()) == {"*"} for _, lines in ours.values() for line in lines)


@requires_shared
def test_a_filter_for_a_number_finds_connections_without_exchanges(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    capture = shared("testdata/malicious/http_on_9092.pcap")
    assert list(followed(capsysbinary, capture, "-Y", "connection == 0")) == [0]
    assert list(followed(capsysbinary, capture, "-Y", "connection != 0")) == []
    rows = run(
        capsysbinary, "read", "-T", "connections.csv", "-e", "connection", "-Y", "connection == 0", capture
    )
    assert rows.lines == ['"connection"', '"0"']


def test_a_filter_chooses_connections(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    capture = CAPTURES / "errors.pcapng"
    assert list(followed(capsysbinary, capture, "-Y", "connection == 1")) == [1]
    all_of_them = followed(capsysbinary, capture)
    assert len(all_of_them) > 1
    assert len(followed(capsysbinary, capture, "-c", "1")) == 1
    some = followed(capsysbinary, capture, "-Y", "api == Produce")
    assert 0 < len(some) < len(all_of_them)


@pytest.mark.parametrize(
    ("options", "word"),
    [(["-e", "api"], "-e"), (["-V"], "-V"), (["-w", "x.pcapng"], "-w"), (["--follow"], "--follow")],
)
def test_options_of_rows_are_refused(
    capsysbinary: pytest.CaptureFixture[bytes], options: list[str], word: str
) -> None:
    ran = run(capsysbinary, "read", "-T", "follow", *options, CAPTURES / "errors.pcapng")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert f"{word} works with rows" in ran.err


def test_other_commands_say_where_it_goes(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    ran = run(capsysbinary, "live", "-i", "lo", "-T", "follow")
    assert (ran.code, ran.err) == (
        2,
        "kdissect: -T follow works with kdissect read only, because it reads captures twice\n",
    )
