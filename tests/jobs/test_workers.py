from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, cast

import pytest

import kdissect.jobs.workers as module
from kdissect.dissect import Event
from kdissect.jobs.batches import Batch, Maybe
from kdissect.jobs.serving import Before, Piece, Write
from kdissect.jobs.workers import JobError, Workers
from kdissect.model import Fault
from tests.amount import some, times


class Echo:
    """Writes what batches say, each line numbered by its place; the width of the widest word so far is its
    state."""

    def __init__(self) -> None:
        self.asked = 0

    def expected(self, state: int, before: Before) -> int:
        self.asked += 1
        return max(state, before.exchanges)

    def do(self, lists: Iterable[Sequence[Event]], state: int, write: Write) -> tuple[int, Any]:
        for word in words_of(chain.from_iterable(lists)):
            if word.startswith("sleep"):
                time.sleep(float(word[5:]))
            elif word.startswith("die"):
                os.kill(os.getpid(), int(word[3:]))
            elif word == "fail":
                raise LookupError("there is no such word")
            elif word.startswith("many"):
                for _ in range(int(word[4:])):
                    write(b"x" * 1_023 + b"\n")
            elif word.startswith("maybe"):
                write(Maybe(int(word[5:]), 1, b"perhaps\n"))
            else:
                state = max(state, len(word))
                write(word.rjust(state).encode() + b"\n")
        return state, os.getpid()


def batch_of(text: str) -> Batch:
    """Words as events."""
    return [Fault("file", "damaged", word) for word in text.split()]


def words_of(batch: Iterable[Event]) -> Iterator[str]:
    for event in batch:
        assert isinstance(event, Fault)
        yield event.message


def pids_of(workers: Workers) -> list[int]:
    """The numbers of the other processes."""
    return [part.process.pid for part in workers._running.values() if part.process is not None]


class Bench:
    """Workers, and what comes of them."""

    def __init__(self, count: int, state: int = 0) -> None:
        self.out: list[Piece] = []
        self.done: list[Any] = []
        self.work = Echo()
        self.workers = Workers(self.work, count, self.out.append, self.done.append, state)

    def do(self, *batches: str) -> None:
        """All of these, to the end."""
        for each in batches:
            self.workers.submit(batch_of(each))
        self.workers.finish()

    @property
    def text(self) -> str:
        return b"".join(piece for piece in self.out if isinstance(piece, bytes)).decode()


@contextmanager
def bench(count: int, state: int = 0) -> Iterator[Bench]:
    found = Bench(count, state)
    try:
        yield found
    finally:
        found.workers.close()


def alone(batches: Sequence[str], state: int = 0) -> str:
    with bench(1, state) as one:
        one.do(*batches)
        return one.text


def are_gone(pids: Sequence[int]) -> bool:
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    return True


@pytest.mark.parametrize("count", some([1, 2, 3, 4], 2, 1, 3))
def test_what_is_written_is_in_the_order_of_the_batches(count: int) -> None:
    numbers = range(times(14, 40))
    batches = [f"{'sleep0.02' if number % 3 == 0 else ''} word{number:03}" for number in numbers]
    with bench(count) as several:
        several.do(*batches)
        assert several.text.split() == [f"word{number:03}" for number in numbers]
        assert len(several.done) == len(numbers)
        assert are_gone([pid for pid in several.done if pid != os.getpid()])


def test_each_batch_is_the_work_of_a_process_of_its_own() -> None:
    with bench(2) as both:
        both.do(*["sleep0.01 a"] * 12)
    assert len({*both.done, os.getpid()}) == 13


def test_not_more_work_at_a_time_than_were_asked_for() -> None:
    with bench(2) as both:
        for _ in range(8):
            both.workers.submit(batch_of("sleep0.02 a"))
            assert len(pids_of(both.workers)) <= 2
        both.workers.finish()


def test_a_batch_that_was_begun_with_another_state_is_done_again() -> None:
    batches = ["a b", "sleep0.05 " + "c" * 9, "d", "e", "f" * 12, "g", "sleep0.05 h", "i" * 20, *"jklmno"]
    with bench(3) as several:
        several.do(*batches)
    assert several.text == alone(batches)
    assert len(several.done) == len(batches)


@pytest.mark.parametrize("first", ["a", "sleep0.5 a", "longer", "sleep0.5 longer"])
def test_what_the_first_process_does_itself_comes_in_its_place(first: str) -> None:
    """It is done again where the batch before it ended in another state, be it meanwhile or later."""
    with bench(2, 1) as several:
        counted: list[int] = []

        def slowly() -> Iterator[Batch]:
            for word in "bcdefghijk":
                time.sleep(0.02)
                yield batch_of(f"{word} {word}")
            while "sleep" not in first and not several.done:  # meanwhile, however slow the other process is
                time.sleep(0.001)
                several.workers.attend()

        several.workers.submit(batch_of(first))
        several.workers.work_locally(slowly(), lambda events: counted.append(len(events)))
        several.do("f")
        assert several.text == alone([first, *(f"{word} {word}" for word in "bcdefghijk"), "f"], 1)
        assert counted == 10 * [2]
        assert (several.done[1] == os.getpid()) == (first != "sleep0.5 longer")


