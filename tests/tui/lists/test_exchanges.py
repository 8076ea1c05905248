from __future__ import annotations

import pytest

from kdissect.feed.rows import HAS_REQUEST, HAS_RESPONSE, HAS_VERSION
from kdissect.tui.lists.exchanges import Exchanges
from tests.feed.feeds import index_with

LONG = "ConsumerGroupHeartbeat"
FLAGS = HAS_REQUEST | HAS_RESPONSE | HAS_VERSION
TEXTS = ["Fetch", LONG, "DescribeUserScramCredentials"]


def rows_of(*apis: int) -> Exchanges:
    index = index_with(
        [
            {"api": api, "api_version": 1, "flags": FLAGS, "number": at + 1, "time_ns": 10**18 + at}
            for at, api in enumerate(apis)
        ],
        TEXTS[: max(apis)],
    )
    return Exchanges(index)


def cells(rows: Exchanges, row: int, width: int) -> dict[str, str]:
    titles = [heading.title for heading in rows.headings(width)]
    return dict(zip(titles, rows.cells(row, width), strict=True))


def room(rows: Exchanges, title: str, width: int) -> int:
    return next(heading.width for heading in rows.headings(width) if heading.title == title)


@pytest.mark.parametrize("width", [80, 118, 198])
@pytest.mark.parametrize(("letter", "example"), [("a", "08:43:48.700000"), ("e", "1000000000.000000001")])
def test_a_time_has_the_room_it_needs(letter: str, example: str, width: int) -> None:
    rows = rows_of(1)
    rows.clock.letter = letter
    assert len(cells(rows, 0, width)["Time"]) >= len(example) - 1
    assert room(rows, "Time", width) >= len(cells(rows, 0, width)["Time"])


@pytest.mark.parametrize("width", [88, 118, 198])
def test_an_api_has_room_for_its_name_and_version(width: int) -> None:
    rows = rows_of(1, 2)
    assert cells(rows, 1, width)["API"] == f"{LONG} v1"
    assert room(rows, "API", width) >= len(f"{LONG} v1")


def test_one_long_api_takes_no_room_from_the_client_of_all_rows() -> None:
    texts = ["Fetch", "DescribeUserScramCredentials", "orders-writer", "a-topic-of-many " * 4]
    apis = [1] * 50 + [2]
    index = index_with(
        [
            {
                "api": api,
                "api_version": 1,
                "flags": FLAGS,
                "client_id": 3,
                "topics": 4,
                "number": at,
                "time_ns": at * 10**9,
            }
            for at, api in enumerate(apis, 1)
        ],
        texts,
    )
    rows = Exchanges(index)
    shown = cells(rows, 50, 78)
    assert shown["API"].startswith("DescribeUser")
    assert shown["API"].endswith(" v1")
    assert room(rows, "Client", 78) >= 10
    assert room(rows, "API", 78) < 26


def test_columns_take_what_their_contents_need_and_info_gets_the_rest() -> None:
    rows = rows_of(1, 1)
    widths = {heading.title: heading.width for heading in rows.headings(198)}
    assert widths["API"] == len("Fetch v1")
    assert widths["No."] == len("▾No.")
    assert widths["Info"] == 0
    long = rows_of(*[1] * 12_345)
    assert room(long, "No.", 198) == 5


def test_an_id_that_is_long_beyond_measure_leaves_room_for_the_others() -> None:
    index = index_with([{"client_id": 1, "client": 2, "api": 3}], ["i" * 400, "10.0.0.1:1", "Fetch"])
    assert room(Exchanges(index), "Client", 238) == 28


def test_where_there_is_no_room_the_name_is_cut_and_the_version_stays() -> None:
    rows = rows_of(3)
    rows.clock.letter = "u"  # takes room
    assert cells(rows, 0, 74)["API"] == "DescribeUserScramCr… v1"


def test_columns_that_the_user_chose_are_all_there_and_texts_give_way() -> None:
    texts = ["10.0.0.1:54321", "kafka-1:9092", "t" * 50]
    index = index_with([{"client": 1, "broker": 2, "topics": 3, "request_packet": 7}], texts)
    rows = Exchanges(index, chosen=("client", "broker", "topics", "request_packet", "info"))
    for width in range(50, 120):
        found, hint = rows.headings(width), rows.columns_hint(width)
        assert sum(each.width for each in found) + len(found) - 1 < width
        assert hint == (f"+{6 - len(found)} →" if len(found) < 6 else "")
        assert len(found) == 6 or width < 65
    assert room(rows, "Address", 200) == len(texts[0])
    assert room(rows, "Topics", 200) == 50


def test_columns_without_room_stand_on_pages_of_their_own() -> None:
    rows = rows_of(1, 2)
    first = rows.names(70)
    assert rows.columns_hint(70) == f"+{len(rows.names(1_000)) - len(first)} →"
    seen = set(first)
    while rows.turn_columns(1, 70):
        names = rows.names(70)
        assert list(names[:2]) == ["mark", "number"]
        assert len(rows.cells(0, 70)) == len(names) > 2
        seen |= set(names)
    assert seen == set(rows.names(1_000))
    assert rows.turn_columns(-1, 1_000) is False  # where all have room there is one page


def test_a_row_is_drawn_anew_when_a_longer_name_of_an_api_came() -> None:
    rows = rows_of(1, 2)
    before = rows.key(0)
    rows.headings(80)
    assert rows.key(0) != before


@pytest.mark.parametrize(
    ("order", "title"),
    [(("latency_ns", True), "▾Latency"), (("api", False), "API▴"), (("number", True), "▾No.")],
)
def test_the_column_that_orders_the_list_is_marked(order: tuple[str, bool], title: str) -> None:
    rows = rows_of(1)
    rows.sorted_by = order
    assert title in [heading.title for heading in rows.headings(200)]
    rows.sorted_by = None
    assert not any(set("▴▾") & set(heading.title) for heading in rows.headings(200))
