"""Records in columns: the same rows as one by one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from kdissect.dissect import Event
from kdissect.spark.progress import Note
from kdissect.spark.replay import all_events
from kdissect.spark.row_filter import Choice
from kdissect.spark.rows import PointRows, batches_of
from kdissect.spark.settings import TableSettings
from tests.amount import some
from tests.spark.same import CAPTURES

ONE_BY_ONE = "head:1000000000"
"""A setting that changes no row, and with which none comes in columns."""
ALL = sorted(path.name for path in CAPTURES.glob("*.pcap*"))


def events_of(path: Path) -> list[Event]:
    return list(all_events([str(path)], TableSettings(), Note(None, "")))


def made(events: list[Event], settings: TableSettings) -> pa.Table:
    table = settings.chosen_table()
    batches = list(batches_of(events, table, "here", settings, Choice(settings), Note(None, "")))
    return pa.Table.from_batches(batches, PointRows(table, "", settings, Choice(settings)).schema)


@pytest.mark.parametrize("name", some(ALL, 4, "basic-kafka43.pcapng", "transactions-kafka39.pcapng"))
def test_records_in_columns_are_those_made_one_by_one(name: str) -> None:
    events = events_of(CAPTURES / name)
    for settings in (
        TableSettings(table="records"),
        TableSettings(table="records", places=True, capture_point="(a)"),
    ):
        assert made(events, settings).equals(made(events, settings._replace(payload=ONE_BY_ONE)))


def test_whole_batches_come_in_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    events = events_of(CAPTURES / "basic-kafka43.pcapng")
    expected = made(events, TableSettings(table="records", payload=ONE_BY_ONE))
    monkeypatch.setattr("kdissect.spark.rows.sources_of", None)  # what makes rows one by one
    assert made(events, TableSettings(table="records")).equals(expected)


def test_where_rows_are_left_out_or_cut_they_are_made_one_by_one() -> None:
    events = events_of(CAPTURES / "basic-kafka43.pcapng")
    whole = made(events, TableSettings(table="records"))
    cut = made(events, TableSettings(table="records", payload="head:1"))
    assert cut.drop_columns(["key", "value", "headers"]).equals(
        whole.drop_columns(["key", "value", "headers"])
    )
    assert {len(value) for value in cut["value"].to_pylist() if value is not None} <= {0, 1}
    chosen = made(events, TableSettings(table="records", filter="record.offset == 0"))
    assert 0 < chosen.num_rows < whole.num_rows
    assert set(chosen["offset"].to_pylist()) == {0}


def test_any_columns_may_be_chosen() -> None:
    events = events_of(CAPTURES / "basic-kafka43.pcapng")
    whole = made(events, TableSettings(table="records"))
    for names in (*((name,) for name in whole.column_names), ("headers", "offset", "codec")):
        assert made(events, TableSettings(table="records", columns=names)).equals(whole.select(names)), names
