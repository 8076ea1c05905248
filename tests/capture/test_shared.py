"""The shared captures: damaged files, one conversation in many shapes, malicious ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdissect.capture.datagrams import DatagramReader
from kdissect.capture.files import read_packets
from kdissect.capture.segments import SegmentReader
from kdissect.model import CaptureError, Fault, Packet, Secrets, Segment
from tests.shared import SHARED, requires_shared, shared

pytestmark = requires_shared

DAMAGED: dict[str, tuple[int, list[tuple[str, int]]]] = {
    "bigendian.pcap": (239, []),
    "hdr_only.pcap": (0, []),
    "incl_2e31.pcap": (238, [("bad-length", 94)]),
    "incl_2e32.pcap": (238, [("bad-length", 94)]),
    "incl_300k.pcap": (238, [("bad-length", 94)]),
    "neg_ts.pcap": (239, []),
    "ng_bad_iface.pcapng": (85, [("bad-interface", 624)]),
    "ng_caplen_lie.pcapng": (85, [("bad-block", 624)]),
    "ng_len0.pcapng": (85, [("bad-length", 624)]),
    "ng_len13.pcapng": (85, [("bad-length", 624)]),
    "ng_len7.pcapng": (85, [("bad-length", 624)]),
    "ng_len_17M.pcapng": (85, [("bad-length", 624)]),
    "ng_len_2e31.pcapng": (85, [("bad-length", 624)]),
    "ng_trunc.pcapng": (85, [("cut-short", 12_380)]),
    "orig_lt_incl.pcap": (239, [("bad-length", 94)]),
    "trunc_hdr.pcap": (238, [("cut-short", 32_976)]),
    "trunc_tail.pcap": (238, [("cut-short", 32_976)]),
}
"""File: packets read, faults with their offsets."""
NO_CAPTURES = {"hdr10.pcap": "10 of 24 bytes", "modified_magic.pcap": "modified magic"}


def files(folder: str, pattern: str = "*") -> list[Path]:
    return sorted(shared(f"testdata/{folder}").glob(pattern)) if SHARED else []


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def segments(path: Path, reader: SegmentReader | DatagramReader) -> Iterator[Segment | Fault]:
    for item in read_packets([path]):
        found = reader.feed(item) if isinstance(item, Packet) else None if isinstance(item, Secrets) else item
        if found is not None:
            yield found
    yield from reader.close()


@pytest.mark.parametrize("file", DAMAGED)
def test_damaged_files_give_what_is_whole_and_one_fault(file: str) -> None:
    items = list(read_packets([shared(f"testdata/damaged/{file}")]))
    packets = sum(isinstance(item, Packet) for item in items)
    assert (packets, [(item.kind, item.offset) for item in items if isinstance(item, Fault)]) == DAMAGED[file]


@pytest.mark.parametrize("file", NO_CAPTURES)
def test_damaged_headers_are_refused(file: str) -> None:
    with pytest.raises(CaptureError, match=NO_CAPTURES[file]):
        read_packets([shared(f"testdata/damaged/{file}")])


def test_every_damaged_file_has_its_outcome_here() -> None:
    assert {path.name for path in files("damaged")} == {*DAMAGED, *NO_CAPTURES}


@pytest.mark.parametrize(
    "file",
    [
        "24_bad_checksum",
        "25_vlan",
        "26_qinq",
        "27_ipv6_ext",
        "28_vxlan",
        "29_gre",
        "30_ipfrag",
        "31_ipfrag_reversed",
        "40_raw_dlt101",
        "41_null_le",
        "42_loop_be",
        "43_sll",
        "44_sll2",
    ],
)
def test_the_conversation_is_the_same_in_every_shape(file: str) -> None:
    def conversation(file: str) -> list[tuple[int, bytes]]:
        found = list(segments(shared(f"testdata/tcp/{file}.pcap"), SegmentReader()))
        return [(item.seq, item.payload) for item in found if isinstance(item, Segment)]

    assert conversation(file) == conversation("00_base")
    assert len(conversation(file)) == 239


def test_large_segments_carry_the_same_bytes() -> None:
    def bytes_of(file: str) -> dict[bytes, bytes]:
        sent: dict[bytes, bytes] = {}
        for item in segments(shared(f"testdata/tcp/{file}.pcap"), SegmentReader()):
            assert isinstance(item, Segment)
            sent[item.source[-2:]] = sent.get(item.source[-2:], b"") + item.payload
        return sent

    assert bytes_of("22_gro_60k") == bytes_of("00_base")


def test_cut_packets_keep_their_lengths() -> None:
    whole = list(segments(shared("testdata/tcp/00_base.pcap"), SegmentReader()))
    cut = list(segments(shared("testdata/tcp/23_snaplen96.pcap"), SegmentReader()))
    assert len(cut) == len(whole)
    for item, other in zip(cut, whole, strict=True):
        assert isinstance(item, Segment)
        assert isinstance(other, Segment)
        # The tool that cut them rounded the times.
        assert item._replace(payload=b"", timestamp_ns=0) == other._replace(payload=b"", timestamp_ns=0)
        assert item.payload == other.payload[:42]


CAPTURES = (
    files("tcp") + files("malicious") + files("captures/lab", "*/capture*") + files("captures", "*/*.pcap")
)


@pytest.mark.parametrize("path", CAPTURES, ids=name)
def test_real_captures_have_no_fault_and_both_paths_agree(path: Path) -> None:
    found = list(segments(path, SegmentReader()))
    assert [item for item in found if isinstance(item, Fault)] == []
    assert found == list(segments(path, DatagramReader()))
    assert found


@pytest.mark.parametrize("path", files("captures/lab", "*/case.json"), ids=name)
def test_every_packet_of_a_case_is_read(path: Path) -> None:
    wanted = json.loads(path.read_text())["stats"]["packets"]
    for capture in path.parent.glob("capture*"):
        assert sum(isinstance(item, Packet) for item in read_packets([capture])) == wanted


@pytest.mark.parametrize("case", ["tls12-aiokafka", "tls13"])
def test_secrets_are_read(case: str) -> None:
    folder = shared(f"testdata/captures/lab/{case}")
    found = [item for item in read_packets([folder / "capture-dsb.pcapng"]) if isinstance(item, Secrets)]
    assert [item.kind for item in found] == [0x544C534B]
    assert found[0].data.split() == (folder / "keys.log").read_bytes().split()
