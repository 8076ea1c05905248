"""Requests and responses as JSON text for cells: the text of their objects, however it is made."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import pytest

import kdissect
from kdissect.exchange import Exchange
from kdissect.present.body import side_object
from kdissect.present.columns import EXCHANGES, Table
from kdissect.present.message_json import MessageJson
from kdissect.present.options import PLAIN, Options
from kdissect.present.writers import table_writer
from kdissect.protocol.json_form import dumps

CAPTURES = sorted(Path(__file__).parents[2].glob("captures/*.pcap*"))

SIDES = ("request", "response")


def exchanges(path: Path) -> list[Exchange]:
    return list(kdissect.read(path))


@pytest.mark.parametrize(
    "options",
    [PLAIN, PLAIN._replace(records=True), PLAIN._replace(embedded=True), PLAIN._replace(show_secrets=True)],
    ids=["plain", "records", "embedded", "secrets"],
)
def test_a_text_is_that_of_the_object(options: Options) -> None:
    messages, seen = MessageJson(options), 0
    for path in CAPTURES:
        for exchange in exchanges(path):
            for side in SIDES:
                known = side_object(exchange, side, options)
                wanted = None if known is None else dumps(known)
                assert messages.text(side, exchange, options) == wanted, (path.name, exchange.number, side)
                seen += wanted is not None
    assert seen > 1_000


def test_a_column_that_was_told_to_hold_no_message_holds_none() -> None:
    """Spark's tables have columns of the same names in which bodies are left out."""
    columns = [
        column._replace(value=lambda *_: None) if column.name == "request" else column
        for column in EXCHANGES.select(["number", *SIDES]).columns
    ]
    file = io.BytesIO()
    writer = table_writer("csv", Table(EXCHANGES.name, tuple(columns)), file)
    for exchange in exchanges(CAPTURES[0])[:20]:
        writer.write(exchange)
    csv.field_size_limit(sys.maxsize)
    rows = list(csv.DictReader(io.StringIO(file.getvalue().decode())))
    assert {row["request"] for row in rows} == {""}
    assert all(row["response"].startswith('{"header":') for row in rows)
