"""Malicious input costs no more than its share, damaged files give all that is whole in them; both are named
for what they are. The conversation in many shapes of TCP is in ``test_tcp_shapes``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from kdissect.capture.files import read_packets
from kdissect.dissect import dissect
from kdissect.exchange import Exchange
from kdissect.model import Fault
from tests.cli.run import ROOT, run
from tests.lab import dissected
from tests.shared import requires_shared, shared

pytestmark = requires_shared

CPU_SECONDS = 2.0
RESIDENT_BYTES = 256 << 20

# -- malicious input


class Outcome(NamedTuple):
    """What a malicious capture must come to."""

    kinds: frozenset[str]
    """Of its faults, where the connection is taken for Kafka's (a lone broken request proves nothing)."""
    exchanges: int
    """Where it has to be recognised."""
    protocol: str


def faults(*kinds: str, exchanges: int = 1, protocol: str = "kafka") -> Outcome:
    return Outcome(frozenset(kinds), exchanges, protocol)


MALICIOUS = {
    "array_1byte_elems_1M": faults("truncated"),
    "array_2e31_metadata_v1": faults("truncated", exchanges=0, protocol="unknown"),
    "array_neg2_metadata_v1": faults("negative-length", exchanges=0, protocol="unknown"),
    "bomb_gzip_1G": faults("decompression-limit", "bad-record"),
    "bomb_lz4_1G": faults("decompression-limit", "bad-record"),
    "bomb_zstd_1G": faults("decompression-limit", "bad-record"),
    "compact_array_2e32_metadata_v9": faults("truncated", exchanges=0, protocol="unknown"),
    "corr_reuse": faults("duplicate-correlation", exchanges=1000),
    "http_on_9092": faults("bad-size", "skipped", exchanges=0, protocol="http"),
    "len_2e31": faults("bad-size", "skipped", exchanges=0, protocol="unknown"),
    "len_neg": faults("bad-size", "skipped"),
    "len_zero": faults("malformed"),
    "nested_breadth_2e12": faults("nested-compression"),
    "nested_gzip_10": faults("nested-compression"),
    "nested_gzip_100": faults("nested-compression"),
    "nested_gzip_1000": faults("nested-compression"),
    "nested_gzip_2": faults("nested-compression"),
    "pending_100k": faults("too-many-pending", exchanges=100_000),
    "record_zero_len_many": faults("bad-record"),
    "records_count_2e31": faults("record-count"),
    "records_count_neg": faults("record-count", "bad-batch"),
    "snappy_len_lie": faults("bad-compressed-data"),
    "tagged_2e31_zero": faults("malformed", exchanges=0, protocol="unknown"),
    "tagged_2e64": faults("malformed", exchanges=0, protocol="unknown"),
    "tls_on_9092": faults(exchanges=0, protocol="tls"),
    "varint_overlong": faults("malformed", exchanges=0, protocol="unknown"),
    "xerial_neg_chunk": faults("bad-compressed-data"),
    "xerial_zero_chunks": faults("bad-compressed-data"),
}
LONE_BROKEN_REQUESTS = (
    *("array_2e31_metadata_v1", "array_neg2_metadata_v1", "compact_array_2e32_metadata_v9"),
    *("tagged_2e31_zero", "tagged_2e64", "varint_overlong"),
)
"""Not taken for Kafka, but told."""
MANY_MESSAGES = "pending_100k"
"""Not broken, but many: what it costs is what 100,000 messages cost."""


def malicious(name: str) -> Path:
    return shared(f"testdata/malicious/{name}.pcap")


def test_every_malicious_capture_has_its_outcome_here() -> None:
    assert {path.stem for path in shared("testdata/malicious").iterdir()} == set(MALICIOUS)


