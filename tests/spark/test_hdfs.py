"""Hadoop's file system, as far as it goes without one. ``tests.spark.stores --store hdfs`` has one."""

from __future__ import annotations

from collections.abc import Iterator
from socket import create_server
from types import SimpleNamespace
from typing import Any

import pytest
from pyarrow import fs

from kdissect.model import CaptureError
from kdissect.spark import folders, hdfs
from kdissect.spark.folders import small_files
from kdissect.spark.storage import files_below, list_files

ROOT = "hdfs://127.0.0.1:2/x"


class FakeClient:
    """What hdfs_native has of a file system whose files are in a dictionary."""

    files: dict[str, bytes]
    broken: set[str]
    """The paths of which Hadoop refuses to tell anything."""
    made: list[tuple[str, int | None]]
    """Each file and folder that was made, and its permissions."""
    deleted: list[str]

    def __init__(self, url: str, options: dict[str, str]) -> None:
        pass

    def get_file_info(self, path: str) -> Any:
        self._refuse(path)
        path = path.rstrip("/")
        if path in self.files:
            return self._status(path, False)
        if any(each.startswith(f"{path}/") for each in self.files):
            return self._status(path, True)
        raise FileNotFoundError(path)

    def list_status(self, path: str, recursive: bool) -> Iterator[Any]:
        assert not recursive
        self._refuse(f"{path}/*")
        path = path.rstrip("/")
        inside = {
            each[len(path) + 1 :].partition("/")[0] for each in self.files if each.startswith(f"{path}/")
        }
        return iter([self.get_file_info(f"{path}/{name}") for name in sorted(inside)])

    def delete(self, path: str, recursive: bool) -> bool:
        self.deleted.append(path)
        return True

    def _refuse(self, path: str) -> None:
        if path in self.broken:
            raise RuntimeError("no DataNode answers\\n\\tat Server")

    def _status(self, path: str, isdir: bool) -> Any:
        times = {"modification_time": 1_000, "access_time": 0}
        who = {"permission": 0, "owner": "me", "group": "us"}
        return SimpleNamespace(path=path, length=len(self.files.get(path, b"")), isdir=isdir, **times, **who)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[FakeClient]]:
    """In place of Hadoop."""
    native = pytest.importorskip("hdfs_native.fsspec")
    monkeypatch.setattr(native, "Client", FakeClient)
    FakeClient.files, FakeClient.broken, FakeClient.made, FakeClient.deleted = {}, set(), [], []
    hdfs._native.cache_clear()
    yield FakeClient
    hdfs._native.cache_clear()


def test_a_folder_that_cannot_be_listed_is_not_empty(client: type[FakeClient]) -> None:
    """Else captures come twice, and states are deleted."""
    client.files = {"/x/1/a.state": b"1", "/x/2/b.state": b"2"}
    assert sorted(files_below(ROOT)) == [f"{ROOT}/1/a.state", f"{ROOT}/2/b.state"]
    files = small_files(ROOT)
    files.tidy()
    client.broken = {"/x/2/*"}
    with pytest.raises(CaptureError, match=r"cannot be listed: no DataNode answers$"):
        files_below(ROOT)
    for does in (files.names, files.tidy):
        with pytest.raises(OSError, match=r"no DataNode answers$"):
            does()
    assert not client.deleted


def test_a_file_that_cannot_be_looked_at_is_not_absent(client: type[FakeClient]) -> None:
    client.files, client.broken = {"/x/1/a.state": b"1"}, {"/x/1/a.state", "/x"}
    files = small_files(ROOT)
    for does in (lambda: files.read("1/a.state"), files.names):
        with pytest.raises(OSError, match=r"no DataNode answers$") as caught:
            does()
        assert not isinstance(caught.value, FileNotFoundError)


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
