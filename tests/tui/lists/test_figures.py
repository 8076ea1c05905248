from __future__ import annotations

from kdissect.analysis.fold import Row
from kdissect.tui.lists.figures import (
    FigureColumn,
    Figures,
    address,
    exchange_number,
    in_bytes,
    list_column,
    number,
    rare,
    rate,
    time_span,
    words,
)

COLUMNS = (
    words("Name", "name"),
    number("Count", "count"),
    rare("Errors", "errors", 2),
    time_span("Took", "took_ns", 6),
)


def row(name: str, count: int | None, errors: int = 0, took_ns: int | None = None) -> Row:
    return {"name": name, "count": count, "errors": errors, "took_ns": took_ns}


def figures(*rows: Row, columns: tuple[FigureColumn, ...] = COLUMNS) -> Figures:
    made = Figures(columns, lambda each: each["name"])
    made.show(rows)
    return made


def titles(made: Figures, width: int = 100) -> list[str]:
    return [heading.title for heading in made.headings(width)]


def names(made: Figures) -> list[str]:
    return [made.row(at)["name"] for at in range(len(made))]


def test_values_have_units_and_nothing_stands_for_what_is_not_known() -> None:
    columns = (
        number("a", "a"),
        rare("b", "b"),
        rate("c", "c"),
        time_span("d", "d"),
        in_bytes("e", "e"),
        words("f", "f"),
        list_column("g", "g"),
        address("h", "h"),
    )
    values = (12_345, 7, 1_234.56, 1_500_000, 2_048, "a\x1bb", ["x", "y\n"], "[::1]:9092")
    full = dict(zip("abcdefgh", values, strict=True))
    made = figures(full, columns=columns)
    expected = ["12,345", "7", "1,234.6", "1.50 ms", "2.0 KiB", "a\\x1bb", "x, y\\n", "[::1]:9092"]
    assert made.cells(0, 200) == expected
    nothing: Row = dict.fromkeys("abcdefgh") | {"g": []}
    made = figures(nothing, columns=columns)
    assert set(made.cells(0, 200)) == {""}


def test_columns_in_which_nothing_stands_are_left_out() -> None:
    assert titles(figures(row("a", 1))) == ["Name", "Count"]
    assert titles(figures(row("a", 1, errors=2, took_ns=5))) == ["Name", "Count", "Errors", "Took"]


def test_a_rare_column_is_left_out_if_it_is_empty_whatever_its_rank() -> None:
    columns = (number("a", "a"), rare("b", "b"))
    assert titles(figures({"a": 1, "b": 0}, columns=columns)) == ["a"]
    assert titles(figures({"a": 1, "b": 2}, columns=columns)) == ["a", "b"]


def test_without_room_the_highest_ranks_go_first_then_texts_are_cut() -> None:
    made = figures(row("n" * 40, 1, errors=1, took_ns=1))
    assert titles(made, 62) == ["Name", "Count", "Errors", "Took"]
    assert titles(made, 60) == ["Name", "Count", "Errors"]
    name, *_ = made.headings(40)
    assert titles(made, 40) == ["Name", "Count", "Errors"]
    assert name.width == 40 - 2 - len(" Count Errors") + 1 - 1
    assert titles(made, 20) == ["Name", "Count"]
    for width in (20, 40, 60, 62, 100):
        assert sum(heading.width + 1 for heading in made.headings(width)) - 1 <= width


def test_addresses_are_not_cut_as_long_as_anything_else_can_give_way() -> None:
    columns = (address("Client", "client"), words("Software", "software"))
    made = figures({"name": "", "client": "255.255.255.255:65535", "software": "s" * 40}, columns=columns)
    assert [heading.width for heading in made.headings(40)] == [21, 18]


def test_rows_are_ordered_by_a_column_those_without_a_value_last() -> None:
    made = figures(row("b", 2), row("a", None), row("c", 3), row("d", 1))
    assert names(made) == ["b", "a", "c", "d"]
    made.sort_by("Count")
    assert names(made) == ["c", "b", "d", "a"]
    assert titles(made)[1] == "▾Count"
    made.sort_by("Count")
    assert names(made) == ["d", "b", "c", "a"]
    made.sort_by("Name")
    assert names(made) == ["a", "b", "c", "d"]
    assert titles(made)[0] == "Name▴"
    made.turn()
    assert names(made) == ["d", "c", "b", "a"]


def test_the_key_goes_through_the_columns_and_back_to_the_order_in_which_rows_came() -> None:
    made = figures(row("b", 2), row("a", 1))
    orders = []
    for _ in range(3):
        made.sort_by_next(100)
        orders.append((made.sorted_by, names(made)))
    assert orders == [("Name", ["a", "b"]), ("Count", ["b", "a"]), (None, ["b", "a"])]
    made.turn()
    assert names(made) == ["a", "b"]


def test_rows_that_come_anew_keep_the_order_and_have_other_keys() -> None:
    made = figures(row("b", 2), row("a", 3))
    made.sort_by("Count")
    before = made.key(0)
    made.show([row("a", 1), row("b", 2), row("c", 9)])
    assert names(made) == ["c", "b", "a"]
    assert made.key(0) != before
    assert made.row_of("b") == 1
    assert made.row_of("z") is None


