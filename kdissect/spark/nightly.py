"""Captures that come day by day → tables that grow: each run reads what is new, and connections go on.

A run is a batch of a stream (:mod:`kdissect.spark.micro_batch`). For each capture point a task takes what
is carried from the run before, and reads the new bytes. It leaves open exchanges for the next run. The plan
of a run names the new bytes. It is stored before anything is read (:mod:`kdissect.spark.runs`). If a run
dies, it is repeated from its plan, and targets accept the rows of a run only once. So each row is there
once, whenever a run dies.

kdissect does not load a state of another version. It makes the same state again from the files of the
earlier runs. If they are gone, it says so; with ``--drain`` it then ends the state.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import kdissect
from kdissect.faults import fault
from kdissect.lazy import Later
from kdissect.model import Fault
from kdissect.spark.job import batch_units
from kdissect.spark.job_descriptions import described
from kdissect.spark.micro_batch import UPGRADED, WAITED, keep, made_again, why_lost
from kdissect.spark.run_request import difference, stored_request
from kdissect.spark.runs import RunPlan, Runs, RunsError, digest_of
from kdissect.spark.settings import TableSettings
from kdissect.spark.spool import FileSpan, Position, SpoolFolder, SpoolRead, spans_between
from kdissect.spark.states import StateError, States
from kdissect.spark.storage import (
    FoundFile,
    found_file,
    is_remote,
    list_files,
    may_be_there,
    unlisted,
    unopened,
)
from kdissect.spark.table_set import BatchOptions, add_batch
from kdissect.spark.tailing import OTHERS_ARE_READ, ends_whole
from kdissect.spark.targets import Target

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
else:
    pa = Later("pyarrow")


Shown = Callable[[int], AbstractContextManager[object]]
"""Returns, for a number of bytes, a context that shows the progress of tasks in a line."""


class NightlyOptions(NamedTuple):
    """What is written, and how."""

    tables: tuple[str, ...]
    by: tuple[str, ...]
    settings: TableSettings


class Inputs:
    """The files that a run may read: those that the user names, and those that were read before."""

    def __init__(self, paths: Sequence[str], known: Position, digests: dict[str, str]) -> None:
        self._paths = list(paths)
        self._known = known
        self._digests = digests
        self.doubles: dict[str, str] = {}
        """Copies of files that were read before, each with the name of that file."""
        self.refused: list[Fault] = []
        """Why known files, missing files, and files below a locked folder cannot be read now. No run reads
        them, so no run reports it."""

    def __call__(self) -> dict[str, SpoolRead]:
        """The files by path, with size and time of change. A folder that cannot be listed stands for its
        files, and is final: reading it reports the reason. The same holds for a new file that cannot be read,
        so that no run waits for it.

        :raises CaptureError: a directory is empty, or no file has such a name.
        """
        named = {_whole_path(file.path): True for file in list_files(self._paths)}
        found = {}
        for path in {**named, **self._known}:
            now, before = found_file(path), self._known.get(path)
            if now is None or (now.is_folder and unlisted(path) is None):
                is_unread = before is None or before.first_ns is None
                if now is None and path in named and (is_unread or may_be_there(path)):
                    self.refused += _refusal(path) or [_unreadable(path, os.strerror(errno.ENOENT))]
                continue
            if before is not None and _is_to_be_tried(now, before):
                refusal = _refusal(path)
                self.refused += refusal
                if refusal and not now.is_folder:
                    continue  # what is known of it stays
            is_refused = False
            if before is None:
                digest = _digest_of(path, now.size)
                is_refused = digest is None
                if digest is not None and (other := self._digests.get(digest)):
                    self.doubles[path] = other
                    continue
            found[path] = SpoolRead(now.size, now.is_folder, None, is_refused, now.modified_ns)
        return found


class RunOutcome(NamedTuple):
    """The result of a run."""

    row: dict[str, Any]
    """Its row in the table of runs."""
    is_repeated: bool
    """Whether it repeats a run that had died."""
    reads: bool = True
    """Whether it read something. Otherwise it may have written what was open."""


def add_new(
    spark: SparkSession,
    paths: Sequence[str],
    target: Target,
    asked: NightlyOptions,
    runs: Runs,
    tell: Callable[[list[Fault]], None],
    doubled: Callable[[str, str], None],
    closes: bool = False,
    drains: bool = False,
    shown: Shown | None = None,
) -> list[RunOutcome]:
    """Repeat a run that died, then read what is new; return an empty list if nothing is.

    :param tell: receives the faults of files.
    :param doubled: receives a file that is a copy of another, and that other one.
    :param closes: whether this is the last run: what is open then is written by a run of its own.
    :param drains: whether what is open then is written, and connections begin anew in the next run. If a run
        ended all states of another build, it has done that.
    :param shown: receives the new bytes of each run, while its tasks run.
    :raises CaptureError: there are no such files.
    :raises StateError: the carried state cannot be used.
    :raises RunsError: earlier runs asked for something else, or the last one closed the tables.
    :raises TargetError: rows cannot be written.
    """
    states = States(runs.states, ends_others=drains)
    states.prepare()
    upgrades: list[Fault] = []

    def report(faults: list[Fault]) -> None:
        upgrades.extend(each for each in faults if each.kind == UPGRADED)
        tell(faults)

    out = []
    number = runs.last() + 1
    died = runs.plan(number)
    before = died or runs.plan(number - 1)
    if before is not None and (change := difference(before.asked, _text_of(asked))) is not None:
        raise RunsError(f"{change}, as in run {before.number}, or give another --out or --to")
    if died is not None:
        if asked.settings.has_secrets and not died.has_secrets:
            died = died._replace(has_secrets=True)
        row = _run(spark, died, target, runs, states, _asked_of(died, asked), report, shown)
        out.append(RunOutcome(row, True, not (died.closes or died.drains)))
        number += 1
    start = runs.position(number - 1)
    inputs = Inputs(paths, start, runs.digests())
    settings = asked.settings
    end = SpoolFolder("", settings.capture_point, settings.limits, there=inputs).next(start)
    if _has_nothing_new(start, end, runs, settings):
        end = start
    for path, other in inputs.doubles.items():
        doubled(path, other)
    if inputs.refused:
        tell(inputs.refused)
    last = runs.plan(number - 1)
    is_closed = last is not None and last.closes
    if end != start:
        if is_closed:
            raise RunsError(f"{runs.folder}: run {number - 1} closed these tables; give another --out")
        changed = [path for path, read in end.items() if start.get(path) != read]
        made = {path: _digest_of(path, end[path].size) for path in changed}
        digests = {path: digest for path, digest in made.items() if digest is not None}
        plan = RunPlan(number, end, digests, _text_of(asked), has_secrets=settings.has_secrets)
        out.append(RunOutcome(_run(spark, plan, target, runs, states, asked, report, shown), False))
        number += 1
        last = plan
    drains = drains and not (upgrades and not states.of_others(number))
    is_open = last is not None and not last.closes and not (drains and last.drains)
    if (closes or drains) and is_open:
        plan = RunPlan(number, end, {}, _text_of(asked), closes, drains, settings.has_secrets)
        out.append(
            RunOutcome(_run(spark, plan, target, runs, states, asked, report, shown), False, reads=False)
        )
    return out


def _has_nothing_new(start: Position, end: Position, runs: Runs, settings: TableSettings) -> bool:
    """Whether a run would have nothing to report: it would only look again at unchanged files, to report
    those that end in the middle of a packet. To check that, this reads the whole files, but only once."""
    changed = [path for path in {**start, **end} if start.get(path) != end.get(path)]
    for path in changed:
        before, now = start.get(path), end.get(path)
        if before is None or now is None or before[:3] != now[:3]:
            return False
    known, now_whole = runs.whole(), {path: end[path] for path in changed}
    unseen = [path for path, read in now_whole.items() if known.get(path) != read]
    if not all(ends_whole(path, end[path].size, settings.limits) for path in unseen):
        return False
    if unseen:
        runs.keep_whole(now_whole)
    return True


def _is_to_be_tried(now: FoundFile, before: SpoolRead) -> bool:
    """Whether a known file or folder must be read, or would have to be if it were readable."""
    is_touched = (before.size, before.modified_ns) != (now.size, now.modified_ns)
    return now.is_folder or is_touched or before.first_ns is None


def _refusal(path: str) -> list[Fault]:
    """A fault if a file of this machine cannot be read."""
    error = unopened(path)
    return [] if error is None else [_unreadable(path, error.strerror or str(error))]


def _unreadable(path: str, why: str) -> Fault:
    return fault("unreadable", f"{path}: cannot be read: {why}{OTHERS_ARE_READ}")


def _digest_of(path: str, size: int) -> str | None:
    """The digest of :func:`digest_of`; None if the file cannot be read on this machine. Reading it then
    reports the reason."""
    try:
        return digest_of(path, size)
    except OSError:
        if is_remote(path):
            raise
        return None


def _whole_path(path: str) -> str:
    return path if is_remote(path) else os.path.abspath(path)


def _text_of(asked: NightlyOptions) -> dict[str, Any]:
    return stored_request(asked.tables, asked.by, asked.settings)


def _asked_of(plan: RunPlan, now: NightlyOptions) -> NightlyOptions:
    """The options in a plan, with the current secrets and the current folder of progress."""
    value = plan.asked
    own = now.settings
    settings = TableSettings.of(value["options"])
    settings = settings._replace(progress=own.progress, keylog=own.keylog, rsa_key=own.rsa_key)
    return NightlyOptions(tuple(value["tables"]), tuple(value["by"]), settings)


def _run(
    spark: SparkSession,
    plan: RunPlan,
    target: Target,
    runs: Runs,
    states: States,
    asked: NightlyOptions,
    tell: Callable[[list[Fault]], None],
    shown: Shown | None,
) -> dict[str, Any]:
    begun, started_ns = time.monotonic(), time.time_ns()
    start = runs.position(plan.number - 1)
    ends = plan.closes or plan.drains
    spans = None if ends else spans_between(start, plan.end, asked.settings.capture_point)
    _renew(spark, runs, states, plan.number, asked.settings)
    runs.begin(plan)  # not earlier, because a run that is refused has not begun
    points = states.points() if spans is None else [span.point for span in spans]
    drained_at = plan.number if plan.drains else None
    units = partial(batch_units, states, plan.number, points, spans, drained_at=drained_at)
    options = BatchOptions(asked.tables, asked.by, asked.settings)
    new = {path: read.size - _size(start, path, read) for path, read in plan.end.items()}
    new_bytes = sum(max(0, size) for size in new.values())
    with nullcontext() if shown is None else shown(new_bytes):
        made = add_batch(spark, units, options, target, True, states.folder, joins=True)
    tell(made.damage)
    made.write(overwrite=False, run=plan.number)
    rows, tally = made.rows, made.tally
    row = {
        "run": plan.number,
        "identity": plan.identity,
        "started_ns": started_ns,
        "seconds": round(time.monotonic() - begun, 3),
        "cpu_seconds": round(made.cpu_seconds, 3),
        "files": len(plan.digests),
        "bytes": new_bytes,
        "rows": rows,
        **tally._asdict(),
        "kdissect": kdissect.__version__,
        "spark": spark.version,
    }
    if plan.drains:
        states.end_drain(plan.number)
    runs.end(row)
    states.forget()
    return row


def _size(start: Position, path: str, read: SpoolRead) -> int:
    """The bytes of a file that were read before, if it is the same file."""
    before = start.get(path)
    return before.size if before is not None and before.first_ns in (None, read.first_ns) else 0


# -- states of another version ----------------------------------------------------------------------


def _renew(spark: SparkSession, runs: Runs, states: States, number: int, settings: TableSettings) -> None:
    """Make lost states, and states of another version of kdissect, again from the files of earlier runs. If
    that is impossible, but states of others may be ended, the tasks of the run end them.

    :raises StateError: such a file is gone, or earlier runs were given TLS secrets.
    """
    rule = settings.capture_point
    ends: list[Position] = [{}, *(runs.position(each) for each in range(1, number))]
    gone = {read.point(path, rule) for end in ends for path, read in end.items()} - set(states.points())
    old = [*states.of_others(number), *sorted(gone)]
    if not old:
        return
    can_end = not gone and states.can_end(old, number)
    what = "a state is missing" if gone else "another build of kdissect wrote a state"
    why_not = f"{runs.states}: {what}."
    or_drain = "" if gone else f": {states.what_to_do(old, number)}"
    history: list[list[FileSpan] | None] = []
    for earlier, (start, end) in enumerate(pairwise(ends), 1):
        if (plan := runs.plan(earlier)) is not None and plan.drains:
            history.append(None)
            continue
        spans = [span for span in spans_between(start, end, rule) if span.point in old]
        for span in spans:
            if not span.is_gone and (why := why_lost(span)) is not None:
                if can_end:
                    return
                raise StateError(
                    f"{why_not} To make it again kdissect needs {span.path}, which {why}{or_drain}"
                )
        history.append(spans)
    known = [plan and plan.has_secrets for plan in map(runs.plan, range(1, number))]
    has_secrets = True if True in known else None if None in known else False
    work = partial(_read_again, tuple(old), history, runs.states, number, settings, has_secrets)
    with described(spark, "make states again that another version made"):
        made = spark.range(0, len(old), 1, len(old)).mapInArrow(work, "is_made boolean").collect()
    if not can_end and not all(row.is_made for row in made):
        raise StateError(f"{why_not} It cannot be made again, because {WAITED}{or_drain}")


def _read_again(
    points: Sequence[str],
    history: Sequence[Sequence[FileSpan] | None],
    folder: str,
    number: int,
    settings: TableSettings,
    has_secrets: bool | None,
    numbers: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Read what earlier runs read, and keep the state at the end. The old state stays until then, so that a
    run that dies here is repeated. For each capture point it gives whether that was possible.

    :param history: what each run read; None if it drained the state.
    """
    for each in numbers:
        for at in each.column(0).to_pylist():
            own = (
                None if spans is None else [span for span in spans if span.point == points[at]]
                for spans in history
            )
            carried = made_again(own, settings, has_secrets)
            if carried is not None:
                keep(States(folder), points[at], number - 1, carried)
            yield pa.record_batch([[carried is not None]], names=["is_made"])
