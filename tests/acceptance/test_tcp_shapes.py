"""One conversation of 50 Metadata exchanges in many shapes of TCP and of the layers below it: what can be
recovered is recovered, and nothing is made up."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from kdissect.capture.files import read_packets
from kdissect.exchange import Exchange
from kdissect.model import Packet
from tests.lab import Dissected, dissected
from tests.shared import requires_shared, shared

pytestmark = requires_shared


class Expected(NamedTuple):
    requests: int = 50
    responses: int = 50
    cut: int = 0
    """Messages that are there in part."""
    faults: frozenset[str] = frozenset()
    """Kinds."""


WHOLE = Expected()
GAP = frozenset({"gap"})
LOSSY = frozenset({"gap", "skipped", "cut-frame"})

SHAPES = {
    "00_base": WHOLE,
    "01_ooo_adjacent": WHOLE,
    "02_ooo_far": WHOLE,
    "03_dup_identical": WHOLE,
    "04_dup_all_any": WHOLE,
    "05_rexmit_different": Expected(faults=frozenset({"different-retransmission"})),
    "06_overlap_10B": WHOLE,
    "07_seq_wrap": WHOLE,
    "08_no_syn": WHOLE,
    "09_midstream_from_seg3": Expected(48, 48),
    "10_midframe_start": Expected(45, 45, faults=frozenset({"skipped"})),
    "11_lost_2pct": Expected(49, 47, 1, LOSSY),
    "12_lost_one_req_seg": Expected(49, 50, faults=GAP),
    "13_lost_one_resp_seg": Expected(50, 49, faults=GAP | {"skipped"}),
    "14_keepalive_1B": WHOLE,
    "15_keepalive_0B": WHOLE,
    "16_rst_inject_mid": WHOLE,
    "17_port_reuse": Expected(100, 100),
    "18_port_reuse_nofin": Expected(100, 100),
    "19_port_reuse_same_isn": Expected(100, 100),
    "20_only_client": Expected(50, 0, faults=GAP),
    "21_only_server": Expected(0, 50, faults=GAP),
    "22_gro_60k": WHOLE,
    "23_snaplen96": Expected(50, 50, 97, LOSSY),
    "24_bad_checksum": WHOLE,
    "25_vlan": WHOLE,
    "26_qinq": WHOLE,
    "27_ipv6_ext": WHOLE,
    "28_vxlan": WHOLE,
    "29_gre": WHOLE,
    "30_ipfrag": WHOLE,
    "31_ipfrag_reversed": WHOLE,
    "40_raw_dlt101": WHOLE,
    "41_null_le": WHOLE,
    "42_loop_be": WHOLE,
    "43_sll": WHOLE,
    "44_sll2": WHOLE,
}


def shape(name: str) -> Dissected:
    return dissected(read_packets([shared(f"testdata/tcp/{name}.pcap")]))


REUSED = [name for name in SHAPES if "port_reuse" in name]
"""Shapes of two conversations."""


def truth(name: str) -> dict[int | None, Exchange]:
    """The exchanges of a capture in which nothing is hard, by correlation id."""
    exchanges = shape("00_base").exchanges
    if name in REUSED:
        exchanges = shape("17_port_reuse").exchanges
        assert len(exchanges) == 100
        assert not any(exchange.faults or exchange.missing for exchange in exchanges)
    return {exchange.correlation_id: exchange for exchange in exchanges}


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_in_the_capture_is_found(name: str) -> None:
    found, expected = shape(name), SHAPES[name]
    requests = [exchange for exchange in found.exchanges if exchange.request is not None]
    responses = [exchange for exchange in found.exchanges if exchange.response is not None]
    cut = [m for exchange in found.exchanges for m in exchange.messages if m.is_cut]
    of_frames = [fault for m in cut if (fault := m.frame.fault) is not None]
    kinds = frozenset(fault.kind for fault in (*found.faults, *of_frames))
    assert Expected(len(requests), len(responses), len(cut), kinds) == expected
    assert {connection.protocol for connection in found.connections} == {"kafka"}


def test_every_shape_has_its_outcome_here() -> None:
    assert {path.stem for path in shared("testdata/tcp").iterdir()} == set(SHAPES)


@pytest.mark.parametrize("name", ["03_dup_identical", "04_dup_all_any"])
def test_a_packet_that_was_captured_twice_is_no_retransmission(name: str) -> None:
    (connection,) = shape(name).connections
    assert connection.retransmitted == 0


@pytest.mark.parametrize("name", SHAPES)
def test_nothing_that_is_found_is_wrong(name: str) -> None:
    """Every message is the one of that correlation id in the whole capture, or the beginning of it."""
    right = truth(name)
    seen = set()
    for exchange in shape(name).exchanges:
        whole = right[exchange.correlation_id]
        assert (exchange.connection, exchange.correlation_id) not in seen
        seen.add((exchange.connection, exchange.correlation_id))
        for message, other in ((exchange.request, whole.request), (exchange.response, whole.response)):
            if message is not None:
                assert other is not None
                assert message.frame.size == other.frame.size
                assert other.frame.payload.startswith(message.frame.payload)
        if exchange.request is not None:
            assert (exchange.api, exchange.api_version) == ("Metadata", 1)
            assert exchange.client_id == whole.client_id


@pytest.mark.parametrize("name", ["12_lost_one_req_seg", "13_lost_one_resp_seg"])
def test_a_lost_segment_is_named_as_the_reason(name: str) -> None:
    (missing,) = [exchange.missing for exchange in shape(name).exchanges if exchange.missing]
    assert missing == "gap"


@pytest.mark.parametrize("together", [1, 7])
def test_a_second_interface_that_sees_the_same_packets_changes_nothing(together: int) -> None:
    """``any`` and merged captures have each packet once an interface: packet for packet, or in bursts."""
    packets = [p for p in read_packets([shared("testdata/tcp/00_base.pcap")]) if isinstance(p, Packet)]
    both: list[Packet] = []
    for at in range(0, len(packets), together):
        burst = packets[at : at + together]
        both += burst
        both += [p._replace(interface=1, timestamp_ns=p.timestamp_ns + 20_000) for p in burst]
    alone = dissected(packets)
    found = dissected(p._replace(number=number) for number, p in enumerate(both, 1))

    def without_packets(found: Dissected) -> list[object]:
        return [
            (e.number, e.api, e.request_time_ns, e.response_start_ns, e.missing, e.faults, payloads)
            for e in found.exchanges
            if (payloads := [message.frame.payload for message in e.messages])
        ]

    assert without_packets(found) == without_packets(alone)
    assert found.faults == alone.faults == []
    assert [c._replace(packets=0, end_ns=0) for c in found.connections] == [
        c._replace(packets=0, end_ns=0) for c in alone.connections
    ]
