"""Runs that add to the same tables ask for the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdissect.spark.run_request import difference, first, stored_request
from kdissect.spark.settings import TableSettings

USUAL = stored_request(("exchanges", "faults"), ("date",), TableSettings(capture_point="directory"))


@pytest.mark.parametrize(
    ("tables", "by", "settings", "line"),
    [
        (("faults", "exchanges"), ("date",), TableSettings(capture_point="directory"), None),
        (
            ("exchanges",),
            ("date",),
            TableSettings(capture_point="directory"),
            "--table is exchanges; give exchanges, faults",
        ),
        (
            ("exchanges", "faults"),
            (),
            TableSettings(capture_point="directory"),
            "--partition-by is not given; give date",
        ),
        (("exchanges", "faults"), ("date",), TableSettings(), "--capture-point is not given; give directory"),
        (
            ("exchanges", "faults"),
            ("date",),
            TableSettings(capture_point="directory", ports=frozenset((1, 2))),
            "-d is 1,2; leave it out",
        ),
        (
            ("exchanges", "faults"),
            ("date",),
            TableSettings(capture_point="directory", keylog=("new",), tasks=2, progress="x"),
            None,
        ),
    ],
)
def test_what_changed_is_told(
    tables: tuple[str, ...], by: tuple[str, ...], settings: TableSettings, line: str | None
) -> None:
    assert difference(USUAL, stored_request(tables, by, settings)) == line


def test_what_an_older_release_kept_of_key_logs_is_no_change() -> None:
    kept = {**USUAL, "options": {**USUAL["options"], "keylog": "a"}}
    assert difference(kept, USUAL) is None


def test_the_first_is_kept(tmp_path: Path) -> None:
    path = str(tmp_path)
    assert first(path, USUAL) == USUAL
    assert first(path, stored_request((), (), TableSettings())) == USUAL
    assert (tmp_path / "asked.json").stat().st_mode & 0o777 == 0o600
    for text in ("{", "[]", "{}", '{"tables": 1, "by": [], "options": {}}'):
        (tmp_path / "asked.json").write_text(text)
        with pytest.raises(OSError, match="damaged"):
            first(path, USUAL)
