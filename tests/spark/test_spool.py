"""Which bytes of a folder are read next."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kdissect.spark.spool import SpoolFolder
from tests.spark.same import CAPTURES

CAPTURE = (CAPTURES / "broker-0.9.pcap").read_bytes()
ZIPPED = gzip.compress(CAPTURE, mtime=0)


@pytest.mark.parametrize(
    "begun", [b"", CAPTURE[:3], CAPTURE[:12], CAPTURE[:30], ZIPPED[:3], ZIPPED[:90]], ids=len
)
def test_a_capture_that_is_begun_waits(tmp_path: Path, begun: bytes) -> None:
    (tmp_path / "a.pcap").write_bytes(CAPTURE)
    (tmp_path / "b.pcap").write_bytes(begun)
    position = SpoolFolder(str(tmp_path)).next({})
    assert list(position) == [str(tmp_path / "a.pcap")]
    (tmp_path / "b.pcap").write_bytes(ZIPPED if begun[:1] == b"\x1f" else CAPTURE)
    assert set(SpoolFolder(str(tmp_path)).next(position)) == {
        str(tmp_path / "a.pcap"),
        str(tmp_path / "b.pcap"),
    }


@pytest.mark.parametrize(
    "content", [b"garbage", b"garbage" * 99, gzip.compress(b"garbage", mtime=0), ZIPPED[:20] + bytes(99)]
)
def test_what_is_no_capture_is_read_at_once(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.pcap").write_bytes(CAPTURE)
    (tmp_path / "b.pcap").write_bytes(content)
    position = SpoolFolder(str(tmp_path)).next({})
    assert position[str(tmp_path / "b.pcap")].is_final


def test_where_nothing_is_to_be_read_there_is_no_batch(tmp_path: Path) -> None:
    """Not even where files are gone: a batch that reads nothing leaves no state, and would be taken for the
    place of what ``--close`` writes."""
    (tmp_path / "a.pcap").write_bytes(CAPTURE)
    position = SpoolFolder(str(tmp_path)).next({})
    (tmp_path / "a.pcap").unlink()
    assert SpoolFolder(str(tmp_path)).next(position) == position
