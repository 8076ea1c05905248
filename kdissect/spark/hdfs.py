"""Hadoop's file system ``hdfs://host:port/path``, as ``pyarrow.fs`` has file systems.

``hdfs-native`` speaks Hadoop's protocol without Java. It reads ``core-site.xml`` and ``hdfs-site.xml`` in the
folder that ``HADOOP_CONF_DIR`` names, and ``HADOOP_USER_NAME``. Without it, ``pyarrow.fs`` loads libhdfs of
a Hadoop installation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from importlib.util import find_spec
from typing import Any
from urllib.parse import unquote, urlsplit

from kdissect.wording import how_to_install


def is_hdfs(path: str) -> bool:
    """Whether it is the URI of a file there."""
    return path.startswith("hdfs:")


def hdfs(uri: str) -> tuple[Any, str]:
    """The file system, and the path in it.

    :raises OSError: it cannot be reached.
    :raises ImportError: nothing is installed that speaks its protocol.
    """
    if find_spec("hdfs_native") is not None:
        address = urlsplit(uri)
        try:
            return _native(address.hostname, address.port), unquote(address.path) or "/"
        except RuntimeError as error:  # what Hadoop's configuration lacks
            raise _as_os_error(error) from None
    from pyarrow import fs

    try:
        return fs.FileSystem.from_uri(uri)  # type: ignore[no-any-return]
    except OSError:
        raise ImportError(f"hdfs:// needs hdfs-native: {how_to_install('hdfs')}") from None


@lru_cache(maxsize=8)
def _native(host: str | None, port: int | None) -> Any:
    from hdfs_native.fsspec import HdfsFileSystem
    from pyarrow import fs

    class _HdfsFileSystem(HdfsFileSystem):
        """With the times of files, and with renaming that replaces, as pyarrow wants them. What cannot be
        listed or looked at is an :class:`OSError`."""

        def _convert_file_status(self, file_status: Any) -> dict[str, Any]:
            found: dict[str, Any] = super()._convert_file_status(file_status)
            return {**found, "mtime": found["modification_time"] / 1_000}

        def mv(self, path1: str, path2: str, **_: Any) -> None:
            super().mv(path1, path2, overwrite=True)

        def walk(self, path: str, *arguments: Any, **options: Any) -> Any:
            # fsspec takes a folder that cannot be listed for an empty one, and says nothing. It walks
            # through folders in folders by this method.
            return super().walk(path, *arguments, **{**options, "on_error": _unless_gone})

        def isdir(self, path: str) -> bool:
            return self._type(path) == "directory"

        def isfile(self, path: str) -> bool:
            return self._type(path) == "file"

        def _type(self, path: str) -> str | None:
            """fsspec's own methods take a file system that does not answer for one without the file."""
            try:
                return str(self.info(path)["type"])
            except FileNotFoundError:
                return None

    for name in ("info", "ls", "mkdir", "mv", "rm", "rmdir", "_open"):
        setattr(_HdfsFileSystem, name, _telling(getattr(_HdfsFileSystem, name)))

    # A port names one machine, where trying again for minutes would help nobody.
    options = {} if port is None else {"dfs.client.failover.max.attempts": "1"}
    return fs.PyFileSystem(fs.FSSpecHandler(_HdfsFileSystem(host, port, **options)))


def _telling(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, which tells what Hadoop refused as an :class:`OSError`."""

    @wraps(method)
    def called(*arguments: Any, **options: Any) -> Any:
        try:
            return method(*arguments, **options)
        except RuntimeError as error:
            raise _as_os_error(error) from None

    return called


def _unless_gone(error: OSError) -> None:
    """What was removed while it was listed has no files; whatever else is wrong is told."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _as_os_error(error: RuntimeError) -> OSError:
    """The first line of what may be the stack of a server."""
    return OSError(str(error).replace("\\n", "\n").partition("\n")[0])
