"""Where captures are: here, compressed, or in an object store."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lz4.frame
import pytest
import zstandard

import kdissect.spark
from kdissect.cli import main
from kdissect.model import CaptureError
from kdissect.spark.storage import InputFile, absent, list_files, open_file
from tests.spark.conftest import SOMEBODY
from tests.spark.cuts import cut
from tests.spark.objects import object_store
from tests.spark.same import CAPTURES, read_rows, spark_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BASIC = CAPTURES / "basic-kafka43.pcapng"
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "zst": zstandard.ZstdCompressor().compress,
    "lz4": lz4.frame.compress,
}


@pytest.fixture
def pieces(tmp_path: Path) -> list[Path]:
    """Rotated files, each compressed in another way and the last not at all."""
    files = cut(BASIC, tmp_path, 4)
    for file, (suffix, pack) in zip(files, PACKERS.items(), strict=False):
        file.with_suffix(f".pcap.{suffix}").write_bytes(pack(file.read_bytes()))
        file.unlink()
    return sorted(tmp_path.iterdir())


def test_compressed_files_give_the_same_rows(spark: SparkSession, pieces: list[Path]) -> None:
    assert len({piece.suffix for piece in pieces}) == 4
    frame = kdissect.spark.table(spark, pieces, "exchanges", tasks=2)
    assert spark_rows(frame) == read_rows("exchanges", pieces)


def test_uris_of_this_file_system_are_paths(tmp_path: Path) -> None:
    (tmp_path / "a b.pcap").write_bytes(b"1234")
    expected = [InputFile(str(tmp_path / "a b.pcap"), 4)]
    for uri in (f"file://{tmp_path}", f"file:{tmp_path}/a b.pcap", f"file://{tmp_path}/a%20b.pcap"):
        assert list_files([uri]) == expected, uri


@pytest.fixture
def store(pieces: list[Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name, value in SOMEBODY.items():
        monkeypatch.setenv(name, value)
    objects = {f"captures/point/{piece.name}": piece.read_bytes() for piece in pieces}
    objects |= {"captures/point/_temporary": b"", "captures/other": b"", "captures/folders/a/1.pcap": b""}
    with object_store(objects) as query:
        yield query


def test_an_object_store_is_listed_and_read(store: str, pieces: list[Path]) -> None:
    every = [InputFile(f"s3://captures/point/{p.name}?{store}", p.stat().st_size) for p in pieces]
    assert list_files([f"s3://captures/point?{store}"]) == every
    assert list_files([f"s3://captures/point/*.pcap*?{store}"]) == every
    assert list_files([every[0].path]) == every[:1]
    for file, piece in zip(every, pieces, strict=True):
        with open_file(file.path) as opened:
            assert opened.read() == piece.read_bytes()


def test_captures_in_an_object_store_give_the_same_rows(
    spark: SparkSession, store: str, pieces: list[Path]
) -> None:
    frame = kdissect.spark.table(spark, f"s3a://captures/point?{store}", "exchanges", tasks=2)
    assert spark_rows(frame) == read_rows("exchanges", pieces)


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("nowhere://x/y.pcap", "files may be at s3://, gs://, abfss://, hdfs://"),
        ("s3://captures/*.zip", "no file has such a name"),
        (
            "s3://captures/nothing/",
            "cannot be read: there is no such file or folder; check the bucket and the path",
        ),
        ("s3://captures/folders", "not searched; give the names of these folders"),
    ],
)
def test_what_cannot_be_reached_is_told_in_a_line(
    store: str, uri: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = f"?{store}" if uri.startswith("s3") else ""
    assert main(["spark", "batch", uri + query, "--out", str(tmp_path / "out")]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_what_to_check_is_told_of_each_file_system() -> None:
    assert absent("folder", "hdfs://name:8020/x") == "there is no such folder; check the path"
    assert absent("folder", "gs://b/x") == "there is no such folder; check the bucket and the path"


def test_a_password_in_a_uri_is_refused_and_not_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match="environment"):
        list_files(["s3://somebody:s3cr3t@captures/x.pcap"])
    assert main(["spark", "batch", "s3://somebody:s3cr3t@captures/x", "--out", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "s3cr3t" not in line
    assert "s3://…@captures/x" in line


def test_statistics_of_what_is_not_there_are_refused() -> None:
    """Before, they had no rows."""
    nobody: Any = object()  # is not asked
    with pytest.raises(CaptureError, match=r"^/nowhere\.pcap: cannot be read: No such file or directory$"):
        kdissect.spark.stats(nobody, "/nowhere.pcap", "srt")
    with pytest.raises(CaptureError, match=r"^/nowhere\.pcap: cannot be read: No such file or directory$"):
        kdissect.spark.findings(nobody, "/nowhere.pcap")


def test_what_is_not_there_is_told_when_it_is_read() -> None:
    with pytest.raises((CaptureError, OSError)):
        open_file("/nowhere.pcap")
