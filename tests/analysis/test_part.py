"""Parts that were counted elsewhere, added in order, are the whole; with a filter too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from kdissect.analysis import chapters
from kdissect.analysis.catalogue import statistic
from kdissect.analysis.fold_set import Together
from kdissect.analysis.part import MOST_BYTES, MOST_EVENTS, ChapterCounts, Part, counted, gathered
from kdissect.analysis.whole import WholeFold
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.session.conversation import Connection
from tests.analysis.folds import events_of
from tests.analysis.produced import batch, produce

TABLES = ("connections", "srt", "groups")


class OfApi:
    """Chooses exchanges of an API, and connections that have one."""

    def __init__(self, api: str) -> None:
        self.api = api
        self.chosen: set[int] = set()

    def counts(self, event: Event) -> bool:
        if isinstance(event, Exchange) and event.api == self.api:
            self.chosen.add(event.connection)
            return True
        return isinstance(event, Connection) and event.connection in self.chosen


def new() -> Together:
    return Together([statistic(name)[1] for name in TABLES])


@pytest.mark.parametrize("size", [1, 7, 100])
@pytest.mark.parametrize("api", [None, "JoinGroup"])
def test_parts_are_the_whole(api: str | None, size: int) -> None:
    events = events_of("java43-groups")
    whole, chosen, chooser = new(), set[int](), None if api is None else OfApi(api)
    for event in events:
        whole.feed(event, chooser is None or chooser.counts(event))
    made = WholeFold(new)
    for at in range(0, len(events), size):
        own = None if api is None else OfApi(api)
        made.add(counted([events[at : at + size]], new, own), chosen)
    made.finish()
    rows = [each.result() for each in whole.statistics]
    assert [each.result() for each in made.counted.statistics] == rows
    assert all(rows)
    assert chooser is None or chosen == chooser.chosen


@pytest.mark.parametrize("api", [None, "JoinGroup"])
def test_chapters_that_ended_are_sent(api: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chapters, "EXCHANGES", 20)
    events = events_of("java43-groups")
    whole, made = WholeFold(new), WholeFold(new)
    sent: list[ChapterCounts[Together]] = []
    kept = counted([events], new, None if api is None else OfApi(api), sent.append)
    every = counted([events], new, None if api is None else OfApi(api))
    assert [each.chapter for each in (*sent, *kept.pieces)] == [each.chapter for each in every.pieces]
    assert len(sent) > 2
    assert len(kept.pieces) == 1
    assert kept.chosen == every.chosen
    whole.add(every, set())
    for part in (Part(sent), kept):
        made.add(part, set())
    rows = [each.result() for each in whole.counted.statistics]
    assert [each.result() for each in made.counted.statistics] == rows


def test_events_are_gathered_in_their_order() -> None:
    events = events_of("java43-groups")
    together = list(gathered([events[:5], (), events[5:]]))
    assert [each for some in together for each in some] == list(events)
    assert {len(some) for some in together[:-1]} == {MOST_EVENTS}


def test_large_exchanges_are_not_gathered() -> None:
    value = b"v" * (MOST_BYTES // 3)
    exchanges = [produce(0, batch(value.decode())) for _ in range(7)]
    assert [len(some) for some in gathered([exchanges])] == [3, 3, 1]


def test_what_came_before_an_interruption_is_given() -> None:
    events = events_of("java43-groups")[:3]

    def interrupted() -> Iterator[Sequence[Event]]:
        yield events
        raise KeyboardInterrupt

    came = gathered(interrupted())
    assert next(came) == list(events)
    with pytest.raises(KeyboardInterrupt):
        next(came)


def test_no_more_exchanges_are_held_than_are_fed_together() -> None:
    held: list[int] = []
    fed: list[int] = []

    class _Counts:
        def feed_all(self, events: Sequence[Event]) -> None:
            fed.extend(range(len(events)))

        def feed(self, event: Event, counts: bool = True) -> None:
            fed.append(0)

        def set_open(self) -> None:
            pass

    def large() -> Iterator[Sequence[Event]]:
        for at in range(9):
            held.append(at - len(fed))
            yield (produce(0, batch("v" * (MOST_BYTES // 3))),)

    counted(large(), _Counts, None)  # type: ignore[type-var]  # nothing is added
    assert len(fed) == 9
    assert max(held) <= 3
