"""Hadoop's file system, as far as it goes without one. ``tests.spark.stores --store hdfs`` has one."""

from __future__ import annotations

from socket import create_server
from typing import Any

import pytest
from pyarrow import fs

from kdissect.model import CaptureError
from kdissect.spark import folders, hdfs
from kdissect.spark.folders import small_files
from kdissect.spark.storage import list_files


def test_who_does_not_answer_is_told_in_one_line_and_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("hdfs_native")
    with create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(
        CaptureError, match=rf"^hdfs://127\.0\.0\.1:{port}/x: cannot be listed: Connection refused"
    ):
        list_files([f"hdfs://127.0.0.1:{port}/x"])
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    with pytest.raises(CaptureError, match=r"^hdfs:///x: .*fs\.defaultFS"):
        list_files(["hdfs:///x"])


def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(uri: str) -> Any:
        raise OSError(f"{uri}: Unable to load libhdfs")

    class FileSystem:
        from_uri = staticmethod(nothing)

    monkeypatch.setattr(hdfs, "find_spec", lambda _: None)
    monkeypatch.setattr(fs, "FileSystem", FileSystem)
    with pytest.raises(CaptureError, match=r"^hdfs://host/x: hdfs:// needs hdfs-native: pip install"):
        list_files(["hdfs://host/x"])


def test_a_file_gets_its_name_when_it_is_whole(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others see what is being written."""
    seen: list[list[str]] = []

    class Seen:
        """A folder whose files are looked at before they are renamed."""

        def __init__(self) -> None:
            self._local = fs.LocalFileSystem()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._local, name)

        def move(self, old: str, new: str) -> None:
            seen.append(files.names())
            self._local.move(old, new)

    monkeypatch.setattr(folders, "file_system", lambda uri: (Seen(), str(tmp_path)))
    files = small_files("hdfs://host/x")
    for text in (b"1\n2", b"1\n3"):
        files.write("3/a.state", text)
    assert seen == [[], ["3/a.state"]]
    assert files.names() == ["3/a.state"]
    assert files.read("3/a.state") == b"1\n3"
    (tmp_path / "3" / "b.state.7~").touch()
    assert files.names() == ["3/a.state"]
    files.tidy()
    assert [path.name for path in tmp_path.iterdir()] == ["3"]
    assert [path.name for path in (tmp_path / "3").iterdir()] == ["a.state"]
    files.remove("3/a.state")
    files.tidy()
    assert not list(tmp_path.iterdir())


def test_what_hadoop_refuses_is_told_without_its_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    native = pytest.importorskip("hdfs_native.fsspec")

    def refuse(*_: object) -> None:
        raise RuntimeError('RPCError("AccessControlException", "Permission denied: user=me\\n\\tat Server")')

    monkeypatch.setattr(native.HdfsFileSystem, "info", refuse)
    hdfs._native.cache_clear()
    with pytest.raises(CaptureError, match=r"Permission denied: user=me$"):
        list_files(["hdfs://127.0.0.1:2/x"])
    hdfs._native.cache_clear()
