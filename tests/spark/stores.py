"""Streams and nights elsewhere: ``python -m tests.spark.stores [--store s3|hdfs] [--jars DIR] [PART…]``.

The object store is moto's (``pip install 'moto[s3,server]'``), on this machine. Spark keeps its checkpoint
there with Hadoop's S3A, whose jars Spark fetches from Maven Central, unless they are in DIR.

Hadoop's file system has a name node and a data node of its own (:mod:`tests.spark.hadoop`), for which DIR
needs a jar::

    mvn dependency:copy -Dartifact=org.apache.hadoop:hadoop-client-minicluster:3.5.0 -DoutputDirectory=DIR

stream   captures that appear in a bucket, tables, checkpoint and state in another: rows as of ``read``
killed   the same where the stream is killed at five random moments
drained  the same where another build goes on after ``--drain``
night    ``batch --append`` of captures in a bucket, with tables there
frames   ``readStream`` and ``read`` of captures there
query    a stream, tables by ``batch``, their report and views, where only URIs say which server it is
"""

# ruff: noqa: T201

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq

from kdissect.spark.hdfs import hdfs
from tests.spark.cuts import cut
from tests.spark.hadoop import hadoop
from tests.spark.same import CAPTURES, in_order, read_rows, without_moments
from tests.spark.test_stream import in_time

TABLES = ("exchanges", "connections", "faults")
BASIC = CAPTURES / "basic-kafka43.pcapng"
_TOO_BUSY = "Python worker failed to connect back"
"""What Spark says if a Python takes more than ten seconds to start. Then the command is given again."""
HADOOP_AWS = "org.apache.hadoop:hadoop-aws:3.5.0"


class Store:
    """Two folders, and how commands reach them."""

    def __init__(self, system: Any, root: str, query: str, conf: dict[str, str]) -> None:
        """:param system: as pyarrow has it.
        :param root: what URIs begin with.
        :param query: what is behind the ``?`` of URIs that nothing else tells which server it is.
        """
        self.system = system
        self._root = root
        self._query = query
        self.conf = [f"--conf={key}={value}" for key, value in conf.items()]

    def uri(self, name: str, *, whole: bool = False) -> str:
        return f"{self._root}{name}{self._query if whole else ''}"

    def empty(self) -> None:
        for name in ("captures", "tables"):
            with suppress(OSError):
                self.system.delete_dir(name if self._query else f"/{name}")
            self.system.create_dir(name if self._query else f"/{name}")

    def put(self, file: Path) -> None:
        with self.system.open_output_stream(self._path(f"captures/day/{file.name}")) as out:
            out.write(file.read_bytes())

    def rows(self, name: str) -> list[str]:
        from pyarrow import fs

        found: list[dict[str, Any]] = []
        for each in self.system.get_file_info(fs.FileSelector(self._path(f"tables/{name}"), recursive=True)):
            if each.path.endswith(".parquet"):
                with self.system.open_input_file(each.path) as file:
                    found += pq.ParquetFile(file).read().to_pylist()
        return in_order(without_moments(found))

    def same(self, files: list[Path]) -> None:
        for name in TABLES:
            assert self.rows(name) == read_rows(name, files), name

    def command(self, *words: str) -> list[str]:
        spark = [sys.executable, "-m", "kdissect", "spark", *words]
        return [*spark, "--master", "local[2]", *self.conf]

    def stream(self, *more: str) -> list[str]:
        """The command of a stream."""
        words = ("stream", self.uri("captures/day"), "--out", self.uri("tables"), "--available-now")
        return self.command(*words, "--max-bytes-per-batch", "1", *more)

    def _path(self, name: str) -> str:
        return name if self._query else f"/{name}"


@contextmanager
def object_store(jars: str | None) -> Iterator[Store]:
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        yield _of_objects(server.get_host_and_port()[1], jars)
    finally:
        server.stop()


def _of_objects(port: int, jars: str | None) -> Store:
    from pyarrow import fs

    where = f"127.0.0.1:{port}"
    os.environ.update(
        AWS_ACCESS_KEY_ID="somebody",
        AWS_SECRET_ACCESS_KEY="s3cr3t",
        AWS_REGION="us-east-1",
        AWS_EC2_METADATA_DISABLED="true",
        AWS_ENDPOINT_URL=f"http://{where}",
    )
    system = fs.S3FileSystem(
        endpoint_override=where, scheme="http", region="us-east-1", allow_bucket_creation=True
    )
    packages = {"spark.jars": ",".join(map(str, Path(jars).glob("*.jar")))} if jars else {}
    conf = packages or {"spark.jars.packages": HADOOP_AWS}
    conf |= {
        "spark.hadoop.fs.s3a.endpoint": f"http://{where}",
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
    }
    return Store(system, "s3a://", f"?endpoint_override={where}&scheme=http&region=us-east-1", conf)


