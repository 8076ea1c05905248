"""How the screens were left, from one run to the next."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from kdissect.settings.session import LastSession, load, save

LEFT = LastSession(
    *("latency", "api == Fetch", ("number", "api"), ("latency_ns", True), 7),
    (("groups", "list", 5), ("groups", "members", 12)),
    (("topics", "Lag", True),),
    60,
    (("topics", "group"), ("cluster", "settings")),
)


def test_what_is_kept_comes_back_and_only_the_user_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "state" / "screens.json"
    save(path, LEFT)
    assert load(path) == LEFT
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["screens.json"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"page": "nowhere", "share": 99, "sort": [1], "columns": [1], "filter": 3}',
        '{"heights": [["groups", "list", 0], ["x", "list", 5], 3], "orders": [["groups", "Group", 1]]}',
        '{"bytes_percent": 99, "groupings": [["nowhere", "group"], ["topics"], ["topics", 1], [[], "x"]]}',
        '{"bytes_percent": true, "share": 5.0, "groupings": {"topics": "group"}}',
        "[" * 9_999,
    ],
)
def test_what_is_not_understood_is_as_nothing(text: str, tmp_path: Path) -> None:
    path = tmp_path / "screens.json"
    path.write_text(text)
    assert load(path) == LastSession()


def test_what_cannot_be_written_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    save(tmp_path / "file" / "screens.json", LEFT)
    assert load(tmp_path / "none") == LastSession()
