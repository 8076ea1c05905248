"""Checks whether workers on this machine have kdissect. Without it, Spark's own error is a page of Java and
Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECONDS = 30.0
"""The most seconds that the other Python may take to import kdissect."""


def warn_without_kdissect(spark: SparkSession) -> None:
    """Warn, once for each Python, if workers on this machine are started with one that has no kdissect.

    It is no error: a file or archive that Spark gives to workers may contain kdissect.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return
    context = spark.sparkContext
    if str(context.master).startswith("local"):
        _warn_of(str(context.pythonExec))


@lru_cache
def _warn_of(program: str) -> None:
    path = shutil.which(program)
    if path is None or os.path.dirname(os.path.abspath(path)) == os.path.dirname(sys.executable):
        return  # it is this Python, or Spark reports that it is missing
    if not _has_kdissect(path):
        words = (
            f"Spark starts workers with {path}, which has no kdissect: before Spark starts, activate the"
            f" environment that has it, or set PYSPARK_PYTHON to {sys.executable}"
        )
        warnings.warn_explicit(words, UserWarning, "kdissect", 1)


def _has_kdissect(python: str) -> bool:
    quiet = subprocess.DEVNULL
    try:
        done = subprocess.run(
            [python, "-c", "import kdissect"],
            check=False,
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
