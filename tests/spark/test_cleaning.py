"""What becomes of captures that a stream has read."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdissect.spark.cleaning import clear, destination
from kdissect.spark.spool import SpoolRead


def position(folder: Path) -> dict[str, SpoolRead]:
    """All of them are read to their end but the last, which more may come of."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path): SpoolRead(path.stat().st_size, path != paths[-1], at) for at, path in enumerate(paths)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    for name in ("a/1.pcap", "a/2.pcap", "b/1.pcap"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(name)
    return made


def left(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_captures_stay_where_nobody_asks(folder: Path) -> None:
    clear(position(folder), str(folder), "keep")
    assert left(folder) == ["a/1.pcap", "a/2.pcap", "b/1.pcap"]


def test_what_was_read_to_its_end_goes(folder: Path) -> None:
    read = position(folder)
    for _ in range(2):
        clear(read, str(folder), "delete")
        assert left(folder) == ["b/1.pcap"]


def test_what_has_grown_since_stays(folder: Path) -> None:
    read = position(folder)
    (folder / "a/1.pcap").write_text("more than there was")
    clear(read, str(folder), "delete")
    assert left(folder) == ["a/1.pcap", "b/1.pcap"]


def test_it_moves_and_no_file_is_lost_by_it(folder: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    (old / "a").mkdir(parents=True)
    (old / "a/1.pcap").write_text("of the ring before")
    clear(position(folder), str(folder), f"move:{old}")
    assert left(folder) == ["b/1.pcap"]
    assert left(old) == ["a/1.pcap", "a/1.pcap.1", "a/2.pcap"]
    assert (old / "a/1.pcap").read_text() == "of the ring before"
    assert (old / "a/1.pcap.1").read_text() == "a/1.pcap"


@pytest.mark.parametrize("when_read", ["delete", "move:old"])
def test_a_folder_that_could_not_be_listed_stays(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when_read: str
) -> None:
    monkeypatch.chdir(tmp_path)
    clear({str(folder / "a"): SpoolRead(0, True, 0)}, str(folder), when_read)
    assert left(folder) == ["a/1.pcap", "a/2.pcap", "b/1.pcap"]
    assert not (tmp_path / "old").exists()


@pytest.mark.parametrize("text", ["", "move", "move:", "burn"])
def test_what_is_not_understood_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="keep, delete or move:DIR"):
        destination(text)
