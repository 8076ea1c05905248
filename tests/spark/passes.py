"""What tasks of Spark do, without Spark."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from kdissect.spark import one_pass
from kdissect.spark.job import Job, RequestedTable, TaskOutcome, Unit
from kdissect.spark.settings import TableSettings

FILE_BYTES = 8_000
"""Small captures, too, are kept in several files."""


def job_of(
    paths: Sequence[Path],
    tables: Sequence[str],
    tasks: int = 1,
    settings: TableSettings | None = None,
    shares: int = 1,
    **more: Any,
) -> Job:
    """What is done of one capture.

    :param tasks: so many make the rows of what one reads.
    :param shares: so many read everything, and make a share of the rows.
    """
    settings = settings or TableSettings()
    names = tuple(map(str, paths))
    wanted = tuple(RequestedTable(name, settings._replace(table=name)) for name in tables)
    units = tuple(Unit("", names, share, shares, tasks, FILE_BYTES) for share in range(shares))
    return Job(units, wanted, settings, key=b"of this job", **more)


def do(job: Job, folder: Path, number: int) -> TaskOutcome:
    """What one of the tasks does."""
    (told,) = begun(job, folder, number)
    found: TaskOutcome = pickle.loads(told.column(0)[0].as_py())
    return found


def begun(job: Job, folder: Path, number: int) -> Iterator[pa.RecordBatch]:
    """The same, to be gone through."""
    return one_pass._write(job, str(folder), [pa.record_batch([[number]], names=["id"])])


def rest_of(job: Job, outcomes: Sequence[TaskOutcome]) -> Job:
    """What is to be done of what the first tasks kept."""
    kept = tuple(rows for each in outcomes for rows in each.kept)
    return job._replace(units=kept, first=len(job.units))


def pass_over(
    paths: Sequence[Path], folder: Path, tables: Sequence[str], tasks: int = 1, **more: Any
) -> list[TaskOutcome]:
    """What all of them do."""
    job = job_of(paths, tables, tasks, **more)
    outcomes = [do(job, folder, number) for number in range(len(job.units))]
    rest = rest_of(job, outcomes)
    return outcomes + [do(rest, folder, number) for number in range(len(rest.units))]
