"""What works beside the screens: counting, as one example."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kdissect.feed.batches import Ended
from kdissect.feed.counting import AskTables, Begin, CountedRows, Counting, Order
from kdissect.feed.side_process import Here, Process, Shared
from tests.cli.run import CAPTURES
from tests.feed.feeds import decoded, index_of
from tests.feed.test_counting import everything

CAPTURE = CAPTURES / "errors.pcapng"


Counter = Process[Order, CountedRows]


def counter_of(spool: int) -> Counter:
    return Process("the process of the statistics", Counting, Shared(spool))


@contextmanager
def process() -> Iterator[Counter]:
    """The process, with everything to count in it."""
    feed = decoded(CAPTURE)
    counter = counter_of(feed.descriptor)
    try:
        counter.send(Begin(1))
        counter.send(everything(index_of(feed)))
        yield counter
    finally:
        counter.close()
        feed.close()


def wait_for(counter: Counter) -> list[CountedRows | Ended]:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        found = counter.poll()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError("nothing came")


def whole(counter: Counter | Here[Order, CountedRows]) -> list[CountedRows | Ended]:
    """What was counted of everything; before that, a busy machine tells what it has so far."""
    until, found = time.monotonic() + 30, list[CountedRows | Ended]()
    while time.monotonic() < until:
        found += counter.poll()
        last = found[-1] if found else None
        if isinstance(last, CountedRows) and last.is_last and last.counted == last.of:
            begins = max(
                at for at, each in enumerate(found) if isinstance(each, CountedRows) and each.number == 0
            )
            return found[begins:]
        time.sleep(0.01)
    raise AssertionError("nothing came")


def test_the_process_counts_what_the_machine_counts() -> None:
    feed = decoded(CAPTURE)
    here = Here(Counting(feed.descriptor))
    here.send(Begin(1))
    here.send(everything(index_of(feed)))
    here.send(AskTables(("errors",)))
    with process() as counter:
        counter.send(AskTables(("errors",)))
        assert whole(counter) == whole(here)
        assert counter.poll() == []
    feed.close()


def test_a_process_that_is_killed_is_told_once() -> None:
    with process() as counter:
        counter.send(AskTables(("srt",)))
        wait_for(counter)
        assert counter.pid is not None
        os.kill(counter.pid, signal.SIGKILL)
        assert wait_for(counter) == [Ended("the process of the statistics was killed by signal 9")]
        assert counter.poll() == []
        counter.send(AskTables(("errors",)))  # nobody hears it, and nobody waits


def test_a_spool_that_cannot_be_read_is_told() -> None:
    feed = decoded(CAPTURE)
    order = everything(index_of(feed))
    read_end, write_end = os.pipe()
    counter = counter_of(read_end)
    for each in (Begin(1), order, AskTables(("srt",))):
        counter.send(each)
    (ended,) = wait_for(counter)
    assert isinstance(ended, Ended)
    assert ended.reason is not None
    assert "statistics stopped: a temporary file cannot be read" in ended.reason
    counter.close()
    os.close(read_end)
    os.close(write_end)
    feed.close()


def test_counting_loads_no_screens() -> None:
    program = (
        "import sys, kdissect.feed.counting, kdissect.feed.side_process\n"
        "print(sorted({'textual', 'rich', 'numpy', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_pipe_is_closed_when_nobody_sends_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    with process() as counter:
        pipe = counter._pipe
        close, sends = pipe.close, []

        def closed() -> None:
            sends.append(counter._sender.is_alive())
            close()

        monkeypatch.setattr(pipe, "close", closed)
        monkeypatch.setattr(pipe, "send", lambda _: time.sleep(0.3))
        counter.send(AskTables(("errors",)))
    assert sends == [False]