@contextmanager
def file_system(jars: str | None) -> Iterator[Store]:
    if jars is None:
        raise SystemExit("--store hdfs needs --jars DIR")
    with hadoop(Path(jars)) as root:
        yield Store(hdfs(root)[0], root, "", {})


def run(command: list[str], code: int = 0, environment: dict[str, str] | None = None) -> None:
    for _ in range(5):
        done = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True, env=environment)
        if _TOO_BUSY not in done.stderr:
            break
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr, done.stderr


def stream(place: Store, files: list[Path]) -> None:
    for at, file in enumerate(files):
        place.put(file)
        if at in (1, 2):
            run(place.stream())
    run(place.stream("--close"))
    place.same(files)


def killed(place: Store, files: list[Path]) -> None:
    random, moments = Random(), []
    for file in files:
        place.put(file)
    for _ in range(5):
        moments.append(random.uniform(8.0, 30.0))
        process = subprocess.Popen(place.stream(), start_new_session=True)
        end = time.monotonic() + moments[-1]
        while time.monotonic() < end and process.poll() is None:
            time.sleep(0.05)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    run(place.stream("--close"))
    place.same(files)
    print(f"killed at {', '.join(f'{each:.1f}' for each in moments)} s")


def drained(place: Store, files: list[Path]) -> None:
    place.put(files[0])
    run(place.stream("--drain"))
    before = place.rows("exchanges")
    assert before == read_rows("exchanges", files[:1])
    another = "import kdissect; kdissect.__version__ = '99.0'; from kdissect.cli import main; import sys"
    for file in files[1:]:
        place.put(file)
    command = place.stream("--close")
    run([command[0], "-c", f"{another}; sys.exit(main({command[3:]!r}))"])
    assert set(before) < set(place.rows("exchanges"))


def night(place: Store, files: list[Path]) -> None:
    with tempfile.TemporaryDirectory() as runs:
        to = f"parquet:{place.uri('tables')}"
        command = ["batch", place.uri("captures/day"), "--append", "--to", to, "--runs", runs]
        for file in files:
            place.put(file)
            run(place.command(*command))
        run(place.command(*command, "--close"))
    place.same(files)


_FRAMES = """
import os, sys
import kdissect.spark
from kdissect.spark.launch import session
captures, state, checkpoint, *conf = sys.argv[1:]
spark = session("local[2]", dict(each.partition("=")[::2] for each in conf), os.devnull)
count = kdissect.spark.exchanges(spark, captures).count()
reader = spark.readStream.format("kdissect").option("state", state).option("max_bytes_per_batch", "1")
found = []
writer = reader.load(captures).writeStream.foreachBatch(lambda frame, _: found.append(frame.count()))
writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
assert len(found) > 2, found
assert count - 3 <= sum(found) <= count, (found, count)
"""


def frames(place: Store, files: list[Path]) -> None:
    for file in files:
        place.put(file)
    folders = [place.uri(name) for name in ("captures/day", "tables/state", "tables/checkpoint")]
    conf = [each.removeprefix("--conf=") for each in place.conf]
    run([sys.executable, "-c", _FRAMES, *folders, *conf])


_VIEWS = """
import os, sys
import kdissect.spark
from kdissect.spark.launch import session
spark = session("local[2]", dict(each.partition("=")[::2] for each in sys.argv[2:]), os.devnull)
assert "exchanges" in kdissect.spark.views(spark, sys.argv[1])
print(spark.table("exchanges").count())
"""


def query(place: Store, files: list[Path]) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "AWS_ENDPOINT_URL"}
    captures, tables = (place.uri(name, whole=True) for name in ("captures/day", "tables"))
    for file in files:
        place.put(file)
    stream = ("stream", captures, "--out", tables, "--available-now", "--close")
    run(place.command(*stream, "--max-bytes-per-batch", "1"), 0, environment)
    place.same(files)
    place.empty()
    for file in files:
        place.put(file)
    for by in ((), ("--partition-by", "date")):
        batch = place.command("batch", captures, "--out", tables, *by)
        run([*batch, "--overwrite"], 0, environment)
        if not by:
            place.same(files)
            run(batch, 2, environment)
    run(place.command("report", tables), 0, environment)
    conf = [each.removeprefix("--conf=") for each in place.conf]
    run([sys.executable, "-c", _VIEWS, tables, *conf], 0, environment)


PARTS = {
    "stream": stream,
    "killed": killed,
    "drained": drained,
    "night": night,
    "frames": frames,
    "query": query,
}
STORES = {"s3": object_store, "hdfs": file_system}


def main() -> None:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--store", default="s3", choices=STORES)
    parser.add_argument("--jars", metavar="DIR")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"no part is {', '.join(unknown)}: {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory() as folder, STORES[given.store](given.jars) as place:
        files = in_time(cut(BASIC, Path(folder), 4))
        for part in given.parts or PARTS:
            place.empty()
            begun = time.monotonic()
            PARTS[part](place, files)
            print(f"{given.store}, {part}: equal, {time.monotonic() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
