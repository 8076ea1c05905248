"""Hadoop's file system ``hdfs://host:port/path``, in the form of ``pyarrow.fs``.

``hdfs-native`` speaks Hadoop's protocol without Java. It reads ``core-site.xml`` and ``hdfs-site.xml`` in the
folder that ``HADOOP_CONF_DIR`` names, and ``HADOOP_USER_NAME``. Without it, ``pyarrow.fs`` loads libhdfs of
a Hadoop installation.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, wraps
from importlib.util import find_spec
from typing import Any
from urllib.parse import quote, urlsplit

from kdissect.wording import how_to_install

_NO_LIBRARY = re.compile("Unable to load lib(hdfs|jvm)")
"""Pyarrow's message if Hadoop or Java is not installed."""


def is_hdfs(path: str) -> bool:
    """Whether a path is the URI of a file in HDFS."""
    return path.startswith("hdfs:")


def hdfs(uri: str) -> tuple[Any, str]:
    """The file system, and the path in it.

    :raises OSError: it cannot be reached.
    :raises ImportError: no library for its protocol is installed.
    """
    # As in Hadoop, a path is not quoted: "%" and "#" are characters of names.
    authority, slash, inner = uri.partition("?")[0].removeprefix("hdfs://").partition("/")
    path = slash + inner or "/"
    if find_spec("hdfs_native") is not None:
        address = urlsplit(f"hdfs://{authority}")
        try:
            return _native(address.hostname, address.port), path
        except RuntimeError as error:  # settings that Hadoop's configuration lacks
            raise _as_os_error(error) from None
    from pyarrow import fs

    try:
        return fs.FileSystem.from_uri(f"hdfs://{authority}{quote(path)}")[0], path
    except OSError as error:
        if not _NO_LIBRARY.search(str(error)):
            raise
        raise ImportError(f"hdfs:// needs hdfs-native: {how_to_install('hdfs')}") from None


@lru_cache(maxsize=8)
def _native(host: str | None, port: int | None) -> Any:
    from hdfs_native import WriteOptions
    from hdfs_native.fsspec import HdfsFileSystem
    from pyarrow import fs

    class _HdfsFileSystem(HdfsFileSystem):
        """A file system with the times of files, and with renaming that replaces, as pyarrow needs them. If a
        path cannot be listed or examined, that is an :class:`OSError`."""

        cachable = False
        """fsspec would keep the file system, and drop it in each forked process. There, the client would wait
        for ever for its threads, which are not forked."""

        def _convert_file_status(self, file_status: Any) -> dict[str, Any]:
            found: dict[str, Any] = super()._convert_file_status(file_status)
            return {**found, "mtime": found["modification_time"] / 1_000}

        def mv(self, path1: str, path2: str, **_: Any) -> None:
            super().mv(path1, path2, overwrite=True)

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return path if path.startswith("/") else str(super()._strip_protocol(path))

        # States may have secrets of TLS. Here too, files are for their owner only.

        def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
            self.client.mkdirs(path, 0o700, create_parents)

        def _open(self, path: str, mode: str = "rb", *_: Any, **__: Any) -> Any:
            file: Any
            if mode == "wb":
                file = self.client.create(path, WriteOptions(permission=0o600, overwrite=True))
            elif mode == "rb":
                file = self.client.read(path)
            else:
                raise ValueError(f"a file is read or written, not opened as {mode!r}")
            file.inner = _OpenFile(file.inner)
            return file

        def walk(self, path: str, *arguments: Any, **options: Any) -> Any:
            # fsspec treats a folder that cannot be listed as empty, without a message. It uses this method to
            # walk through folders.
            return super().walk(path, *arguments, **{**options, "on_error": _unless_gone})

        def isdir(self, path: str) -> bool:
            return self._type(path) == "directory"

        def isfile(self, path: str) -> bool:
            return self._type(path) == "file"

        def _type(self, path: str) -> str | None:
            """The type of a path. fsspec's own methods treat a file system that does not answer as one
            without the file."""
            try:
                return str(self.info(path)["type"])
            except FileNotFoundError:
                return None

    for name in ("info", "ls", "mkdir", "mv", "rm", "rmdir", "_open"):
        setattr(_HdfsFileSystem, name, _telling(getattr(_HdfsFileSystem, name)))

    # A port means a single machine. Trying again for minutes would not help.
    options = {} if port is None else {"dfs.client.failover.max.attempts": "1"}
    return fs.PyFileSystem(fs.FSSpecHandler(_HdfsFileSystem(host, port, **options)))


def _telling(method: Callable[..., Any]) -> Callable[..., Any]:
    """A wrapper of a method that turns Hadoop's refusals into an :class:`OSError`."""

    @wraps(method)
    def called(*arguments: Any, **options: Any) -> Any:
        try:
            return method(*arguments, **options)
        except RuntimeError as error:
            raise _as_os_error(error) from None

    return called


class _OpenFile:
    """An open file of Hadoop, whose methods turn its refusals into an :class:`OSError`."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return _telling(getattr(self._file, name))


def _unless_gone(error: OSError) -> None:
    """Ignore the error if a path was removed while it was listed, and raise any other error."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _as_os_error(error: RuntimeError) -> OSError:
    """An error with the first line of a text that may be a server's stack."""
    return OSError(str(error).replace("\\n", "\n").partition("\n")[0])
