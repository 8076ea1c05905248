"""An error of Spark's, many lines of Java and Python → the one line that tells most."""

from __future__ import annotations

import re

_CLASS = re.compile(r"^(?:[a-z]\w*\.)+(?=[A-Z]\w*)")
"""The packages of a Java class."""
_FAILED = re.compile(r"(?:^Invalid |[\w.]+(?:Exception|Error): |Error: )\S")
"""How a log begins a line that says why."""


_GONE = (ConnectionRefusedError, ConnectionResetError)
"""What py4j raises when the JVM has ended, beside its own errors."""


def is_of_spark(error: BaseException) -> bool:
    """Whether it comes from Spark, its JVM or its server."""
    return isinstance(error, _GONE) or type(error).__module__.split(".")[0] in ("pyspark", "py4j", "grpc")


def why(error: BaseException) -> str:
    """The last line of a traceback in a worker; else what caused it in the JVM; else its first line."""
    if isinstance(error, _GONE) or type(error).__name__ == "Py4JNetworkError":
        return "its JVM has ended"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ends = [line for at, line in enumerate(lines) if at and lines[at - 1].startswith(("File ", "^", "raise"))]
    told = [line.partition("Error: ")[2] for line in ends if "Error: " in line]
    if told:
        return told[-1]
    # Of an error in Java the first line says only what was called.
    causes = [line.partition(": ")[2] for line in lines if line.startswith(("Caused by: ", ": "))]
    if unfound := [cause for cause in causes if "Cannot run program" in cause]:
        return _CLASS.sub("", unfound[0])
    if causes:
        return _CLASS.sub("", causes[-1])
    return lines[0] if lines else type(error).__name__


def why_in(log: str) -> str | None:
    """The reason in the log of a JVM that did not start; None if nothing is found."""
    try:
        with open(log, encoding="utf-8", errors="replace") as file:
            found = [line.strip() for line in file if _FAILED.search(line)]
    except OSError:
        return None
    return _CLASS.sub("", found[0].removeprefix('Exception in thread "main" ')) if found else None
