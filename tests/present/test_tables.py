"""Rows of a table as NDJSON, CSV and TSV."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.present.columns import Table, dict_column
from kdissect.present.options import PLAIN, Options
from kdissect.present.statistics import STATISTICS, titled
from kdissect.present.tables import FORMATS, DelimitedWriter, NdjsonWriter, row_line
from kdissect.present.writers import table_writer

TABLE = Table(
    "made",
    (
        dict_column("text", "text", "a text"),
        dict_column("count", "int64", "a number"),
        dict_column("holds", "bool", "yes or no"),
        dict_column("data", "bytes", "bytes"),
        dict_column("names", "texts", "several texts"),
    ),
)
NOTHING: dict[str, Any] = {"text": None, "count": None, "holds": None, "data": None, "names": None}


def written(form: str, *rows: dict[str, Any], options: Options = Options()) -> str:  # noqa: B008
    file = io.BytesIO()
    writer = table_writer(form, TABLE, file, options)
    for row in rows:
        writer.write({**NOTHING, **row})
    writer.close()
    return file.getvalue().decode("utf-8")


def test_null_and_empty_text_are_told_apart_in_csv() -> None:
    assert written("csv", {"text": ""}, {}) == '"text","count","holds","data","names"\n"",,,,\n,,,,\n'


@given(st.text())
def test_csv_is_read_back_and_tsv_has_as_many_cells_as_columns(text: str) -> None:
    found = written("csv", {"text": text, "count": 7, "holds": False, "names": [text]})
    heading, row = csv.reader(io.StringIO(found, newline=""))
    assert heading == [column.name for column in TABLE.columns]
    assert row[1:4] == ["7", "false", ""]
    assert json.loads(row[4]) == [text]
    assert found.count("\n") == 2
    assert [line.count("\t") for line in written("tsv", {"text": text}).splitlines()] == [4, 4]


@pytest.mark.parametrize("form", ["csv", "tsv"])
@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\x1b[2J", "a\tb", "a\nb", "\u202eb"])
def test_no_cell_is_a_formula_or_reaches_through(form: str, text: str) -> None:
    row = written(form, {"text": text, "count": -1}).splitlines()[1]
    cell, count = row.replace('"', "").split("\t" if form == "tsv" else ",")[:2]
    assert cell[0] not in "=+-@"
    assert row.replace("\t", "").isprintable()
    assert count == "-1"  # a number stays one


@given(st.dictionaries(st.sampled_from(["text", "names"]), st.just(None)), st.text(), st.integers())
def test_ndjson_is_one_line_of_ascii_a_row(row: dict[str, Any], text: str, count: int) -> None:
    found = written("ndjson", {**row, "text": text, "count": count, "holds": True}, row)
    assert found.isascii()
    first, second = map(json.loads, found.splitlines())
    assert (first["text"], first["count"], first["holds"]) == (text, count, True)
    assert second == NOTHING


@pytest.mark.parametrize(
    ("form", "data", "shown"),
    [
        ("text", b"key", "key"),
        ("text", b"\xff\x00", {"base64": "/wA="}),
        ("hex", b"\xff\x00", "ff00"),
        ("base64", b"key", "a2V5"),
    ],
)
def test_bytes_are_shown_as_asked(form: str, data: bytes, shown: object) -> None:
    row = json.loads(written("ndjson", {"data": data}, options=Options(bytes_form=form)))
    assert row["data"] == shown


def test_values_alone_have_no_heading_and_tabs_between() -> None:
    file = io.BytesIO()
    writer = DelimitedWriter(TABLE, file, Options(), "\t", "", heading=False)
    writer.write({**NOTHING, "text": "a", "count": 2})
    assert file.getvalue() == b"a\t2\t\t\t\n"


def test_a_format_that_there_is_not_names_the_nearest() -> None:
    with pytest.raises(LookupError, match="did you mean parquet"):
        table_writer("parket", TABLE, io.BytesIO())
    assert "csv" in FORMATS


@pytest.mark.parametrize("text", ["plain", "ä 世 😀", "\udcff", chr(0xD800), "\\\\ud800", 'a"b\n'])
@pytest.mark.parametrize("has_title", [False, True])
def test_rows_of_statistics_are_written_as_column_by_column(text: str, has_title: bool) -> None:
    table = (
        titled("cluster_topics", STATISTICS["cluster_topics"]) if has_title else STATISTICS["cluster_topics"]
    )
    row: dict[str, Any] = {column.name: None for column in STATISTICS["cluster_topics"].columns}
    row |= {"topic": text, "partitions": 3, "internal": False}
    file = io.BytesIO()
    NdjsonWriter(table, file).write(row)
    assert file.getvalue() == row_line(table, row, PLAIN)
