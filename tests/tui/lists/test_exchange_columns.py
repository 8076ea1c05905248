"""What stands in the columns of exchanges, also in those that show fields of messages."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from kdissect.feed.field_values import FieldValues
from kdissect.feed.frame_time import FrameTime
from kdissect.feed.rows import HAS_REQUEST, HAS_RESPONSE, HAS_TAKEN
from kdissect.present.options import Options
from kdissect.tui.lists.exchange_columns import COLUMNS, MOST_CELLS, SLOW_SIGN, FieldColumns
from kdissect.tui.lists.exchanges import Exchanges
from tests.feed.feeds import index_with


def test_a_slow_row_has_a_sign_beside_its_colour() -> None:
    flags = HAS_REQUEST | HAS_RESPONSE | HAS_TAKEN
    index = index_with([{"api": 1, "flags": flags, "taken_ns": taken} for taken in (5, 50)], ["Fetch"])
    rows = Exchanges(index)
    rows.texts.slow = np.array([0, 10], np.int64)
    assert [rows.cells(row, 80)[0] for row in (0, 1)] == [" ", SLOW_SIGN]
    assert [rows.tone(row) for row in (0, 1)] == [None, "table--warning"]


def test_no_two_columns_have_the_same_name() -> None:
    names = [column.name for column in COLUMNS.values()]
    assert len(set(names)) == len(names)


GROUP, MEMBER = "joinGroup.request.groupId", "joinGroup.request.memberId"
OTHER_GROUP = "syncGroup.request.groupId"


class Values(FieldValues):
    """Values that are given."""

    def __init__(self, texts: Mapping[int, tuple[str, ...]]) -> None:
        super().__init__(lambda _: None, Options(), FrameTime())
        self.given = texts

    def texts(self, place: int) -> tuple[str, ...] | None:
        return self.given.get(place)


def rows_of(*chosen: str, texts: Mapping[int, tuple[str, ...]] | None = None) -> Exchanges:
    index = index_with(
        [{"number": at, "api": 1, "client_id": 2, "time_ns": at} for at in (1, 2)], ["JoinGroup", "a"]
    )
    return Exchanges(index, chosen=chosen, values=Values(texts or {}))


def test_a_field_stands_where_it_was_chosen_to() -> None:
    rows = rows_of("number", GROUP, "info", texts={0: ("orders",)})
    assert list(rows.names(100)) == ["mark", "number", GROUP, "info"]
    assert [heading.title for heading in rows.headings(100)][2] == "groupId"
    assert [rows.cells(row, 100)[2] for row in (0, 1)] == ["orders", ""]  # the second is not known yet


@pytest.mark.parametrize("width", [78, 118, 198])
def test_fields_alone_stand_among_as_many_columns_as_there_is_room_for(width: int) -> None:
    usual = rows_of().names(width)
    shown = rows_of(GROUP).names(width)
    assert shown[-2:] == [GROUP, "info"]
    assert set(shown) - {GROUP} <= set(usual)
    assert len(shown) >= 7
    if width > 100:
        assert set(shown) == {*usual, GROUP}


def test_names_without_a_column_are_left_out() -> None:
    rows = rows_of("number", "gone", "joinGroup.request.gone", "request", GROUP)
    assert rows.chosen == ("number", GROUP)
    assert rows_of("gone").is_usual
    assert rows_of("gone").chosen == ()


def test_a_row_is_drawn_anew_when_its_values_are_known() -> None:
    rows = rows_of("number", GROUP)
    before = rows.key(0)
    values = rows.fields._values
    assert isinstance(values, Values)
    values.given = {0: ("orders",)}
    assert rows.key(0) != before


def test_a_column_grows_between_two_drawings_and_never_shrinks() -> None:
    texts = {0: ("orders-of-today",), 1: ("x" * 99,)}
    values = Values(texts)
    asked: list[bool] = []
    values.frame_time.when_behind = lambda: asked.append(True)
    columns = FieldColumns(values)
    columns.choose([GROUP])
    narrow = columns.cells(GROUP)
    columns.texts(0)
    assert columns.cells(GROUP) == narrow
    assert asked == [True]
    columns.grow()
    assert columns.cells(GROUP) == len("orders-of-today")
    columns.texts(1)
    columns.grow()
    assert columns.cells(GROUP) == MOST_CELLS
    columns.choose([MEMBER, GROUP])
    assert columns.cells(GROUP) == MOST_CELLS


@pytest.mark.parametrize(
    ("names", "titles"),
    [
        ((GROUP, MEMBER), ["groupId", "memberId"]),
        ((GROUP, OTHER_GROUP), ["joinGroup…groupId", "syncGroup…groupId"]),
        (("fetch.request.maxBytes", "fetch.maxBytes"), ["fetch.request.maxBytes", "fetch.maxBytes"]),
        (("record.header.a\x1b",), ["a\\x1b"]),
    ],
)
def test_heads_tell_columns_from_each_other(names: tuple[str, ...], titles: list[str]) -> None:
    columns = FieldColumns(Values({}))
    columns.choose(names)
    assert [each.title for each in columns.shown.values()] == titles


def test_numbers_stand_at_the_right_edge() -> None:
    columns = FieldColumns(Values({}))
    columns.choose([GROUP, "produce.request.acks"])
    assert [each.is_number for each in columns.shown.values()] == [False, True]
