"""Malicious input costs no more than its share (``python -m tests.acceptance.malicious`` prints it), damaged
files give all that is whole in them; both are named for what they are. The conversation in many shapes of TCP
is in ``test_tcp_shapes``."""

from __future__ import annotations

import json
import sys

import pytest

from kdissect.capture.files import read_packets
from kdissect.exchange import Exchange
from kdissect.model import Fault
from tests.acceptance.malicious import MALICIOUS, cost, malicious, wrong_variants
from tests.amount import LONG
from tests.cli.run import run
from tests.dissecting import dissect
from tests.lab import dissected
from tests.shared import requires_shared, shared

pytestmark = requires_shared

LONE_BROKEN_REQUESTS = (
    *("array_2e31_metadata_v1", "array_neg2_metadata_v1", "compact_array_2e32_metadata_v9"),
    *("tagged_2e31_zero", "tagged_2e64", "varint_overlong"),
)
"""Not taken for Kafka, but told."""
MANY_MESSAGES = "pending_100k"
"""Not broken, but many: what it costs is what 100,000 messages cost."""


def test_every_malicious_capture_has_its_outcome_here() -> None:
    assert {path.stem for path in shared("testdata/malicious").iterdir()} == set(MALICIOUS)


@pytest.mark.parametrize("name", [name for name in MALICIOUS if LONG or name != MANY_MESSAGES])
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


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of the memory is read from /proc")
def test_malicious_bytes_cost_little_and_damage_nothing() -> None:
    names = [name for name in MALICIOUS if name != MANY_MESSAGES]
    costs = dict(zip(names, cost(map(malicious, names)), strict=True))
    assert {name: each for name, each in costs.items() if each.code or each.said or not each.is_little} == {}


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of the memory is read from /proc")
def test_malicious_bytes_are_what_they_are_in_other_shapes() -> None:
    count, wrong = wrong_variants(2, "test", MALICIOUS)
    assert count > 40
    assert wrong == []


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
    assert ran.err.count("\n") == (ran.code != 0 or not rows)
