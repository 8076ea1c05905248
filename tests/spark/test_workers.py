"""Workers without kdissect are told before Spark fails with a page of Java."""

from __future__ import annotations

import sys
import warnings
from types import SimpleNamespace
from typing import Any

import pytest

from kdissect.spark import workers
from kdissect.spark.workers import warn_without_kdissect


def session(python: str, master: str = "local[2]") -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(master=master, pythonExec=python))


@pytest.fixture(autouse=True)
def anew() -> None:
    workers._warn_of.cache_clear()


def test_a_python_without_kdissect_is_told_once() -> None:
    with pytest.warns(UserWarning, match="which has no kdissect: .* set PYSPARK_PYTHON to ") as seen:
        warn_without_kdissect(session("false"))
    assert sys.executable in str(seen[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_without_kdissect(session("false"))


@pytest.mark.parametrize(
    "made",
    [
        session(sys.executable),
        session("true"),  # it imports whatever it is told
        session("no-such-python"),
        session("false", "spark://elsewhere:7077"),
    ],
)
def test_others_are_not(made: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_without_kdissect(made)
