"""Runs of ``spark batch --append`` without Spark: what each run brings, and what is carried on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kdissect.dissect import Event
from kdissect.spark.micro_batch import events_of_batch
from kdissect.spark.nightly import Inputs
from kdissect.spark.progress import Note
from kdissect.spark.settings import TableSettings
from kdissect.spark.spool import Position, SpoolFolder, spans_between
from kdissect.spark.states import States


class Nightly:
    """The runs, and the position after each."""

    def __init__(self, states: Path, rule: str | None = None) -> None:
        self._states = States(str(states))
        self._states.prepare()
        self._settings = TableSettings(capture_point=rule)
        self._position: Position = {}
        self._run = 0

    def add(self, *folders: Path) -> Iterator[tuple[str, Event]]:
        """Capture point and event, of what is new in the folders."""
        self._run += 1
        start, rule = self._position, self._settings.capture_point
        spool = SpoolFolder("", rule, there=Inputs([str(each) for each in folders], start, {}))
        self._position = spool.next(start)
        spans = spans_between(start, self._position, rule)
        for point in sorted({span.point for span in spans}):
            own = [span for span in spans if span.point == point]
            for event in events_of_batch(self._states, self._run, point, own, self._settings, Note(None, "")):
                yield point, event
        self._states.forget()
