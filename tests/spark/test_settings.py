"""The options of the data source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kdissect.limits import DEFAULTS
from kdissect.spark.settings import TableSettings

CHOSEN = TableSettings(
    table="records",
    columns=("api", "count"),
    places=True,
    ports=frozenset((9092, 29092)),
    payload="head:12",
    capture_point=r"broker-(\d+)",
    filter="api == Fetch",
    records=True,
    two_pass=True,
    topics={"lVhqmGaYRoKUVMnTbJRSXA": "orders"},
    limits=DEFAULTS._replace(connections=7, frame_bytes=1_000),
    tasks=3,
    keylog=("a.log", "b.log"),
    rsa_key=("a.pem", "b.pem"),
    schemas=("one", "two"),
    decode_as=("orders=json", "*:key=int64"),
    progress="notes",
)


def test_settings_are_text_and_come_back() -> None:
    for chosen in (CHOSEN, CHOSEN._replace(table="exchanges", stats="srt,client_id")):
        options = chosen.options()
        assert all(isinstance(value, str) for value in options.values())
        assert TableSettings.of(options) == chosen
    assert TableSettings().options() == {}


def test_names_count_without_case_and_underscores() -> None:
    assert TableSettings.of({"CapturePoint": "directory", "twopass": "TRUE"}) == TableSettings(
        capture_point="directory", two_pass=True
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tabel": "records"}, "did you mean table"),
        ({"table": "exchange"}, "did you mean exchanges"),
        ({"table": "nope"}, "there is no table 'nope'; there are exchanges, records, connections, faults"),
        ({"limits": "conections=3"}, "did you mean connections"),
        ({"limits": {"connections": "many"}}, "whole number"),
        ({"ports": "99999"}, "1 to 65535"),
        ({"payload": "head:"}, "head:N"),
        ({"tasks": "0"}, "above 0"),
        ({"records": "yes"}, "true or false"),
        ({"topics": "orders"}, "JSON"),
        ({"columns": "api,number,api"}, "columns: api is named twice"),
        ({"table": "faults", "layer": "flie"}, "there is no layer 'flie'; there are file, link, tcp"),
        ({"layer": "file"}, "layer: only the table faults has this option"),
        (
            {"table": "faults", "layer": "file", "stats": "srt"},
            "layer: only the table faults has this option",
        ),
        ({"table": "records", "stats": "srt"}, "stats and table: srt and records are two tables; name one"),
    ],
)
def test_what_is_wrong_is_told(options: dict[str, Any], words: str) -> None:
    with pytest.raises((LookupError, ValueError), match=words):
        TableSettings.of(options)


def test_what_decodes_keys_and_values_is_made_of_folders_and_rules(tmp_path: Path) -> None:
    settings = TableSettings.of({"schemas": str(tmp_path), "decodeAs": "*:key=hex"})
    assert settings.shown.payloads is not None
    assert settings.shown.payloads.decode("t", "key", b"k").value == "6b"
    assert "valueFormat" in settings.full_table("records").words()
    assert "valueFormat" not in TableSettings().full_table("records").words()
    for wrong in ({"schemas": "/no/where"}, {"decode_as": "t=nothing"}):
        with pytest.raises(ValueError, match=r"not there|no form"):
            TableSettings.of(wrong).shown  # noqa: B018 - making it is what fails
