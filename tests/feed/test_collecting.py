"""What the batches of a capture tell, taken together."""

from __future__ import annotations

import os

from kdissect.capture.files import read_packets
from kdissect.model import Packet
from tests.cli.run import CAPTURES
from tests.feed.feeds import decoded, index_of
from tests.lab import dissected


def test_everything_is_counted() -> None:
    for path in sorted(CAPTURES.glob("*.pcap*")):
        expected = dissected(read_packets([path]))
        feed = decoded(path)
        index = index_of(feed)
        faults = [*expected.faults, *(fault for each in expected.exchanges for fault in each.faults)]
        assert index.fault_count() == len(faults)
        assert set(index.faults) == {(fault.layer, fault.kind) for fault in faults}
        assert sorted(index.connections.values()) == expected.connections
        feed.close()


def test_figures_of_the_capture_come_with_the_batches() -> None:
    for path in sorted(CAPTURES.glob("*.pcap*")):
        feed = decoded(path)
        index = index_of(feed)
        packets = [item for item in read_packets([path]) if isinstance(item, Packet)]
        assert sum(each.packets for each in index.interfaces) == len(packets) == index.packets
        assert sum(each.bytes for each in index.interfaces) == sum(each.wire_length for each in packets)
        assert sum(each.captured for each in index.interfaces) == sum(len(each.data) for each in packets)
        assert index.last_ns == max(each.timestamp_ns for each in packets)
        assert index.spooled == os.fstat(feed.descriptor).st_size
        feed.close()


def test_every_name_of_a_topic_is_told_once() -> None:
    feed = decoded(CAPTURES / "consumer-group-kip848.pcapng")
    names = index_of(feed).names
    assert {"java43-kip848", "java43-kip848-two"} < {name for _, name, _ in names}
    assert len({topic_id for topic_id, _, _ in names}) == len(names)
    feed.close()
