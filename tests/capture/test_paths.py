"""Completing paths, and the captures of a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdissect.capture.paths import captures_in, completed, is_capture_name


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("a.pcap", True),
        ("a.PCAPNG", True),
        ("a.pcapng.gz", True),
        ("a.pcap.zst", True),
        ("a.pcap3", True),
        ("a.pcap.12", True),
        ("a.cap", True),
        ("a.txt", False),
        ("a.gz", False),
        ("pcap", False),
        ("a.12", False),
    ],
)
def test_names_of_captures(name: str, is_one: bool) -> None:
    assert is_capture_name(name) is is_one


def test_a_folder_lists_its_captures_then_its_folders(tmp_path: Path) -> None:
    for name in ("b.pcap", "a.pcapng", "notes.txt", ".hidden.pcap"):
        (tmp_path / name).touch()
    (tmp_path / "more.pcap").mkdir()
    assert captures_in(str(tmp_path)) == [
        f"{tmp_path}/a.pcapng",
        f"{tmp_path}/b.pcap",
        f"{tmp_path}/more.pcap/",
    ]
    with pytest.raises(OSError, match="No such file"):
        captures_in(str(tmp_path / "none"))


def test_a_path_goes_on_as_far_as_there_is_one_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("kafka-1.pcap", "kafka-2.pcap", "kafka.txt", "other.bin", ".x"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    at = f"{tmp_path}/"
    assert completed(f"{at}k") == (f"{at}kafka-", [f"{at}kafka-1.pcap", f"{at}kafka-2.pcap"])
    assert completed(f"{at}kafka-1") == (f"{at}kafka-1.pcap", [f"{at}kafka-1.pcap"])
    assert completed(f"{at}fo") == (f"{at}folder/", [f"{at}folder/"])
    assert completed(f"{at}oth") == (f"{at}other.bin", [f"{at}other.bin"])
    assert completed(f"{at}zzz") == (f"{at}zzz", [])
    assert completed("/no/such/x") == ("/no/such/x", [])
    monkeypatch.chdir(tmp_path)
    assert completed("fo") == ("folder/", ["folder/"])
    monkeypatch.setenv("HOME", str(tmp_path))
    assert completed("~/fo") == ("~/folder/", ["~/folder/"])
