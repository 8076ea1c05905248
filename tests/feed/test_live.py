"""A capture that goes on, as the screens see it."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kdissect.capture.files import read_packets
from kdissect.feed.batches import Ended, FeedBatch
from kdissect.feed.decoder import Decoder
from kdissect.feed.index import Index
from kdissect.feed.live import Live
from kdissect.feed.source import packets_of
from kdissect.live.external import External
from kdissect.live.session import CaptureSession
from kdissect.live.silence import Silence
from kdissect.model import Packet
from kdissect.tui.pages.capture import lines
from kdissect.tui.widgets.status import capture_items
from tests.cli.run import CAPTURES
from tests.feed.feeds import decoded, index_of, source_of
from tests.waiting import wait_until

BASIC = CAPTURES / "basic-kafka43.pcapng"


class Piped:
    """A live feed whose packets we write ourselves."""

    def __init__(self) -> None:
        read, self.write = os.pipe()
        os.write(self.write, BASIC.read_bytes()[:1_000])
        self.session = CaptureSession([External("ours", None, read, None)])
        os.close(read)
        self.feed = Live(
            source_of("ours", is_live=True, spool=self.session.folder),
            self.session,
            Silence("tcp", None),
        )
        self.index = Index()
        self.ended: Ended | None = None

    def put_the_rest(self) -> None:
        os.write(self.write, BASIC.read_bytes()[1_000:60_000])
        os.write(self.write, BASIC.read_bytes()[60_000:])

    def poll(self) -> None:
        for message in self.feed.poll():
            if isinstance(message, FeedBatch):
                self.index.add(message)
            else:
                self.ended = message

    def until_there_are(self, count: int) -> None:
        def there_are() -> bool:
            self.poll()
            return len(self.index) >= count

        assert wait_until(there_are, 20), len(self.index)

    def until_it_ended(self) -> Ended:
        def has_ended() -> bool:
            self.poll()
            return self.ended is not None

        assert wait_until(has_ended, 20)
        assert self.ended is not None
        return self.ended

    def close(self) -> None:
        os.close(self.write)
        self.feed.close()
        if self.feed.left is not None:
            shutil.rmtree(self.feed.left)


@pytest.fixture
def piped() -> Iterator[Piped]:
    with closing(Piped()) as made:
        yield made


@pytest.fixture(scope="module")
def count() -> int:
    with closing(decoded(BASIC)) as feed:
        return len(index_of(feed))


def test_exchanges_come_while_the_capture_goes_on(piped: Piped, count: int) -> None:
    piped.put_the_rest()
    piped.until_there_are(count)
    assert piped.ended is None

    def all_is_told() -> bool:
        """The writer tells of what it wrote some moments later."""
        piped.poll()
        status = piped.feed.capture
        return status is not None and (status.written, status.dropped) == (piped.index.packets, 0)

    assert wait_until(all_is_told, 20)
    exchange = piped.feed.exchange(piped.index.value("place", 5), piped.index.value("length", 5))
    assert exchange.number


def test_what_was_captured_so_far_can_be_saved(piped: Piped, count: int) -> None:
    piped.put_the_rest()
    piped.until_there_are(count)
    with closing(packets_of(piped.feed.source, waits=False)) as capture:
        assert list(capture) == [item for item in read_packets([BASIC]) if isinstance(item, Packet)]


def test_a_capture_process_that_is_killed_is_told_and_what_came_stays(piped: Piped, count: int) -> None:
    piped.put_the_rest()
    piped.until_there_are(count)
    assert piped.session.pid is not None
    os.kill(piped.session.pid, signal.SIGKILL)
    reason = piped.until_it_ended().reason
    assert reason is not None
    assert "the capture process was killed by signal 9" in reason
    assert len(piped.index) == count


def test_a_decoder_that_is_killed_leaves_the_capture_going(piped: Piped) -> None:
    before = piped.session.status().written
    assert piped.feed.pid is not None
    os.kill(piped.feed.pid, signal.SIGKILL)
    reason = piped.until_it_ended().reason
    assert reason is not None
    assert "the decoder was killed by signal 9" in reason
    piped.put_the_rest()
    packets = sum(isinstance(item, Packet) for item in read_packets([BASIC]))
    assert wait_until(lambda: piped.session.status().written == packets > before, 20)


def test_the_end_ends_everything_and_leaves_nothing(piped: Piped) -> None:
    folder, pid = piped.session.folder, piped.session.pid
    piped.feed.close()
    assert not os.path.exists(folder)
    assert not os.path.exists(f"/proc/{pid}/fd") or not os.listdir(f"/proc/{pid}/fd")


def test_drops_and_what_waits_are_told(piped: Piped) -> None:
    status = piped.session.status()._replace(
        received=30, dropped=7, lost=1, written=20, fill=0.75, notes=("eth0 went down",)
    )
    items = capture_items(status, 5, "red")
    assert [(item.text, item.style) for item in items] == [
        ("8 dropped", "red"),
        ("backlog 15, ring 75%", ""),
        ("eth0 went down", "red"),
    ]
    bad = {
        name: value for name, value, is_bad in lines(piped.index, piped.feed.source, None, status) if is_bad
    }
    assert set(bad) == {"dropped", "not written", "ring", "capture"}
    assert bad["capture"] == "eth0 went down"


def test_silence_is_told_though_no_packets_come(piped: Piped, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piped.feed, "_silent_at", 0.0)
    assert piped.feed.silence is None

    def is_told() -> bool:
        piped.poll()
        status = piped.feed.capture
        assert status is not None
        return any("so far" in note for note in status.notes) and piped.feed.silence == status.notes[-1]

    assert wait_until(is_told, 20)
    monkeypatch.setattr(piped.feed, "_look_at", 0.0)
    packets = piped.index.packets
    batches = [each for each in piped.feed.poll() if isinstance(each, FeedBatch)]
    assert all(each.packets == packets and not each.rows for each in batches)


def test_files_that_grow_are_followed(tmp_path: Path, count: int) -> None:
    path, data = tmp_path / "growing", BASIC.read_bytes()
    path.write_bytes(data[:5_000])
    index = Index()
    with closing(Decoder(source_of(tmp_path, is_live=True, follows=True))) as feed:

        def there_are(wanted: int) -> bool:
            for message in feed.poll():
                assert isinstance(message, FeedBatch)
                index.add(message)
            return len(index) >= wanted

        assert wait_until(lambda: there_are(1), 20)
        with path.open("ab") as file:
            file.write(data[5_000:])
        assert wait_until(lambda: there_are(count), 20)
        with closing(packets_of(feed.source, waits=False)) as capture:
            packets = len(list(capture))
        # Packets after the last exchange may be told after it.
        assert wait_until(lambda: there_are(count) and index.packets >= packets, 20)
        assert index.packets == packets
