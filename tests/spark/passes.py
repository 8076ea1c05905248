"""What tasks of Spark do, without Spark."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from kdissect.spark import one_pass
from kdissect.spark.one_pass import Job, Outcome, Unit, Wanted
from kdissect.spark.settings import Settings


def job_of(
    paths: Sequence[Path],
    tables: Sequence[str],
    tasks: int = 1,
    settings: Settings | None = None,
    **more: Any,
) -> Job:
    """What ``tasks`` tasks do together."""
    settings = settings or Settings()
    names = tuple(map(str, paths))
    wanted = tuple(Wanted(name, settings._replace(table=name)) for name in tables)
    units = tuple(Unit("", names, share, tasks) for share in range(tasks))
    return Job(units, wanted, settings, **more)


def do(job: Job, folder: Path, number: int) -> Outcome:
    """What one of them does."""
    (told,) = begun(job, folder, number)
    found: Outcome = pickle.loads(told.column(0)[0].as_py())
    return found


def begun(job: Job, folder: Path, number: int) -> Iterator[pa.RecordBatch]:
    """The same, to be gone through."""
    return one_pass._write(job, str(folder), [pa.record_batch([[number]], names=["id"])])


def pass_over(
    paths: Sequence[Path], folder: Path, tables: Sequence[str], tasks: int = 1, **more: Any
) -> list[Outcome]:
    """What all of them do."""
    job = job_of(paths, tables, tasks, **more)
    return [do(job, folder, number) for number in range(tasks)]
