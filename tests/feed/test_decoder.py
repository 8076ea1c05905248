from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kdissect import read
from kdissect.capture.files import read_packets
from kdissect.feed.batches import Ended, FeedBatch
from kdissect.feed.decoder import Decoder, _run
from kdissect.feed.index import Index
from kdissect.feed.rows import ROW
from kdissect.feed.side_process import Process
from kdissect.feed.statistics import Statistics
from tests.cli.run import CAPTURES
from tests.feed.feeds import source_of

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
    decoder, index = Decoder(source_of(CAPTURE)), Index()
    assert run_to_the_end(decoder, index) == Ended()
    exchanges = list(read(CAPTURE))
    assert index.column("number").tolist() == [each.number for each in exchanges]
    assert index.packets == sum(1 for _ in read_packets([CAPTURE]))
    for place, exchange in enumerate(exchanges):
        again = decoder.exchange(index.value("place", place), index.value("length", place))
        assert [m.frame for m in again.messages] == [m.frame for m in exchange.messages]
    assert decoder.poll() == []
    decoder.close()


def test_a_process_that_is_killed_is_told_and_what_came_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    decoder, index = Decoder(source_of(pipe)), Index()
    with pipe.open("wb") as writer:
        writer.write(CAPTURE.read_bytes())
        writer.flush()
        until = time.monotonic() + 30
        while len(index) < 5 and time.monotonic() < until:
            for message in decoder.poll():
                assert isinstance(message, FeedBatch)
                index.add(message)
            time.sleep(0.01)
        assert decoder.pid is not None
        os.kill(decoder.pid, signal.SIGKILL)
        ended = run_to_the_end(decoder, index)
    assert ended.reason == "the decoder was killed by signal 9; what it had decoded is shown"
    assert decoder.exchange(index.value("place", 0), index.value("length", 0)).number == 1
    assert decoder.poll() == []
    decoder.close()


@pytest.mark.skipif(sys.platform == "win32", reason="nobody gives way there")
def test_keys_go_before_the_decoder_and_the_decoder_before_who_counts(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    decoder, index = Decoder(source_of(pipe)), Index()
    statistics = Statistics(index, decoder, None)
    try:
        with pipe.open("wb") as writer:
            writer.write(CAPTURE.read_bytes())
            writer.flush()
            statistics.request(("srt",))
            until = time.monotonic() + 30
            while statistics.result(("srt",)) is None and time.monotonic() < until:
                for message in decoder.poll():
                    assert isinstance(message, FeedBatch)
                    index.add(message)
                statistics.poll()
                time.sleep(0.01)
            counter = statistics._counter
            assert isinstance(counter, Process)
            ours, theirs, last = (
                os.getpriority(os.PRIO_PROCESS, each or 0) for each in (0, decoder.pid, counter.pid)
            )
    finally:
        statistics.close()
        decoder.close()
    assert ours < theirs < last or last == 19


@pytest.mark.parametrize("name", ["nothing-here.pcap", "README.md"])
def test_what_cannot_be_read_is_told(name: str) -> None:
    decoder = Decoder(source_of(CAPTURES / name))
    reason = run_to_the_end(decoder, Index()).reason
    assert reason is not None
    assert name in reason
    decoder.close()


def test_closing_ends_the_process(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    decoder = Decoder(source_of(pipe))
    decoder.close()
    assert decoder.poll() == []


def test_dissecting_loads_no_screens() -> None:
    program = (
        "import sys, kdissect.dissect, kdissect.feed.decoder\n"
        "print(sorted({'textual', 'rich', 'numpy', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_what_was_found_before_a_defect_is_shown_and_the_defect_tells_no_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = 0

    def packs(*given: object) -> bytes:
        nonlocal rows
        rows += 1
        if rows == 4:
            raise ValueError("hunter2")
        return bytes(ROW.size)

    monkeypatch.setattr("kdissect.feed.collecting.pack_row", packs)
    sent: list[FeedBatch | Ended] = []
    closed = []

    class Sent:
        def send(self, message: FeedBatch | Ended) -> None:
            sent.append(message)

    with tempfile.TemporaryFile() as file:
        arrived = SimpleNamespace(detach=lambda: os.dup(file.fileno()))
        monkeypatch.setattr("kdissect.feed.decoder.be_quiet", lambda: closed.append(True))
        _run(source_of(CAPTURE, is_live=True), cast(Any, arrived), cast(Any, Sent()))
    *batches, ended = sent
    assert sum(len(each.rows) for each in batches if isinstance(each, FeedBatch)) == 3 * ROW.size
    assert isinstance(ended, Ended)
    assert ended.reason is not None
    assert ended.reason.startswith("a defect in kdissect, please report it: ValueError in kdissect.feed")
    assert "hunter2" not in ended.reason