@pytest.mark.parametrize("name", MALICIOUS)
def test_malicious_bytes_are_named_for_what_they_are(name: str) -> None:
    kinds: set[str] = set()
    for event in dissect(read_packets([malicious(name)]), broker_ports=frozenset((9092,))):
        if isinstance(event, Exchange):
            kinds.update(fault.kind for fault in event.faults)
        elif isinstance(event, Fault):
            kinds.add(event.kind)
    assert kinds == MALICIOUS[name].kinds


@pytest.mark.parametrize("name", MALICIOUS)
def test_malicious_bytes_are_taken_for_kafka_only_where_they_are(name: str) -> None:
    found = dissected(read_packets([malicious(name)]))
    (connection,) = found.connections
    assert (len(found.exchanges), connection.protocol) == MALICIOUS[name][1:]
    told = [fault.kind for fault in found.faults if fault.layer == "session"]
    assert told == (["broken-request"] if name in LONE_BROKEN_REQUESTS else [])


MEASURE = """
import json, os, re, sys, time
from kdissect.cli import main

for path in sys.argv[1:]:
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")  # begin the peak anew
    start = time.process_time()
    code = main(["read", path, "-d", "tcp.port==9092,kafka", "-T", "faults", "-o", os.devnull])
    seconds = time.process_time() - start
    with open("/proc/self/status") as status:
        peak_kib = int(re.search("VmHWM:\\\\s+(\\\\d+)", status.read())[1])
    print(json.dumps([code, seconds, peak_kib * 1024]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of the memory is read from /proc")
def test_malicious_bytes_cost_little() -> None:
    names = [name for name in MALICIOUS if name != MANY_MESSAGES]
    command = [sys.executable, "-c", MEASURE, *map(str, map(malicious, names))]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=120)
    assert ran.stderr == b""
    costs = {name: json.loads(line) for name, line in zip(names, ran.stdout.splitlines(), strict=True)}
    assert {name: code for name, (code, _, _) in costs.items() if code} == {}
    assert {name: cost for name, cost in costs.items() if cost[1] > CPU_SECONDS} == {}
    assert {name: cost for name, cost in costs.items() if cost[2] > RESIDENT_BYTES} == {}


# -- damaged files

DAMAGED = {
    "bigendian.pcap": (0, 50, 50),
    "hdr10.pcap": (3, 0, 0),
    "hdr_only.pcap": (0, 0, 0),
    "incl_2e31.pcap": (3, 50, 50),
    "incl_2e32.pcap": (3, 50, 50),
    "incl_300k.pcap": (3, 50, 50),
    "modified_magic.pcap": (3, 0, 0),
    "neg_ts.pcap": (0, 50, 50),
    "ng_bad_iface.pcapng": (3, 14, 15),
    "ng_caplen_lie.pcapng": (3, 14, 15),
    "ng_len0.pcapng": (3, 14, 15),
    "ng_len13.pcapng": (3, 14, 15),
    "ng_len7.pcapng": (3, 14, 15),
    "ng_len_17M.pcapng": (3, 14, 15),
    "ng_len_2e31.pcapng": (3, 14, 15),
    "ng_trunc.pcapng": (3, 15, 15),
    "orig_lt_incl.pcap": (3, 50, 50),
    "trunc_hdr.pcap": (3, 50, 50),
    "trunc_tail.pcap": (3, 50, 50),
}
"""File: exit code, requests and responses that are whole in it. The files with one broken block of the pcapng
ones lack the one request in it."""


def test_every_damaged_file_has_its_outcome_here() -> None:
    assert {path.name for path in shared("testdata/damaged").iterdir()} == set(DAMAGED)


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_gives_all_that_is_whole_and_says_what_is_not(
    name: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    ran = run(capsysbinary, "read", shared(f"testdata/damaged/{name}"), "-T", "ndjson")
    rows = [json.loads(line) for line in ran.lines]
    requests = sum(row["request"] is not None for row in rows)
    responses = sum(row["response"] is not None for row in rows)
    assert (ran.code, requests, responses) == DAMAGED[name]
    assert ran.err.count("\n") == (ran.code != 0)
