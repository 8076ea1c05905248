"""Filters that are kept from run to run."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path

import pytest

from kdissect.filter.compiled import compile_filter
from kdissect.present.options import Options
from kdissect.settings.remembered import MOST_USED, Remembered


def test_what_was_used_is_there_the_next_time_each_once_and_the_newest_last(tmp_path: Path) -> None:
    path = tmp_path / "state" / "filters"
    first = Remembered(path)
    for text in ("error", "api == Fetch", "error"):
        first.use(compile_filter(text))
    assert first.used == Remembered(path).used == ["api == Fetch", "error"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [each.name for each in path.parent.iterdir()] == ["filters"]


def test_two_that_run_at_once_keep_what_both_used(tmp_path: Path) -> None:
    path = tmp_path / "filters"
    one, other = Remembered(path), Remembered(path)
    one.use(compile_filter("error"))
    other.use(compile_filter("latency"))
    assert Remembered(path).used == ["error", "latency"]


def test_no_more_are_kept_than_so_many(tmp_path: Path) -> None:
    path = tmp_path / "filters"
    path.write_text("".join(f"number == {n}\n" for n in range(MOST_USED + 50)))
    kept = Remembered(path)
    assert len(kept.used) == MOST_USED
    kept.use(compile_filter("error"))
    assert len(kept.used) == len(path.read_text().splitlines()) == MOST_USED
    assert kept.used[-1] == "error"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('saslAuthenticate.request.authBytes contains "hunter2"', Options()),
        ('describeConfigs.response.results.configs.value == "hunter2"', Options()),
        ('record.value contains "hunter2"', Options(show_secrets=True)),
    ],
)
def test_what_may_hold_a_secret_is_not_written(text: str, options: Options, tmp_path: Path) -> None:
    path = tmp_path / "filters"
    kept = Remembered(path)
    kept.use(compile_filter("error"))
    kept.use(compile_filter(text, options))
    assert kept.used == ["error", text]  # this run may go back to it
    kept.use(compile_filter("latency"))
    assert path.read_text() == "error\nlatency\n"


def test_a_damaged_file_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "filters"
    path.write_bytes(b"error\n\xff\xfe\x1b[2J\n\n" + b"x" * 10_000 + b"\nlatency\n")
    assert Remembered(path).used == ["error", "latency"]
    (tmp_path / "named.toml").write_text("this is = = no toml")
    assert Remembered(None, tmp_path / "named.toml").named == {}


def test_a_folder_that_cannot_be_written_to_keeps_nobody_from_filtering(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = Remembered(tmp_path / "file" / "filters")
    kept.use(compile_filter("error"))
    assert kept.used == ["error"]


@pytest.mark.parametrize("name", ["slow ones", 'a"b\\c', "é\x7f\t", "[x]", "a = b", ""])
def test_a_name_of_any_characters_brings_its_filter_back(name: str, tmp_path: Path) -> None:
    path = tmp_path / "kdissect" / "filters.toml"
    kept = Remembered(None, path, {"given": "error"})
    kept.save("other", compile_filter("latency"))
    kept.save(name, compile_filter('client_id == "a\\"b"'))
    assert Remembered(None, path).named == {"other": "latency", name: 'client_id == "a\\"b"'}
    assert kept.named["given"] == "error"
    assert tomllib.loads(path.read_text(encoding="utf-8"))[name] == 'client_id == "a\\"b"'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_configurations_names_hold(tmp_path: Path) -> None:
    kept = Remembered(None, tmp_path / "f.toml", {"slow": "latency > 1s"})
    kept.save("slow", compile_filter("latency > 5s"))
    assert kept.named["slow"] == "latency > 1s"


def test_that_it_cannot_be_saved_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        Remembered(None, tmp_path / "file" / "filters.toml").save("x", compile_filter("error"))