def test_other_columns_end_an_order_that_they_do_not_have() -> None:
    made = figures(row("b", 2), row("a", 3))
    made.sort_by("Count")
    made.show([row("b", 2), row("a", 3)], (words("Name", "name"),))
    assert made.sorted_by is None
    assert names(made) == ["b", "a"]


def test_a_long_text_that_is_nice_to_have_takes_what_room_there_is() -> None:
    columns = (
        FigureColumn("Name", lambda row: row["name"], None, 0, False),
        FigureColumn("Said", lambda row: row["said"], None, 7, False, 200, least=40),
    )
    made = Figures(columns, lambda row: row["name"])
    made.show([{"name": "one", "said": "x" * 150}])
    assert [[each.width for each in made.headings(room)] for room in (44, 45, 100, 300)] == [
        [4],
        [4, 40],
        [4, 95],
        [4, 150],
    ]


def test_a_text_is_whole_where_nobody_else_wants_the_room() -> None:
    columns = (
        FigureColumn("Name", lambda row: row["name"], None, 0, False),
        FigureColumn("By", lambda row: row["by"], None, 2, False, 20),
        FigureColumn("Count", lambda row: "1", None, 6),
    )
    made = Figures(columns, lambda row: row["name"])
    made.show([{"name": "one", "by": "x" * 30}])
    widths = {room: [each.width for each in made.headings(room)] for room in range(20, 60)}
    assert widths[32] == [4, 20, 6]
    assert widths[40] == [4, 28, 6]
    assert widths[59] == [4, 30, 6]
    for room in range(20, 59):  # no column goes or gets narrower in a wider table
        assert all(a <= b for a, b in zip(widths[room], widths[room + 1], strict=False))


def test_a_text_is_found_in_any_column_and_the_search_begins_anew_after_the_last_row() -> None:
    made = figures(row("Orders", 1), row("clicks", 2, took_ns=1_500_000), row("orders-2", 3))
    assert made.find("ORDERS", 0, 1) == 2
    assert made.find("orders", 2, 1) == 0
    assert made.find("orders", 0, -1) == 2
    assert made.find("1.50 ms", 0, 1) == 1  # whether there is room for the column or not
    assert made.find("clicks", 1, 1) == 1
    assert made.find("nowhere", 0, 1) is None
    assert figures().find("orders", 0, 1) is None


def test_a_regular_expression_is_found_too() -> None:
    made = figures(row("Orders", 1), row("clicks", 2), row("orders-2", 3))
    assert made.find("/^or.ers-[0-9]/", 0, 1) == 2
    assert made.find("/^ders/", 0, 1) is None
    assert made.find("/", 0, 1) is None  # a part of a text, as it is
    made.narrow("/^(clicks|ORDERS)$/")
    assert names(made) == ["Orders", "clicks"]


def test_the_number_of_an_exchange_has_no_commas() -> None:
    column = exchange_number("count")
    assert column.text(row("a", 1_340)) == "1340"
    assert column.text(row("a", None)) == ""


def test_rows_without_a_text_are_shown() -> None:
    made = figures(row("Orders", 1), row("clicks", 2), row("!", 3))
    wanted = {"!orders": ["clicks", "!"], "!/^(o|c)/": ["!"], "!": ["!"], "!!": ["Orders", "clicks"]}
    for text, left in wanted.items():
        made.narrow(text)
        assert names(made) == left
    assert made.narrowed == "only 2 of 3, without !"


def test_rows_are_copied_with_tabs_between_the_columns_that_have_something() -> None:
    made = figures(row("a\tb\x1b", 1_000), row("c", 2))
    assert made.as_text() == "Name\tCount\na\\tb\\x1b\t1,000\nc\t2"
    assert made.as_text(made.row(1)) == "Name\tCount\nc\t2"


def test_new_rows_leave_the_page_of_columns_that_is_shown() -> None:
    """While a file is read they come again and again, some lists with columns that are made anew."""
    rows = [row("n" * 40, 123_456, errors=12, took_ns=1)]
    made = figures(*rows)
    assert made.turn_columns(1, 40)
    before = titles(made, 40)
    made.show(rows, tuple(each._replace(rank=each.rank) for each in COLUMNS))
    assert titles(made, 40) == before
    made.show(rows, COLUMNS[:2])
    assert titles(made, 40) == ["Name", "Count"]


def test_a_column_is_measured_once_for_the_same_rows() -> None:
    asked: list[str] = []

    def text(row: Row) -> str:
        asked.append(row["name"])
        return str(row["name"])

    made = figures(row("a", 1), row("b", 2), columns=(FigureColumn("Name", text, rank=1), *COLUMNS[1:]))
    for width in (100, 60, 40):
        made.headings(width)
    made.orders()
    assert asked == ["a", "b"]
    made.show([row("c", 1)])
    made.headings(100)
    assert asked == ["a", "b", "c"]
