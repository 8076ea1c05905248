"""A small job on a cluster → what its workers have, and what they lack to read captures."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import kdissect
from kdissect.spark import probe
from kdissect.spark.launch import is_connect
from kdissect.spark.spark_errors import executors_end, how_executors_end, is_of_spark, is_stopped, why
from kdissect.wording import plural

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS = 16
"""The number of tasks that ask. Each takes a moment, so that all free workers get some."""
TASK_SECONDS = 0.2
WAIT_SECONDS = 120.0
"""The time after which no further answer is expected."""

Row = tuple[str, str, str]
"""The name; ``ok``, ``missing``, ``differs`` or ``apart``; and the details."""
_HOW = "kdissect doctor spark says how"
_NO_PROGRAM, _NO_MODULE = "Cannot run program", "No module named"
"""Messages of Java and of Python."""


def check_cluster(
    spark: SparkSession, master: str, paths: Sequence[str], log: str | None = None
) -> Iterator[Row]:
    """Ask the workers, in a job of a few seconds. An error of Spark becomes a row, too.

    :param paths: captures, and folders for tables, that the workers must reach.
    :param log: the file of Spark's messages.
    """
    yield "spark", "ok", f"{spark.version} at {master}"
    conf, application = {}, None
    if not is_connect(master):
        conf = dict(spark.sparkContext.getConf().getAll())
        if master.startswith("spark://"):
            application = spark.sparkContext.applicationId
        spark.sparkContext.setLogLevel("INFO")  # these messages say how executors end
    try:
        told = _ask(spark, paths)
    except Exception as error:
        if not is_of_spark(error):
            raise
        ends = None if log is None else how_executors_end(log)
        yield "workers", "missing", failure(why(error), ends, application)
        return
    if told is None:
        ends = None if log is None else how_executors_end(log)
        details = nobody(conf) if ends is None else failure(None, ends, application)
        yield "workers", "missing", details
        return
    yield from judge(told, paths)


def failure(words: str | None, ends: str | None, application: str | None) -> str:
    """Why the job failed, and what to do.

    :param words: the error of Spark, if it gave one.
    :param ends: how executors of the application ended; None if unknown.
    :param application: its id in a standalone cluster; None in others.
    """
    if words is None or is_stopped(words):
        return executors_end(ends, application)
    words = words.rstrip(".")
    if _NO_PROGRAM in words:
        return f"{words}; name the Python of the workers with --conf spark.pyspark.python=PATH: {_HOW}"
    if words.startswith(_NO_MODULE):
        return f"the Python of the workers lacks a package: {words}; {_HOW}"
    return f"{words}; {_HOW}"


def nobody(conf: Mapping[str, str]) -> str:
    """The possible reasons why no worker took a task, and what to do.

    :param conf: Spark's configuration; empty if a server of Spark Connect has it.
    """
    nobody_took = f"no worker took a task in {WAIT_SECONDS:.0f} s: the cluster has no worker"
    if not conf:
        return (
            f"{nobody_took}, or none with enough free memory (spark.executor.memory) and free cores"
            " (spark.executor.cores). The server of Spark Connect has these settings"
        )
    memory, cores = conf.get("spark.executor.memory", "1g"), conf.get("spark.executor.cores", "1")
    return (
        f"{nobody_took}, or none with {memory} of free memory (spark.executor.memory) and"
        f" {plural(int(cores), 'free core')} (spark.executor.cores),"
        f" or workers do not reach this machine as {conf.get('spark.driver.host')} (spark.driver.host)."
        " --conf changes these settings"
    )


def judge(told: Iterable[Mapping[str, Any]], paths: Sequence[str]) -> Iterator[Row]:
    """The meaning of the answers of :func:`kdissect.spark.probe.facts`. It deletes the files of the test.

    :param told: an answer for each task; a worker may have given several.
    :param paths: the paths that the workers were asked about.
    """
    told = list(told)
    by_host = {(each["host"], each["program"]): each for each in told}
    yield "workers", "ok", f"{plural(len(told), 'task')} ran on {plural(len(by_host), 'host')}"
    for (host, program), each in sorted(by_host.items()):
        here = "{}.{}".format(*sys.version_info)
        if each["kdissect"] is None:
            yield host, "missing", f"{program} cannot import kdissect: {each['why']}; {_HOW}"
        elif each["kdissect"] != kdissect.__version__:
            words = f"{program} has kdissect {each['kdissect']}, here is {kdissect.__version__}"
            yield host, "differs", f"{words}; install the same version"
        elif not each["python"].startswith(f"{here}."):
            yield host, "differs", f"{program} is Python {each['python']}, here is {here}; take the same one"
        else:
            yield host, "ok", f"{program}, Python {each['python']}, kdissect {each['kdissect']}"
    for path in paths:
        wrong = {each["host"]: each["seen"][path] for each in told if each["seen"][path] is not None}
        wrote = [each["wrote"][path] for each in told if path in each["wrote"]]
        found = [os.path.exists(each) for each in wrote]
        for each in wrote:
            with suppress(OSError):
                os.unlink(each)
        if wrong:
            host, reason = next(iter(sorted(wrong.items())))
            yield path, "missing", f"{host}: {reason}"
        elif not all(found):
            words = (
                "this machine does not see what workers write there: Spark will write the tables, which "
                "takes longer"
            )
            yield path, "apart", words
        else:
            yield (
                path,
                "ok",
                "all workers can write, and this machine sees it" if wrote else "all workers can read it",
            )


def _ask(spark: SparkSession, paths: Sequence[str]) -> list[dict[str, Any]] | None:
    """The answers; None if there are none."""
    from pyspark import cloudpickle

    pickling: Any = cloudpickle  # a library without types
    answers: list[Any] = []
    errors: list[Exception] = []

    def ask() -> None:
        try:
            every = spark.range(0, TASKS, 1, TASKS)
            work = partial(probe.tell, tuple(paths), TASK_SECONDS)
            answers.extend(every.mapInArrow(work, "told string").collect())
        except Exception as error:
            errors.append(error)

    pickling.register_pickle_by_value(probe)
    try:
        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        asking.join(WAIT_SECONDS)
    finally:
        pickling.unregister_pickle_by_value(probe)
    if errors:
        raise errors[0]
    return [json.loads(each.told) for each in answers] if answers else None
