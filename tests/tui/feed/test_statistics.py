from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from kdissect.tui.feed.batches import Ended
from kdissect.tui.feed.counting import Ask, Begin, Rows
from kdissect.tui.feed.statistics import StatisticsHere, StatisticsProcess
from tests.cli.run import CAPTURES
from tests.tui.feed.test_counting import everything
from tests.tui.feeds import decoded, index_of

CAPTURE = CAPTURES / "errors.pcapng"


@contextmanager
def process() -> Iterator[StatisticsProcess]:
    """The process, with everything to count in it."""
    feed = decoded(CAPTURE)
    counter = StatisticsProcess(feed.descriptor)
    try:
        counter.send(Begin(1))
        counter.send(everything(index_of(feed)))
        yield counter
    finally:
        counter.close()
        feed.close()


def wait_for(counter: StatisticsProcess) -> list[Rows | Ended]:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        found = counter.poll()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError("nothing came")


def test_the_process_counts_what_the_machine_counts() -> None:
    feed = decoded(CAPTURE)
    here = StatisticsHere(feed.descriptor)
    here.send(Begin(1))
    here.send(everything(index_of(feed)))
    here.send(Ask(("errors",)))
    with process() as counter:
        counter.send(Ask(("errors",)))
        assert wait_for(counter) == here.poll()
        assert counter.poll() == []
    feed.close()


def test_a_process_that_is_killed_is_told_once() -> None:
    with process() as counter:
        counter.send(Ask(("srt",)))
        wait_for(counter)
        assert counter.pid is not None
        os.kill(counter.pid, signal.SIGKILL)
        assert wait_for(counter) == [Ended("the process of the statistics was killed by signal 9")]
        assert counter.poll() == []
        counter.send(Ask(("errors",)))  # nobody hears it, and nobody waits


def test_a_spool_that_cannot_be_read_is_told() -> None:
    feed = decoded(CAPTURE)
    order = everything(index_of(feed))
    read_end, write_end = os.pipe()
    counter = StatisticsProcess(read_end)
    for each in (Begin(1), order, Ask(("srt",))):
        counter.send(each)
    (ended,) = wait_for(counter)
    assert isinstance(ended, Ended)
    assert ended.reason is not None
    assert "the spool cannot be read" in ended.reason
    counter.close()
    os.close(read_end)
    os.close(write_end)
    feed.close()


def test_counting_loads_no_screens() -> None:
    program = (
        "import sys, kdissect.tui.feed.statistics\n"
        "print(sorted({'textual', 'rich', 'numpy', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
