"""Folders of an object store that is reached only with what a URI says behind its ``?``."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from kdissect.spark import cleaning, folders, storage, writing
from kdissect.spark.cleaning import clear
from kdissect.spark.compaction import compact
from kdissect.spark.plan import point_of
from kdissect.spark.renamed_files import twins
from kdissect.spark.replay import new_pass
from kdissect.spark.settings import TableSettings
from kdissect.spark.sinks import FileSink
from kdissect.spark.spool import SpoolRead
from kdissect.spark.states import States
from kdissect.spark.storage import files_below, folders_in, is_inside, join, name_below
from kdissect.spark.stream_state import Carried
from kdissect.spark.target_files import Staged
from kdissect.spark.targets import ParquetFolder

QUERY = "endpoint_override=http://127.0.0.1:9000/&scheme=http"
SCHEMA = pa.schema([("number", pa.int64())])


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is in ``s3://bucket``."""
    made = tmp_path / "bucket"
    made.mkdir()

    def file_system(uri: str) -> tuple[fs.FileSystem, str]:
        place = urlsplit(uri)
        assert place.query == QUERY, uri
        (tmp_path / f"{place.netloc}{place.path}").parent.mkdir(parents=True, exist_ok=True)  # none is needed
        return fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), place.netloc + place.path

    for module in (cleaning, folders, storage, writing):
        monkeypatch.setattr(module, "file_system", file_system)
    return made


def uri(name: str) -> str:
    return f"s3://bucket/{name}?{QUERY}"


def below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def numbers(folder: Path) -> list[int]:
    found = [pq.ParquetFile(path).read()["number"].to_pylist() for path in sorted(folder.rglob("*.parquet"))]
    return [number for each in found for number in each]


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("/tables", "/tables/a/b"),
        ("/tables/", "/tables/a/b"),
        ("/", "/a/b"),
        ("/what?", "/what?/a/b"),
        ("file:///tables", "file:///tables/a/b"),
        ("s3://bucket", "s3://bucket/a/b"),
        ("s3://bucket/tables/", "s3://bucket/tables/a/b"),
        ("s3://bucket/tables/?scheme=http", "s3://bucket/tables/a/b?scheme=http"),
    ],
)
def test_a_name_stands_before_the_query(folder: str, expected: str) -> None:
    assert join(folder, "a/b") == expected
    assert name_below(folder, expected) == "a/b"


@pytest.mark.parametrize(
    ("path", "folder", "expected"),
    [
        ("/a/b", "/a", True),
        ("/a/b", "/a/b/", True),
        ("/ab", "/a", False),
        ("file:///a/b", "/a", True),
        ("s3://a/b?scheme=http", "s3://a?scheme=http", True),
        ("s3a://a/b", "s3://a/?region=x", True),
        ("s3://ab", "s3://a", False),
        ("s3://a/b", "/a", False),
    ],
)
def test_what_is_in_a_folder(path: str, folder: str, expected: bool) -> None:
    assert is_inside(path, folder) is expected


def test_twins_and_capture_points_are_those_of_the_path() -> None:
    assert twins(uri("a.pcap.gz")) == [uri(f"a.pcap{ending}") for ending in ("", ".zst", ".lz4")]
    assert point_of(uri("one/a.pcap"), "directory") == "s3://bucket/one"
    assert point_of(uri("one/a.pcap"), "([a-z]+)$") == "pcap"


def test_tables_are_written_there(bucket: Path) -> None:
    target = ParquetFolder(uri("tables"))
    for run in (None, 3):
        sink = FileSink(join(target.where, "_staged-1"), "exchanges", 0, SCHEMA, [], is_first=True)
        sink.write(pa.record_batch([[1, 2]], schema=SCHEMA))
        file = sink.close()
        assert file is not None
        staged = Staged(join(target.where, "_staged-1/exchanges"), (file.path,), SCHEMA)
        target.write(staged, "exchanges", (), run, overwrite=False)
        place = bucket / "tables" / "exchanges" / ("" if run is None else f"run={run}")
        assert (numbers(place), (place / "_SUCCESS").exists()) == ([1, 2], True)
        target.remove("exchanges", 3)
        assert target.has("exchanges")
        assert not target.has("records")
    assert [name for name in below(bucket) if "_staged" in name] == []


def test_tables_are_found_there(bucket: Path, tmp_path: Path) -> None:
    for name in ("exchanges", "stats/srt", "_runs"):
        (bucket / "tables" / name).mkdir(parents=True)
    (bucket / "tables" / "file").touch()
    for place in (uri("tables"), str(bucket / "tables")):
        assert folders_in(place) == ["exchanges", "stats"]
    for place in (uri("nowhere"), str(tmp_path / "nowhere")):
        with pytest.raises(FileNotFoundError):
            folders_in(place)


def test_folders_of_batches_become_one_there(bucket: Path) -> None:
    for batch in range(33):
        folder = bucket / "tables" / "exchanges" / f"batch={batch}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"number": [batch]}, SCHEMA), folder / "part-0.parquet")
    compact(uri("tables/exchanges"), 32)
    assert sorted(path.name for path in (bucket / "tables" / "exchanges").iterdir()) == [
        "batch=31",
        "batch=32",
    ]
    assert numbers(bucket / "tables" / "exchanges") == list(range(33))


def test_captures_that_were_read_move_there(bucket: Path) -> None:
    for name in ("in/a/1.pcap", "done/a/1.pcap"):
        (bucket / name).parent.mkdir(parents=True)
        (bucket / name).write_text(name)
    (path, found), *_ = files_below(uri("in")).items()
    assert path == uri("in/a/1.pcap")
    clear({path: SpoolRead(found.size, True, 1)}, uri("in"), f"move:{uri('done/')}")
    assert below(bucket) == ["done/a/1.pcap", "done/a/1.pcap.1"]
    assert (bucket / "done/a/1.pcap.1").read_text() == "in/a/1.pcap"


def test_states_are_there(bucket: Path) -> None:
    states = States(join(uri("checkpoint/"), "state"), b"k" * 32)
    states.prepare()
    states.save("one", 0, Carried(new_pass(TableSettings()), packets=7))
    found = states.load("one", 1)
    assert found is not None
    assert (found.packets, [name.split("/")[:3] for name in below(bucket)]) == (
        7,
        [["checkpoint", "state", "0"]],
    )
