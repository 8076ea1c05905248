"""Questions to exchanges, answered by another process."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from multiprocessing.process import BaseProcess

import numpy as np
import pytest

from kdissect.exchange import Exchange
from kdissect.feed.decoder import Decoded
from kdissect.feed.index import Index
from kdissect.feed.matching import AnswerClient, Answers
from kdissect.filter.compiled import compile_filter
from tests.cli.run import CAPTURES
from tests.feed.feeds import decoded, index_of

Asked = tuple[Decoded, Index, AnswerClient]


@pytest.fixture
def asked() -> Iterator[Asked]:
    feed = decoded(CAPTURES / "errors.pcapng")
    index = index_of(feed)
    asker = AnswerClient(index, feed.descriptor)
    yield feed, index, asker
    asker.close()
    feed.close()


def process_of(asker: AnswerClient) -> BaseProcess:
    assert asker._worker is not None
    return asker._worker._process


def answers_of(asker: AnswerClient) -> list[Answers]:
    """All answers, when there are no more to come."""
    out = asker.poll()
    until = time.monotonic() + 60
    while asker.progress is not None:
        assert time.monotonic() < until
        time.sleep(0.01)
        out += asker.poll()
    return out


def test_it_answers_as_the_question_does_and_in_the_order_asked(asked: Asked) -> None:
    feed, index, asker = asked
    question = compile_filter("produce.request.acks == -1")
    places = np.arange(len(index), dtype=np.uint32)[::-1]
    asker.set_question(question)
    assert asker.progress is None
    asker.add(places)
    assert asker.progress == 0
    answers = answers_of(asker)
    assert np.concatenate([each.places for each in answers]).tolist() == places.tolist()
    hits = np.concatenate([each.hits for each in answers]).tolist()
    truth = [feed.exchange(index.value("place", at), index.value("length", at)) for at in places.tolist()]
    assert hits == [question.matches(exchange) for exchange in truth]
    assert any(hits)
    assert not all(hits)
    assert asker.failed == 0


class Defect:
    """A question that some exchanges cannot be asked."""

    def matches(self, exchange: Exchange) -> bool:
        return 1 / (exchange.number % 2) > 0


def test_exchanges_that_cannot_be_asked_are_counted_and_cost_the_others_nothing(asked: Asked) -> None:
    _, index, asker = asked
    asker.set_question(Defect())
    asker.add(np.arange(len(index), dtype=np.uint32))
    hits = np.concatenate([each.hits for each in answers_of(asker)])
    odd = index.column("number") % 2 == 1
    assert hits.tolist() == odd.tolist()
    assert asker.failed == np.count_nonzero(~odd)


def test_answers_to_a_question_that_was_dropped_do_not_come(asked: Asked) -> None:
    _, index, asker = asked
    everything = np.arange(len(index), dtype=np.uint32)
    asker.set_question(compile_filter("produce.request.acks == -1"))
    asker.add(np.tile(everything, 20))
    asker.set_question(compile_filter("api == Fetch"))
    asker.add(everything)
    answers = answers_of(asker)
    assert sum(len(each.places) for each in answers) == len(index)
    hits = np.concatenate([each.hits for each in answers])
    fetches = [index.text("api", at) == "Fetch" for at in range(len(index))]
    assert hits.tolist() == fetches


def test_the_first_portions_are_small(asked: Asked) -> None:
    _, index, asker = asked
    asker.set_question(compile_filter("acks == 1"))
    asker.add(np.tile(np.arange(len(index), dtype=np.uint32), 50))
    assert len(answers_of(asker)[0].places) <= 64


def test_its_death_is_told_and_the_next_question_starts_it_anew(asked: Asked) -> None:
    _, index, asker = asked
    everything = np.arange(len(index), dtype=np.uint32)
    asker.set_question(compile_filter("acks == 1"))
    asker.add(np.tile(everything, 100))
    process = process_of(asker)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    answers_of(asker)
    assert asker.reason is not None
    assert "killed by signal 9" in asker.reason
    asker.set_question(compile_filter("acks == 1"))
    asker.add(everything)
    assert sum(len(each.places) for each in answers_of(asker)) == len(index)
    assert asker.reason is None


def test_a_death_is_told_when_more_is_asked_before_anybody_looked(asked: Asked) -> None:
    """The process must not be started anew in silence: what it was asked would never be answered."""
    _, index, asker = asked
    everything = np.arange(len(index), dtype=np.uint32)
    asker.set_question(compile_filter("acks == 1"))
    asker.add(np.tile(everything, 100))
    process = process_of(asker)
    process.kill()
    process.join()
    asker.add(everything)
    assert asker.reason is not None
    assert "killed by signal 9" in asker.reason
    assert asker.progress is None


def test_a_pipe_that_breaks_under_a_question_is_told(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    _, index, asker = asked
    asker.start()
    process = process_of(asker)
    process.kill()
    process.join()
    monkeypatch.setattr(process, "is_alive", lambda: True)  # it died between the question and the pipe
    asker.set_question(compile_filter("acks == 1"))
    asker.add(np.arange(len(index), dtype=np.uint32))
    answers_of(asker)
    assert asker.reason is not None
    assert "killed by signal 9" in asker.reason


def test_a_process_that_cannot_be_started_is_told(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: object) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    _, index, asker = asked
    monkeypatch.setattr("kdissect.feed.side_process.start_process", fails)
    asker.set_question(compile_filter("acks == 1"))
    asker.add(np.arange(len(index), dtype=np.uint32))
    assert asker.reason == "exchanges cannot be searched: Resource temporarily unavailable"
    assert asker.progress is None
