"""A forked process, and what goes through its pipes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from kdissect.jobs.answers import ANSWER
from kdissect.jobs.process import WorkerProcess, fork
from kdissect.jobs.serving import NEXT, PIECE, QUESTION, WHOLE

ANSWERS = [(PIECE, b"abc"), (WHOLE, b""), (PIECE, b"x" * 300)]


def writes(pieces: list[bytes], answered: int) -> None:
    for each in pieces:
        os.write(answered, each)


def echoes(asked: int, answered: int) -> None:
    """Answers with what it is told."""
    with open(asked, "rb") as source:
        while head := source.read(QUESTION.size):
            kind, size = QUESTION.unpack(head)
            os.write(answered, ANSWER.pack(kind, size) + source.read(size))


def echoing(asked: int | None) -> Callable[[int], None]:
    assert asked is not None
    return partial(echoes, asked)


def answers_of(process: WorkerProcess) -> Iterator[tuple[int, bytes]]:
    """Until it ends."""
    while True:
        try:
            answer = process.take()
        except EOFError:
            return
        if answer is not None:
            yield answer


def test_answers_are_whole_however_they_come() -> None:
    told = b"".join(ANSWER.pack(kind, len(data)) + data for kind, data in ANSWERS)
    for size in (1, ANSWER.size, ANSWER.size + 2, len(told)):
        pieces = [told[at : at + size] for at in range(0, len(told), size)]
        process = fork(lambda _, each=pieces: partial(writes, each), (), is_asked=False)  # type: ignore[misc]
        assert list(answers_of(process)) == ANSWERS
        assert process.end(kills=False) == "stopped with exit code 0"


def test_an_answer_of_which_a_part_is_there_is_waited_for() -> None:
    answers, answered = os.pipe()
    process = WorkerProcess(0, answers, None)
    found = []
    for byte in b"".join(ANSWER.pack(kind, len(data)) + data for kind, data in ANSWERS):
        os.write(answered, bytes((byte,)))
        taken = process.take()
        if taken is not None:
            found.append(taken)
    assert found == ANSWERS
    os.close(answered)
    with pytest.raises(EOFError):
        process.take()
    os.close(answers)


def test_a_process_is_told_what_it_must_know_and_ends_when_nobody_tells_it_more() -> None:
    process = fork(echoing, (), is_asked=True)
    large = bytes(range(256)) * 1_024  # more than goes through a pipe at once
    for kind, data in ((NEXT, b"seam"), (NEXT, large)):
        process.send(kind, data)
        assert next(answers_of(process)) == (kind, data)
    assert process.end(kills=False) == "stopped with exit code 0"


def test_it_says_how_a_process_ended() -> None:
    process = fork(echoing, (), is_asked=True)
    assert process.end(kills=True) == "was killed by signal 9"
    died = fork(lambda _: lambda _: os._exit(3), (), is_asked=False)
    with pytest.raises(EOFError):
        died.take()
    died_at = died.pid
    assert died.end(kills=False) == "stopped with exit code 3"
    with pytest.raises(ProcessLookupError):
        os.kill(died_at, 0)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="only Linux tells which descriptors are open")
def test_a_process_keeps_no_descriptors_of_others() -> None:
    mine, theirs = os.pipe()
    path = os.readlink(f"/proc/self/fd/{mine}")

    def tell(answered: int) -> None:
        there = [os.readlink(each) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
        os.write(answered, ANSWER.pack(PIECE, 1) + str(int(path in there)).encode())

    process = fork(lambda _: tell, (mine, theirs), is_asked=False)
    assert list(answers_of(process)) == [(PIECE, b"0")]
    process.end(kills=False)
    os.close(mine)
    os.close(theirs)
