"""Answers on their way through a pipe."""

from __future__ import annotations

import os
from collections.abc import Iterator
from threading import Thread

import pytest

import kdissect.jobs.answers
from kdissect.jobs.answers import ANSWER, AnswerPipe

KIND = 3
LARGE = b"x" * (1 << 20)
"""More than a pipe holds."""


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The end to read, and the end to write."""
    ends = os.pipe()
    try:
        yield ends
    finally:
        for end in ends:
            os.close(end)


def read(end: int, size: int) -> bytes:
    """So many bytes, in pieces as they come."""
    found = b""
    while len(found) < size:
        found += os.read(end, size - len(found))
    return found


def sent(*texts: bytes) -> bytes:
    return b"".join(ANSWER.pack(KIND, len(text)) + text for text in texts)


def test_answers_that_the_pipe_does_not_take_are_kept_and_come_in_order(pipe: tuple[int, int]) -> None:
    answers = AnswerPipe(pipe[1])
    texts = (b"first", LARGE, b"", b"last")
    for each in texts:
        answers.send(KIND, each)  # nobody reads, and it does not wait
    flushing = Thread(target=answers.flush)
    flushing.start()
    assert read(pipe[0], len(sent(*texts))) == sent(*texts)
    flushing.join()


def test_it_waits_if_it_keeps_too_much(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kdissect.jobs.answers, "MOST_KEPT", len(LARGE) // 2)
    answers = AnswerPipe(pipe[1])
    sending = Thread(target=answers.send, args=(KIND, LARGE))
    sending.start()
    sending.join(0.2)
    assert sending.is_alive()
    read(pipe[0], len(LARGE) // 2 + ANSWER.size)
    sending.join(10)
    assert not sending.is_alive()
    assert answers._kept_bytes <= len(LARGE) // 2


@pytest.mark.parametrize("is_full", [False, True])
def test_it_says_that_nobody_reads_any_more(is_full: bool) -> None:
    end, other = os.pipe()
    answers = AnswerPipe(other)
    if is_full:
        answers.send(KIND, LARGE)
    os.close(end)
    with pytest.raises(BrokenPipeError):
        answers.send(KIND, b"more")
    os.close(other)
