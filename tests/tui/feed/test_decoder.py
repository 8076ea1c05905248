from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kdissect import read
from kdissect.capture.files import read_packets
from kdissect.model import Packet
from kdissect.tui.feed.decoder import Batch, Decoder, Ended, Source
from kdissect.tui.feed.index import Index
from tests.cli.run import CAPTURES
from tests.lab import dissected
from tests.tui.feeds import decoded, index_of

CAPTURE = CAPTURES / "errors.pcapng"


def run_to_the_end(decoder: Decoder, index: Index) -> Ended:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        for message in decoder.poll():
            if isinstance(message, Ended):
                return message
            index.add(message)
        time.sleep(0.01)
    raise AssertionError("the decoder did not end")


def test_the_process_fills_an_index_and_its_exchanges_can_be_read() -> None:
    decoder, index = Decoder(Source((str(CAPTURE),))), Index()
    assert run_to_the_end(decoder, index) == Ended()
    exchanges = list(read(CAPTURE))
    assert index.column("number").tolist() == [each.number for each in exchanges]
    assert index.packets == sum(1 for _ in read_packets([CAPTURE]))
    for place, exchange in enumerate(exchanges):
        again = decoder.exchange(index.value("place", place), index.value("length", place))
        assert [m.frame for m in again.messages] == [m.frame for m in exchange.messages]
    assert decoder.poll() == []
    decoder.close()


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


def test_a_process_that_is_killed_is_told_and_what_came_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    decoder, index = Decoder(Source((str(pipe),))), Index()
    with pipe.open("wb") as writer:
        writer.write(CAPTURE.read_bytes())
        writer.flush()
        until = time.monotonic() + 30
        while len(index) < 5 and time.monotonic() < until:
            for message in decoder.poll():
                assert isinstance(message, Batch)
                index.add(message)
            time.sleep(0.01)
        assert decoder.pid is not None
        os.kill(decoder.pid, signal.SIGKILL)
        ended = run_to_the_end(decoder, index)
    assert ended.reason == "the decoder was killed by signal 9; what it had decoded is shown"
    assert decoder.exchange(index.value("place", 0), index.value("length", 0)).number == 1
    assert decoder.poll() == []
    decoder.close()


@pytest.mark.parametrize("name", ["nothing-here.pcap", "README.md"])
def test_what_cannot_be_read_is_told(name: str) -> None:
    decoder = Decoder(Source((str(CAPTURES / name),)))
    reason = run_to_the_end(decoder, Index()).reason
    assert reason is not None
    assert name in reason
    decoder.close()


def test_closing_ends_the_process(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    decoder = Decoder(Source((str(pipe),)))
    decoder.close()
    assert decoder.poll() == []


def test_dissecting_loads_no_screens() -> None:
    program = (
        "import sys, kdissect.dissect, kdissect.tui.feed.decoder\n"
        "print(sorted({'textual', 'rich', 'numpy', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