def test_this_process_does_not_get_far_ahead_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its output would be kept until it is the turn of that."""
    monkeypatch.setattr(module, "MOST_HELD", 10_000)
    with bench(2, 1) as several:
        held: list[int] = []
        several.workers.submit(batch_of("sleep0.5 a"))
        for _ in range(4):
            lists = iter([batch_of("many15")])
            several.workers.work_locally(lists, lambda events: held.append(several.workers._held))
        several.do("b")
        assert several.text.count("x\n") == 60
        assert several.text.startswith("a\n")
        assert held == [0, 0, 0, 0]


def test_what_fails_there_fails_after_what_came_before_was_written() -> None:
    with bench(2, 1) as several:
        several.workers.submit(batch_of("sleep0.05 longer"))
        with pytest.raises(LookupError):
            several.workers.work_locally(iter([batch_of("b"), batch_of("c fail d")]), lambda events: None)
        assert several.text == alone(["longer", "b c"], 1)


def test_what_may_be_wanted_comes_in_its_place() -> None:
    for count in (1, 2):
        with bench(count) as several:
            for number in range(6):
                several.workers.submit(batch_of(f"a maybe{number} b"))
            several.workers.finish()
        pieces = b"".join(p if isinstance(p, bytes) else b"?%d" % cast(Maybe, p).key for p in several.out)
        assert pieces.replace(b"\n", b"") == b"".join(b"a?%db" % number for number in range(6))


def test_whoever_writes_more_than_is_kept_waits_for_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_HELD", 64 << 10)
    batches = ["sleep0.1 first", *["many4000"] * 6, "last"]
    with bench(2) as both:
        held = 0
        for each in batches:
            both.workers.submit(batch_of(each))
            held = max(held, both.workers._held)
        both.workers.finish()
    assert both.text == alone(batches)
    assert held < 1 << 20


def test_what_fails_fails_here_after_what_came_before_was_written() -> None:
    for count in (1, 2, 3):
        with bench(count) as several, pytest.raises(LookupError, match="no such word"):
            several.do("a", "sleep0.02 b", "c fail d", "e", "f", "g")
        assert several.text.split() == ["a", "b", "c"]


@pytest.mark.parametrize("expected", [1, 9])
def test_what_is_done_here_is_written_once_where_reading_fails(expected: int) -> None:
    def read() -> Iterator[list[Event]]:
        yield batch_of("bb")
        raise OSError("the disk does not answer")

    with bench(3, state=1) as several:
        several.workers.submit(batch_of("sleep0.1 aaaaa"))
        with pytest.raises(OSError, match="does not answer"):
            several.workers.work_locally(read(), lambda events: None, Before(expected, 0, None))
        assert several.text == alone(["aaaaa", "bb"], 1)


@pytest.mark.parametrize(("number", "how"), [(9, "was killed by signal 9"), (10, "was killed by signal 10")])
def test_a_process_that_dies_ends_the_work_behind_what_came_before(number: int, how: str) -> None:
    with bench(2, state=1) as both:
        both.workers.submit(batch_of("sleep0.05 a"))
        both.workers.submit(batch_of(f"b die{number} c"))
        pids = pids_of(both.workers)
        with pytest.raises(JobError, match=how):
            both.workers.finish()
        assert both.text.split() in (["a"], ["a", "b"])
        both.workers.close()
        assert are_gone(pids)


def test_a_process_that_was_killed_is_no_reason_to_wait_for_ever() -> None:
    with bench(2, state=1) as both:
        both.workers.submit(batch_of("sleep0.5 a"))
        os.kill(pids_of(both.workers)[0], signal.SIGKILL)
        with pytest.raises(JobError, match="was killed by signal 9"):
            both.do(*["b c"] * 50)


class WordsTask:
    """A part that is words."""

    def __init__(self, text: str) -> None:
        self.text = text

    def edge(self) -> bytes:
        return self.text.encode()

    def batch(self, seam: bytes) -> tuple[Batch, Any]:
        return batch_of(f"{self.text} {seam.decode()}"), None

    def order(self, latest: WordsTask) -> bytes:
        return self.text.encode()

    def take(self, order: bytes) -> None:
        self.text = order.decode()


def in_parts(several: Bench, words: Sequence[str], known: Sequence[int], own: Sequence[int] = ()) -> int:
    """Have words done as parts, with what is known before each of how wide words are; gives how often a part
    was begun anew."""
    anew = 0
    begin_anew = several.workers._restart_part

    def counted(*what: Any) -> None:
        nonlocal anew
        anew += 1
        begin_anew(*what)

    several.workers._restart_part = counted  # type: ignore[method-assign,assignment]
    for at, word in enumerate(words):
        before = Before(known[at], 0, None)
        if at in own:
            several.workers.work_locally(iter([batch_of(f"{word} seam")]), lambda events: None, before)
            continue
        part = several.workers.begin_part(WordsTask(word))
        several.workers.edge_of(part)
        several.workers.submit_part(part, b"seam", before)
    several.workers.finish()
    return anew


@pytest.mark.parametrize("own", [(), (1, 3), (2, 5)])
def test_a_part_is_begun_with_the_state_that_is_expected(own: Sequence[int]) -> None:
    words = ["sleep0.2", "a" * 5, "b", "c" * 7, "sleep0.1", "d", "e" * 9]
    with bench(4, 1) as several:
        assert in_parts(several, words, [1, 4, 5, 5, 7, 7, 7], own) == 0
        assert several.text == alone([f"{word} seam" for word in words], 1)
        assert len(several.done) == len(words)


@pytest.mark.parametrize("own", [(), (1, 3), (2, 5)])
def test_where_another_state_was_expected_a_part_is_done_again(own: Sequence[int]) -> None:
    words = ["sleep0.2", "a" * 5, "b", "c" * 7, "sleep0.1", "d", "e" * 9]
    with bench(4, 1) as several:
        in_parts(several, words, [1, 9, 2, 20, 3, 7, 30], own)
        assert several.text == alone([f"{word} seam" for word in words], 1)


def test_what_is_expected_wrongly_again_and_again_is_expected_no_more() -> None:
    words = [f"sleep0.05 {number}" for number in range(20)]
    with bench(3, 4) as several:
        assert in_parts(several, words, [9] * 20) <= 3 * module.MOST_MISTAKEN
        assert several.text == alone([f"{word} seam" for word in words], 4)
        asked = several.work.asked
        in_parts(several, words, [9] * 20)
        assert several.work.asked == asked


@pytest.mark.parametrize("kills", [False, True])
def test_an_idle_process_that_was_killed_is_given_nothing(kills: bool) -> None:
    """A new one has the next part. One that was left alone has it itself."""
    with bench(2, 1) as both:
        for word in "abc":
            part = both.workers.begin_part(WordsTask(word))
            assert both.workers.edge_of(part) == word.encode()
            if word == "a":
                both.workers.drop_part(part)
            else:
                both.workers.submit_part(part, b"seam")
                both.workers.finish()
            ((process, _),) = both.workers._idle
            if kills:
                os.kill(process.pid, signal.SIGKILL)
                assert within(5, lambda pid=process.pid: not is_there(pid))  # type: ignore[misc]
        assert both.text.split() == ["b", "seam", "c", "seam"]
        assert len(set(both.done)) == (2 if kills else 1)
        both.workers.close()
        assert are_gone(both.done)


def test_the_interrupt_key_is_not_for_the_others() -> None:
    with bench(2) as both:
        both.workers.submit(batch_of("sleep0.3 a"))
        time.sleep(0.1)
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(pids_of(both.workers)[0], number)
        both.workers.finish()
        assert both.text == "a\n"


def test_an_output_that_fails_ends_it_and_leaves_nobody() -> None:
    def write(_: Piece) -> None:
        raise BrokenPipeError

    with bench(3) as several:
        several.workers._write = write
        several.workers.submit(batch_of("sleep0.1 a"))
        pids = pids_of(several.workers)
        with pytest.raises(BrokenPipeError):
            several.do(*"bcdefgh")
        several.workers.close()
        assert are_gone(pids)


def test_where_no_process_may_begin_this_one_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", refused)
    before = len(os.listdir("/proc/self/fd"))
    with bench(3) as several:
        several.do("a", "b")
        assert len(os.listdir("/proc/self/fd")) == before
    assert several.text == "a\nb\n"


def test_they_end_when_this_one_does() -> None:
    """The others hear of the death of the first process by their pipes, whoever else was forked."""
    told, tell = os.pipe()
    first = os.fork()
    if first == 0:
        try:
            found = Bench(3)
            for _ in range(2):
                found.workers.submit(batch_of("sleep0.2 many4000"))
            os.write(tell, ",".join(map(str, pids_of(found.workers))).encode())
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    os.waitpid(first, 0)
    pids = list(map(int, os.read(told, 100).split(b",")))
    os.close(told)
    os.close(tell)
    assert len(pids) == 2
    assert within(5, lambda: not any(map(is_there, pids)))


def within(seconds: float, what: Callable[[], bool]) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if what():
            return True
        time.sleep(0.01)
    return False


def is_there(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] != b"Z"
    except FileNotFoundError:
        return False
