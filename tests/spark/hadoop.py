"""Hadoop's file system on this machine: a name node and a data node, of the classes of Maven's artifact
``hadoop-client-minicluster`` and Spark's own jars."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import create_server

from kdissect.spark.hdfs import hdfs

_NODES = "org.apache.hadoop.hdfs.server"
_START_SECONDS = 600.0


@contextmanager
def hadoop(jars: Path) -> Iterator[str]:
    """Starts it; gives what URIs begin with.

    :param jars: the folder of the jar.
    """
    import pyspark

    with create_server(("127.0.0.1", 0)) as free:
        root = f"hdfs://127.0.0.1:{free.getsockname()[1]}/"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _configure(folder, root)
        found = [folder, f"{jars.resolve()}/*", f"{os.path.dirname(pyspark.__file__)}/jars/*"]
        command = ["java", "-Xmx400m", "-cp", ":".join(map(str, found))]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([*command, f"{_NODES}.namenode.NameNode", "-format"], check=True, **quiet)  # type: ignore[call-overload]
        nodes = [
            subprocess.Popen([*command, f"{_NODES}.{each}"], **quiet)  # type: ignore[call-overload]
            for each in ("namenode.NameNode", "datanode.DataNode")
        ]
        try:
            _wait(root)
            yield root
        finally:
            for node in nodes:
                node.terminate()
                node.wait()


def _configure(folder: Path, root: str) -> None:
    files = {
        "core-site": {"fs.defaultFS": root, "hadoop.tmp.dir": folder / "data"},
        "hdfs-site": {"dfs.replication": 1, "dfs.namenode.http-address": "127.0.0.1:0"}
        | {f"dfs.datanode.{each}": "127.0.0.1:0" for each in ("address", "http.address", "ipc.address")},
    }
    for name, values in files.items():
        properties = "".join(
            f"<property><name>{key}</name><value>{value}</value></property>" for key, value in values.items()
        )
        (folder / f"{name}.xml").write_text(f"<configuration>{properties}</configuration>")


def _wait(root: str) -> None:
    """Until a file can be written."""
    end = time.monotonic() + _START_SECONDS
    system, _ = hdfs(root)
    while True:
        with suppress(OSError, RuntimeError):
            with system.open_output_stream("/begun") as file:
                file.write(b"x")
            return
        if time.monotonic() > end:
            raise TimeoutError(f"{root} does not answer")
        time.sleep(1)
