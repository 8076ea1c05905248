"""Faults of files, reported to users of the data source or of the functions of :mod:`kdissect.spark`.

Tasks send them to the driver by an accumulator, the only thing that Spark carries back beside rows. So the
driver warns while an action runs, or when it ends. Spark Connect has no accumulators: there the table
``faults`` has them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.accumulators import Accumulator, AccumulatorParam

from kdissect.dissect import Event
from kdissect.model import Fault
from kdissect.spark.fault_names import named
from kdissect.wording import plural

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST = 1_000
"""The most faults that a task sends."""
_MOST_WARNINGS = 10
"""The most warnings in one session. The table ``faults`` has all faults."""

News = Accumulator[list[str]]
E = TypeVar("E", bound=Event)
"""A kind of event."""


def line_of(faults: Sequence[str]) -> str:
    """The faults of files in one line.

    :param faults: their messages, at least one.
    """
    count = f"{MOST:,} faults or more" if len(faults) >= MOST else plural(len(faults), "fault")
    where = f"{faults[0]}; " if len(faults) == 1 else f"{count} of files; the first is: {faults[0]}; "
    return f"{where}the table faults says what is wrong (layer = 'file')"


def warn_of(faults: Sequence[str]) -> None:
    """Warn of the faults of files, if there are any."""
    if faults:
        # A line of our source would add nothing to the words.
        warnings.warn_explicit(line_of(faults), UserWarning, "kdissect", 1)


class _FaultNews(AccumulatorParam[list[str]]):
    """Adds messages; in the driver it warns of the new ones."""

    def __init__(self) -> None:
        self._known: set[str] | None = set()
        self._warned = 0

    def __reduce__(self) -> Any:
        return (_adding, ())  # a task has nobody to warn

    def forget(self) -> None:
        """Forget the known messages, so that further ones are only added."""
        self._known = None

    def zero(self, value: list[str]) -> list[str]:
        return []

    def addInPlace(self, value1: list[str], value2: list[str]) -> list[str]:  # noqa: N802 - Spark's name
        if self._known is None:
            return value1 + value2[: MOST - len(value1)]
        if self._warned == _MOST_WARNINGS:
            return []  # no more messages are kept
        news = [each for each in dict.fromkeys(value2) if each not in self._known]
        self._known.update(news)
        if news:
            self._warned += 1
            with suppress(UserWarning):  # in this thread of Spark an error would end the job
                warn_of(news)
        return []


def _adding() -> _FaultNews:
    made = _FaultNews()
    made.forget()
    return made


_OF_SESSIONS: dict[str, News] = {}
"""Accumulators by Spark's name of the application. Each driver has one application at a time, and workers
know the accumulator by its number."""


def fault_accumulator(spark: SparkSession) -> News | None:
    """The accumulator for faults of files; None with Spark Connect."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return None
    context = spark.sparkContext
    name = str(context.applicationId)
    if name not in _OF_SESSIONS:
        _OF_SESSIONS.clear()
        _OF_SESSIONS[name] = context.accumulator([], _FaultNews())
    return _OF_SESSIONS[name]


def send_faults(news: News | None, items: Iterable[object], paths: Sequence[str]) -> int:
    """Send the faults of files among these items to the driver, for a task that reads these files; return how
    many there are."""
    found = [each for each in items if isinstance(each, Fault) and each.layer == "file"]
    if news is not None and found:
        news.add([named(each, paths).message for each in found])
    return len(found)


def sending_faults(news: News | None, events: Iterable[E], paths: Sequence[str]) -> Iterator[E]:
    """The events. The faults of files among them are sent to the driver."""
    for event in events:
        if isinstance(event, Fault):
            send_faults(news, (event,), paths)
        yield event
