"""Hadoop's file system, as far as it goes without one. ``tests.spark.stores --store hdfs`` has one."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from socket import create_server
from types import SimpleNamespace
from typing import Any

import pytest
from pyarrow import fs

from kdissect.model import CaptureError
from kdissect.spark import folders, hdfs
from kdissect.spark.folders import small_files
from kdissect.spark.storage import files_below, list_files, open_file
from tests.waiting import wait_until

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

    def mkdirs(self, path: str, permission: int, create_parent: bool) -> None:
        assert create_parent
        self.made.append((path, permission))

    def create(self, path: str, write_options: Any) -> Any:
        self.made.append((path, write_options.permission))
        return native().FileWriter(FakeFile(self, path))

    def read(self, path: str) -> Any:
        return native().FileReader(FakeFile(self, path))

    def rename(self, old: str, new: str, overwrite: bool) -> None:
        assert overwrite
        self.files[new] = self.files.pop(old)

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


class FakeFile:
    """What it has of an open file."""

    def __init__(self, client: FakeClient, path: str) -> None:
        self.client, self.path, self.at, self.data = client, path, 0, b""

    def file_length(self) -> int:
        return len(self.client.files[self.path])

    def seek(self, at: int) -> None:
        self.client._refuse(f"seek {self.path}")
        self.at = at

    def tell(self) -> int:
        return self.at

    def read(self, size: int) -> bytes:
        self.client._refuse(f"read {self.path}")
        begin, whole = self.at, self.client.files[self.path]
        self.at = len(whole) if size < 0 else min(begin + size, len(whole))
        return whole[begin : self.at]

    def write(self, data: bytes) -> int:
        self.client._refuse("write")
        self.data += bytes(data)
        return len(data)

    def close(self) -> None:
        self.client._refuse("close")
        self.client.files[self.path] = self.data


def native() -> Any:
    return pytest.importorskip("hdfs_native")


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[FakeClient]]:
    """In place of Hadoop."""
    fsspec = pytest.importorskip("hdfs_native.fsspec")
    monkeypatch.setattr(fsspec, "Client", FakeClient)
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


def test_files_are_for_their_owner_only(client: type[FakeClient]) -> None:
    """States may have secrets of TLS."""
    files = small_files(ROOT)
    files.prepare()
    files.write("3/a.state", b"data")
    assert files.read("3/a.state") == b"data"
    assert {permission for path, permission in client.made if path.endswith("~")} == {0o600}
    assert {permission for path, permission in client.made if not path.endswith("~")} == {0o700}
    assert len(client.made) == 3


def test_what_goes_wrong_while_data_are_read_or_written_is_an_error_of_files(
    client: type[FakeClient],
) -> None:
    client.files = {"/x/a": b"data"}
    files = small_files(ROOT)
    client.broken = {"read /x/a", "seek /x/a"}
    with pytest.raises(OSError, match=r"no DataNode answers$"):
        files.read("a")
    with pytest.raises(OSError, match=r"no DataNode answers$"):
        open_file(f"{ROOT}/a", 2)
    for what in ("write", "close"):
        client.broken = {what}
        with pytest.raises(OSError, match=r"no DataNode answers$"):
            files.write("b", b"data")
        client.broken = set()
    assert "/x/b" not in client.files


@pytest.mark.parametrize("name", ["a#1.pcap", "a%201.pcap", "a;b.pcap", "a b.pcap", "ä.pcap"])
def test_names_are_taken_as_they_are(client: type[FakeClient], name: str) -> None:
    client.files = {f"/x/{name}": b"data"}
    (found,) = list_files([ROOT])
    assert found.path == f"{ROOT}/{name}"
    assert list_files([found.path]) == [found]
    assert list(files_below(ROOT)) == [found.path]
    with open_file(found.path) as file:
        assert file.read() == b"data"


def test_what_libhdfs_says_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(uri: str) -> Any:
        raise OSError("HDFS connection failed: no route to host")

    monkeypatch.setattr(hdfs, "find_spec", lambda _: None)
    monkeypatch.setattr(fs, "FileSystem", SimpleNamespace(from_uri=refuse))
    with pytest.raises(CaptureError, match=r"^hdfs://host/x: HDFS connection failed: no route to host$"):
        list_files(["hdfs://host/x"])


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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked on this system")
def test_a_process_that_is_forked_does_not_wait_for_a_client_that_was_let_go() -> None:
    pytest.importorskip("hdfs_native")
    with pytest.raises(CaptureError, match="cannot be listed"):
        list_files(["hdfs://127.0.0.1:1/x"])  # the client has its threads now
    hdfs._native.cache_clear()  # it is let go, and nobody else must have kept it
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    try:
        assert wait_until(
            lambda: os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None, 60
        )
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


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
