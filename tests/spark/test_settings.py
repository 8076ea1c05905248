"""The options of the data source."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.limits import DEFAULTS
from kdissect.spark.settings import Settings

CHOSEN = Settings(
    table="records",
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
    progress="notes",
)


def test_settings_are_text_and_come_back() -> None:
    options = CHOSEN.options()
    assert all(isinstance(value, str) for value in options.values())
    assert Settings.of(options) == CHOSEN
    assert Settings().options() == {}


def test_names_count_without_case_and_underscores() -> None:
    assert Settings.of({"CapturePoint": "directory", "twopass": "TRUE"}) == Settings(
        capture_point="directory", two_pass=True
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tabel": "records"}, "did you mean table"),
        ({"table": "exchange"}, "did you mean exchanges"),
        ({"limits": "conections=3"}, "did you mean connections"),
        ({"limits": {"connections": "many"}}, "whole number"),
        ({"ports": "99999"}, "1 to 65535"),
        ({"payload": "head:"}, "head:N"),
        ({"tasks": "0"}, "above 0"),
        ({"records": "yes"}, "true or false"),
        ({"topics": "orders"}, "JSON"),
    ],
)
def test_what_is_wrong_is_told(options: dict[str, Any], words: str) -> None:
    with pytest.raises((LookupError, ValueError), match=words):
        Settings.of(options)
