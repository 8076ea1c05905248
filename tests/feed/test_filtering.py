"""The filter of the screens: what it shows, and the way back."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.feed import columns as stage
from kdissect.feed.batches import FeedBatch
from kdissect.feed.columns import FilterColumns
from kdissect.feed.decoder import Decoded
from kdissect.feed.filtering import Shown, quoted
from kdissect.feed.index import Index
from kdissect.feed.rows import HAS_TAKEN
from kdissect.filter.compiled import compile_filter
from kdissect.filter.errors import FilterError
from kdissect.filter.expression import Leaf
from kdissect.present.options import Options
from tests.cli.run import CAPTURES
from tests.feed.feeds import decoded, index_of, row


class Heard:
    """Counts how often it was told."""

    times = 0

    def __call__(self) -> None:
        self.times += 1


class Nothing:
    """A feed that nobody asks for anything."""


Given = tuple[Decoded, Index, Shown, Heard]


@pytest.fixture
def given_() -> Iterator[Given]:
    feed = decoded(CAPTURES / "errors.pcapng")
    index, heard = index_of(feed), Heard()
    shown = Shown(index, feed, Options(), heard)
    yield feed, index, shown, heard
    shown.close()
    feed.close()


def numbers(index: Index, shown: Shown) -> list[int]:
    until = time.monotonic() + 60
    while shown.progress is not None and time.monotonic() < until:
        shown.poll()
        time.sleep(0.01)
    return [int(number) for number in index.column("number")[shown.places]]


def truth(feed: Decoded, index: Index, text: str) -> list[int]:
    chosen = compile_filter(text)
    where = [(index.value("place", at), index.value("length", at)) for at in range(len(index))]
    return sorted(each.number for each in (feed.exchange(*w) for w in where) if chosen.matches(each))


@pytest.mark.parametrize(
    "text",
    [
        "api == Metadata",
        "error or api == Fetch",
        "topic contains errors",
        "produce.request.acks == -1",
        "not produce.request.acks == -1 and latency > 1ms",
        "errors",
        "nothing-has-this",
    ],
)
def test_it_shows_what_matches_ascending(given_: Given, text: str) -> None:
    feed, index, shown, _ = given_
    shown.push(text)
    assert numbers(index, shown) == truth(feed, index, text)
    assert shown.hints == compile_filter(text).hints


def test_filters_lie_on_one_another(given_: Given) -> None:
    _, index, shown, heard = given_
    assert (shown.text, shown.is_filtered, len(shown.places)) == ("", False, len(index))
    shown.push("error")
    shown.narrow("api == Produce")
    assert shown.text == "(error) and (api == Produce)"
    assert 0 < len(shown.places) < 22
    assert shown.pop()
    assert shown.text == "error"
    assert shown.pop()
    assert (shown.text, len(shown.places)) == ("", len(index))
    assert not shown.pop()
    assert heard.times == 4


def test_the_same_filter_again_is_no_step(given_: Given) -> None:
    _, _, shown, _ = given_
    shown.push("error")
    shown.push("error")
    assert shown.pop()
    assert shown.text == ""


def test_what_is_no_filter_changes_nothing(given_: Given) -> None:
    _, _, shown, heard = given_
    shown.push("error")
    places, before = shown.places, heard.times
    for text in ("latncy > 3", "((", "api == Nonsense"):
        with pytest.raises(FilterError):
            shown.push(text)
        with pytest.raises(FilterError):
            shown.narrow(text)
    assert shown.text == "error"
    assert shown.places is places
    assert heard.times == before


def test_off_and_on_again(given_: Given) -> None:
    _, index, shown, heard = given_
    shown.toggle()
    assert heard.times == 0
    shown.push("error")
    shown.toggle()
    assert (shown.text, shown.is_on, len(shown.places)) == ("error", False, len(index))
    shown.narrow("api == Fetch")
    assert shown.text == "api == Fetch"
    shown.pop()
    assert shown.is_on
    assert len(shown.places) == 22


def test_counting_before_it_is_set(given_: Given) -> None:
    _, index, shown, _ = given_
    error = shown.compiled("error")
    deep = shown.compiled("error and acks == 1")
    assert error is not None
    assert deep is not None
    assert shown.count(error) == (22, 22)
    assert shown.count(deep) == (0, 22)
    assert shown.compiled("  ") is None
    assert len(shown.places) == len(index)


@given(st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=6), st.permutations(range(1, 37)))
def test_rows_that_come_later_are_filtered_too(parts: list[list[int]], order: list[int]) -> None:
    index = Index()
    shown = Shown(index, Nothing(), Options())  # type: ignore[arg-type]
    shown.push("connection == 1")
    at, wanted = 0, []
    for part in parts:
        rows = b""
        for connection in part:
            rows += row(number=order[at], connection=connection)
            wanted += [order[at]] if connection == 1 else []
            at += 1
        index.add(FeedBatch(rows))
        shown.index_grew()
        assert index.column("number")[shown.places].tolist() == sorted(wanted)


def test_only_new_rows_are_asked(given_: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    feed, index, _, _ = given_
    part = Index()
    part.add(FeedBatch(texts=index.texts[1:]))
    shown = Shown(part, feed, Options())
    shown.push("produce.request.acks == -1")
    asked: list[list[int]] = []
    monkeypatch.setattr(shown, "_ask", lambda chosen, places: asked.append(places.tolist()))
    packed = np.rec.fromarrays([index.column(name) for name in ("number", "place", "length")])
    for start in (0, 20, 40):
        rows = (
            row(number=int(n), place=int(p), length=int(size)) for n, p, size in packed[start : start + 20]
        )
        part.add(FeedBatch(b"".join(rows)))
        shown.index_grew()
    assert [sorted(places) for places in asked] == [
        list(range(0, 20)),
        list(range(20, 40)),
        list(range(40, len(index))),
    ]


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_quoted_text_is_that_text(text: str) -> None:
    chosen = compile_filter(f"client_id == {quoted(text)}")
    assert isinstance(chosen.expression, Leaf)
    assert chosen.expression.check.one(text)
    assert not chosen.expression.check.one(text + "x")


def test_a_question_of_many_texts_is_answered_beside_the_screens(
    given_: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed, index, shown, _ = given_
    monkeypatch.setattr(stage, "MOST_TEXTS", 0)
    shown.push("client contains 4 and acks == 1")
    assert shown.progress == 0
    assert len(shown.places) == 0
    assert numbers(index, shown) == truth(feed, index, "client contains 4 and acks == 1")
    shown.push("client contains 5")
    shown.push("api == Metadata")
    assert numbers(index, shown) == truth(feed, index, "api == Metadata")


def test_rows_that_come_meanwhile_are_answered_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "MOST_TEXTS", 0)
    index = Index()
    shown = Shown(index, Nothing(), Options())  # type: ignore[arg-type]
    index.add(FeedBatch(row(number=1, api=1), ["Fetch"]))
    shown.push("api == Fetch")
    index.add(FeedBatch(row(number=2, api=1) + row(number=3)))
    shown.index_grew()
    assert numbers(index, shown) == [1, 2]


def test_what_goes_wrong_beside_the_screens_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "MOST_TEXTS", 0)

    def fail(*_: object) -> None:
        raise ValueError("a defect")

    monkeypatch.setattr(FilterColumns, "masks", fail)
    index = Index()
    index.add(FeedBatch(row(number=1, api=1), ["Fetch"]))
    shown = Shown(index, Nothing(), Options())  # type: ignore[arg-type]
    shown.push("api == Fetch")
    with pytest.raises(ValueError, match="a defect"):
        numbers(index, shown)


def test_what_is_slow_is_seen_anew_when_there_is_more_and_at_the_end() -> None:
    index = Index()
    shown = Shown(index, Nothing(), Options())  # type: ignore[arg-type]

    def come(times: range) -> None:
        rows = [
            row(number=len(index) + at, api=1, taken_ns=ns, flags=HAS_TAKEN) for at, ns in enumerate(times, 1)
        ]
        index.add(FeedBatch(b"".join(rows), ["Metadata"] if not len(index) else []))
        shown.index_grew()

    come(range(1, 101))
    shown.push("slow")
    before = shown.chosen
    assert numbers(index, shown) == [100]
    come(range(1_001, 1_021))  # too few for another look; each is slow as far as is known
    assert len(shown.places) == 21
    assert shown.chosen is before
    shown.index_is_complete()
    assert numbers(index, shown) == [120]
    assert shown.chosen is not before
    come(range(2_000, 14_000, 100))
    assert numbers(index, shown) == [239, 240]


def test_a_time_of_the_users_is_slow_at_once() -> None:
    index = Index()
    index.add(FeedBatch(row(number=1, api=1, taken_ns=2_000_001, flags=HAS_TAKEN), ["Fetch"]))
    shown = Shown(index, Nothing(), Options(), slow_ms=2)  # type: ignore[arg-type]
    shown.push("slow")
    assert numbers(index, shown) == [1]
    shown.index_is_complete()
    assert numbers(index, shown) == [1]


def test_a_list_is_called_empty_when_all_is_asked(given_: Given) -> None:
    _, index, shown, _ = given_
    shown.push("produce.request.acks == 77")
    assert shown.why_none == "filtering …"
    assert numbers(index, shown) == []
    assert shown.why_none == "no exchange matches"
