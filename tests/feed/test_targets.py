"""Where people go by what they type."""

from __future__ import annotations

from datetime import datetime

import pytest

from kdissect.feed.targets import nothing_at, numbered, place_of, targets
from tests.feed.feeds import index_with


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("43", ["No. 43", "packet 43"]),
        (":1,234", ["No. 1,234", "packet 1,234"]),
        ("#7", ["No. 7"]),
        ("no. 7", ["No. 7"]),
        ("Packet 7", ["packet 7"]),
        (":p7", ["packet 7"]),
        ("frame 7", ["packet 7"]),
        ("2.5s", ["2.5 s"]),
        ("+90 min", ["90 min"]),
        ("0.5 h", ["0.5 h"]),
        (":08:44:35", ["08:44:35"]),
        ("23:59:59.5", ["23:59:59.5"]),
        ("24:00:00", []),
        *((text, []) for text in ("", "x", "-3", "1.5", "٣", "9" * 20, "s", "1e3s", "1" * 10 + "s")),
    ],
)
def test_a_number_may_be_of_an_exchange_or_a_packet(typed: str, words: list[str]) -> None:
    assert [each.words for each in targets(typed)] == words


def test_each_leads_to_its_exchange() -> None:
    rows = [
        {"number": 1, "request_packet": 3, "response_packet": 9, "time_ns": 1_000_000_000},
        {"number": 2, "request_packet": 0, "response_packet": 4, "time_ns": 3_000_000_000},
        {"number": 3, "request_packet": 7, "response_packet": 0, "time_ns": 2_000_000_000},
    ]
    index = index_with(rows)
    index.first_ns = 1_000_000_000

    def places(typed: str) -> list[int | None]:
        return [place_of(each, index) for each in targets(typed)]

    assert places("3") == [2, 0]
    assert places("4") == [None, 1]
    assert places("9") == [None, 0]
    assert places("0") == [None, None]  # 0 stands for no packet
    assert places("9" * 19) == [None, None]
    assert places("packet 4") == [1]
    assert [places(each) for each in ("0s", "500ms", "1 s", "1.5s", "3s")] == [[0], [2], [2], [1], [None]]
    assert place_of(numbered(2), index) == 1


def test_what_is_not_there_is_said() -> None:
    said = [nothing_at(each) for typed in ("43", "7s") for each in targets(typed)]
    assert said == [
        "there is no exchange No. 43",
        "packet 43 completes no message",
        "there is no exchange after 7 s",
    ]


def test_a_time_of_day_leads_to_the_first_exchange_from_then_on() -> None:
    noon = int(datetime(2026, 3, 4, 12, 0, 0).timestamp()) * 10**9
    times = [noon, noon + 5 * 10**9, noon + 13 * 3600 * 10**9]
    index = index_with([{"number": at, "time_ns": ns} for at, ns in enumerate(times, 1)])
    index.first_ns, index.last_ns = times[0], times[-1]

    def place(typed: str) -> int | None:
        return place_of(next(targets(typed)), index)

    assert [place(each) for each in ("12:00:00", "12:00:01", "12:00:05.000", "12:00:06")] == [0, 1, 1, 2]
    assert [place(each) for each in ("11:00:00", "00:59:59", "1:00:00")] == [
        0,
        2,
        2,
    ]  # the last: of the next day
    assert place("23:59:59") == 2
