"""Modules and objects that are imported or made later, and modules that a start must not import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kdissect.lazy import Later, Made

DEAR = [
    *("crc32c", "cramjam", "ctypes", "decimal", "dpkt", "email", "hashlib", "lz4", "numpy", "re2", "scapy"),
    *("snappy", "statistics", "subprocess", "tomllib", "zstandard"),
]
"""Modules that take long to import, and that a capture without packets does not need."""


def test_a_value_is_made_once_when_it_is_asked_for() -> None:
    made: list[str] = []

    def make(key: str) -> str:
        made.append(key)
        return key.upper()

    found = Made(("b", "a"), make)
    assert list(found) == ["b", "a"]
    assert len(found) == 2
    assert "a" in found
    assert "c" not in found
    assert made == []
    assert (found["a"], found["a"]) == ("A", "A")
    assert made == ["a"]
    assert found.get("c") is None
    assert made == ["a"]


def test_a_module_has_its_attributes_when_they_are_asked_for() -> None:
    text = Later("string")
    assert "string" not in vars(text)
    assert text.digits == "0123456789"
    assert "digits" in vars(text)
    assert text.digits == "0123456789"


def test_what_is_not_there_is_missing_when_it_is_asked_for() -> None:
    nowhere = Later("kdissect_has_no_such_module")
    with pytest.raises(ImportError):
        assert nowhere.anything
    with pytest.raises(AttributeError):
        assert Later("string").anything


def test_a_part_is_loaded_without_its_package() -> None:
    code = (
        "import sys; from kdissect.lazy import Later; found = Later('crc32c', '_crc32c'); "
        "print(found.crc32c(b'123456789'), 'crc32c' in sys.modules); "
        "import crc32c; print(crc32c.crc32c(b'123456789'), found.CRC32CHash is crc32c.CRC32CHash)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["3808858755", "False", "3808858755", "True"]


def test_where_there_is_no_such_part_the_package_is_imported() -> None:
    assert Later("string", "_part").digits == "0123456789"
    assert Later("json", "_part").loads("1") == 1
    with pytest.raises(ImportError):
        assert Later("kdissect_has_no_such_module", "_part").anything


def test_a_start_imports_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    path = tmp_path / "empty.pcap"
    path.write_bytes(
        bytes.fromhex("4d3cb2a1020004000000000000000000") + (65_535).to_bytes(4, "little") + b"\1\0\0\0"
    )
    code = (
        "import sys; before = {*sys.modules}; from kdissect.cli import main; "
        f"main(['read', '-q', '--jobs', '1', {str(path)!r}]); "
        f"print(*({{*sys.modules}} - before) & {{*{DEAR!r}}})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_a_live_capture_loads_rules_only_for_who_asks_for_findings() -> None:
    code = (
        "import sys; import kdissect.cli.commands.live; "
        "print(*(each for each in sys.modules if each.startswith('kdissect.insight.rules')))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []
