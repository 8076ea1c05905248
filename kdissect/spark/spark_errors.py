"""An error of Spark, many lines of Java and Python → its most informative line."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from traceback import walk_tb
from typing import NamedTuple

_CLASS = re.compile(r"^(?:[a-z]\w*\.)+(?=[A-Z]\w*)")
"""The packages of a Java class."""
_FAILED = re.compile(r"(?:^Invalid |[\w.]+(?:Exception|Error): |Error: )\S")
"""The beginning of a line in a log that gives the reason."""

_OURS = re.compile(
    r"^kdissect\.[\w.]+\.(CaptureError|OtherBuildError|RunsError|StateError|TargetError): (\S.*)", re.M
)
"""The line of a traceback with an error of kdissect whose text is for the user."""

_TASK = re.compile(r"Lost task \S+ in stage \S+ \(TID \d+\) \((\S+) executor \S+\): (\S.*)")
"""The words about a task that failed: the host of its executor, and the reason."""

_KILLED = "Application has been killed. Reason: "
"""The words before the reason why the master ended an application."""

_REMOVED = "Master removed our application: "
"""The beginning of such a reason if a master of Spark answered. The state of the application follows."""

_NAMED = re.compile(r"Connected to Spark cluster with app ID (\S+)")
"""The words with the id of an application in a standalone cluster."""

_UNSTARTED = "Error running executor: "
"""The beginning of such a reason if a worker could not start the executor's process."""

_ENDED = re.compile(r"Executor updated: \S+ is now (?:EXITED|FAILED|LOST) \((.*)\)\s*$")
"""The line about an executor that ended, with the reason."""

_UNHEARD = (ConnectionRefusedError, ConnectionResetError)
"""Errors of py4j and PySpark after the JVM has ended, beside py4j's own errors."""


def is_of_spark(error: BaseException) -> bool:
    """Whether an error comes from Spark, its JVM or its server."""
    return _is_gone(error) or type(error).__module__.split(".")[0] in ("pyspark", "py4j", "grpc")


def _is_gone(error: BaseException) -> bool:
    """Whether the JVM has ended. Other programs refuse connections, too, so the calling package counts."""
    if type(error).__name__ == "Py4JNetworkError":
        return True
    return isinstance(error, _UNHEARD) and _asked_by(error) in ("py4j", "pyspark")


def _asked_by(error: BaseException) -> str | None:
    """The package whose call failed, skipping Python's own library."""
    frames = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]
    packages = (name.split(".")[0] for name in reversed(frames))
    return next((each for each in packages if each not in sys.stdlib_module_names), None)


class OwnError(NamedTuple):
    """An error that kdissect raised in a worker, or in a function that Spark called."""

    name: str
    """Its class, without the module."""
    words: str
    """Its text, one line for the user."""


def own_error(error: BaseException) -> OwnError | None:
    """The error of kdissect that Spark passes on; None if the error comes from Spark itself."""
    found = _OURS.findall(str(error))
    return OwnError(*found[-1]) if found else None


def why(error: BaseException) -> str:
    """The last line of a traceback in a worker; else the cause in the JVM; else the first line."""
    if _is_gone(error):
        return "its JVM has ended"
    written = [line for line in str(error).splitlines() if line.strip()]
    lines = [line.strip() for line in written]
    # In a traceback, the lines of the calls are indented, and the error after them is not.
    ends = [
        line
        for at, line in enumerate(lines)
        if at
        and (
            lines[at - 1].startswith(("File ", "^", "raise"))
            or (written[at - 1].startswith("    ") and not written[at][0].isspace())
        )
    ]
    told = [line.partition("Error: ")[2] for line in ends if "Error: " in line]
    if told:
        return told[-1]
    # The first line of a Java error only names the call.
    causes = [line.partition(": ")[2] for line in lines if line.startswith(("Caused by: ", ": "))]
    if unfound := [cause for cause in causes if "Cannot run program" in cause]:
        task = _TASK.search(unfound[0])
        return _CLASS.sub("", unfound[0]) if task is None else f"{task[1]}: {_CLASS.sub('', task[2])}"
    if causes:
        return _CLASS.sub("", causes[-1])
    return lines[0] if lines else type(error).__name__


def is_stopped(words: str) -> bool:
    """Whether an error only says that the application has ended before the call."""
    return "on a stopped SparkContext" in words


def why_killed(log: str) -> str | None:
    """The reason in a log why the master ended the application; None if the log has no such line."""
    with suppress(OSError), open(log, encoding="utf-8", errors="replace") as file:
        found = [line.partition(_KILLED)[2].strip() for line in file if _KILLED in line]
        return found[0] if found else None
    return None


def how_executors_end(log: str) -> str | None:
    """How the last executor ended, in the words of a standalone cluster in a log; None if none ended."""
    with suppress(OSError), open(log, encoding="utf-8", errors="replace") as file:
        found = [ended[1] for line in file if (ended := _ENDED.search(line))]
        return _CLASS.sub("", found[-1]).rstrip(".") if found else None
    return None


def executors_end(ends: str | None, application: str | None) -> str:
    """The words about a cluster whose executors end before they take a task, and what to do.

    :param ends: how they ended; None if unknown.
    :param application: its id in a standalone cluster; None in others, or if unknown.
    """
    if ends is not None and ends.startswith(_UNSTARTED):
        reason = _CLASS.sub("", ends.removeprefix(_UNSTARTED))
        return (
            f"workers cannot start executors ({reason}): check Spark and Java on the workers (SPARK_HOME,"
            " JAVA_HOME); the log of a worker says more"
        )
    how = "" if ends is None else f" ({ends})"
    file = "stderr of an executor"
    if application is not None:
        file = f"the file work/{application}/0/stderr of its Spark"
    return (
        f"executors end before they take a task{how}: look for the reason on a worker, in {file}."
        " Often Java, a setting such as spark.executor.extraJavaOptions, or the version of Spark is not"
        " the right one there"
    )


def why_not_started(master: str, log: str) -> str | None:
    """Why the application ended while Spark started, in words; None if the log does not tell.

    The master ends an application as ``FAILED`` after several of its executors failed in a row (Spark's
    ``spark.deploy.maxExecutorRetries``).
    """
    if (reason := why_killed(log)) is None:
        return None
    reason = reason.rstrip(".!")
    if not reason.startswith(_REMOVED):
        return f"{master} does not answer as a master of Spark ({reason})"
    if reason.removeprefix(_REMOVED) == "FAILED":
        if (ends := how_executors_end(log)) is None:  # Spark says it at INFO only
            return (
                f"executors fail before they take a task; kdissect doctor spark --cluster {master} says how"
            )
        return executors_end(ends, _application_in(log))
    return f"its application has ended ({reason})"


def _application_in(log: str) -> str | None:
    with suppress(OSError), open(log, encoding="utf-8", errors="replace") as file:
        return next((named[1] for line in file if (named := _NAMED.search(line))), None)
    return None


def why_in(log: str) -> str | None:
    """The reason in the log of a JVM that did not start; None if nothing is found."""
    try:
        with open(log, encoding="utf-8", errors="replace") as file:
            found = [line.strip() for line in file if _FAILED.search(line)]
    except OSError:
        return None
    return _CLASS.sub("", found[0].removeprefix('Exception in thread "main" ')) if found else None
