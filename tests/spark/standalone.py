"""A standalone cluster on this machine: a master and workers, started from the installed pyspark."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from kdissect.cli import main
from kdissect.spark.launch import bundled_java, find_java
from tests.spark.same import read_rows, written_rows
from tests.waiting import wait_until

DEPLOY = "org.apache.spark.deploy"
CONF = {"spark.driver.host": "127.0.0.1", "spark.executor.memory": "600m"}
"""What a session needs to use it."""
QUICK = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""What Java needs less time with, if it runs for seconds only."""
_URL = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = "Registering worker"
STARTS = 120
"""Seconds in which a process must have started."""


class Cluster(NamedTuple):
    """One that runs."""

    url: str
    """``spark://HOST:PORT``, a port of its own."""
    folder: Path
    """An empty one, which driver and workers see."""
    workers: tuple[int, ...]
    """Process numbers."""


@contextmanager
def standalone(workers: int) -> Iterator[Cluster]:
    """A cluster, as long as the context is open. Each worker has one core.

    Its workers find no package but those of Spark if the session takes ``PYTHONPATH`` away from them
    (:data:`ONLY_PYTHON`): the Python that an archive runs is that of no environment.
    """
    import pyspark

    home = os.path.dirname(pyspark.__file__)
    environment = {
        **os.environ,
        "SPARK_HOME": home,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.getcwd(),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "KDISSECT_PYTHON": os.path.realpath(sys.executable),
    }
    # Spark's own script sets this, and starts another Java first, which only makes the command.
    environment["SPARK_SCALA_VERSION"] = "2.13"
    java = [find_java() or bundled_java() or "java", *QUICK.split(), "-cp", os.path.join(home, "jars", "*")]
    processes: list[subprocess.Popen[bytes]] = []

    def start(log: Path, *command: str) -> int:
        with log.open("wb") as told:
            processes.append(subprocess.Popen([*java, *command], env=environment, stdout=told, stderr=told))
        return processes[-1].pid

    with tempfile.TemporaryDirectory() as name:
        logs, folder = Path(name) / "logs", Path(name) / "work"
        logs.mkdir()
        folder.mkdir()
        master = logs / "master"
        try:
            ports = ("--port", "0", "--webui-port", "0")
            start(master, f"{DEPLOY}.master.Master", "--host", "127.0.0.1", *ports)
            assert wait_until(lambda: _URL.search(master.read_text()) is not None, STARTS), master.read_text()
            found = _URL.search(master.read_text())
            assert found is not None
            size = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder))
            worker = (f"{DEPLOY}.worker.Worker", *ports, *size, found[1])
            pids = tuple(start(logs / f"worker{number}", *worker) for number in range(workers))
            is_whole = wait_until(lambda: master.read_text().count(_REGISTERED) == workers, STARTS)
            assert is_whole, master.read_text()
            yield Cluster(found[1], folder, pids)
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait()


ONLY_PYTHON = {
    "spark.pyspark.python": "./environment/bin/python",
    "spark.executorEnv.PYTHONPATH": "",
}
"""What makes workers take all from an archive that is unpacked as ``environment``."""


def compare_packed(cluster: Cluster, path: Path, tables: tuple[str, ...]) -> None:
    """Tables of a capture are equal to those without Spark if workers find kdissect in the archive of
    ``kdissect spark pack``, and nowhere else."""
    archive, out = cluster.folder / "kdissect.tar.gz", cluster.folder / "packed"
    assert main(["spark", "pack", "-o", str(archive), "-q"]) == 0
    conf = {**CONF, **ONLY_PYTHON, "spark.archives": f"{archive}#environment"}
    conf |= {f"spark.{each}.extraJavaOptions": QUICK for each in ("driver", "executor")}
    pairs = [f"--conf={key}={value}" for key, value in conf.items()]
    more = [word for name in tables for word in ("--table", name)]
    command = [sys.executable, "-m", "kdissect", "spark", "batch", str(path), "--out", str(out), "-q"]
    done = subprocess.run(
        [*command, *more, "--tasks", "2", "--master", cluster.url, *pairs],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for name in tables:
        assert written_rows(out / name) == read_rows(name, [path]), name
