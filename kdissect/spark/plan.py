"""Names of captures → which files are one capture, and how its work is shared.

All files are one capture, as for ``kdissect read``, unless the setting ``capture_point`` tells several
apart. One task reads a capture point, each byte once, and dissects it. If a point is large and there
are more cores than points, the task keeps the events. Several other tasks then make the rows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from kdissect.spark.settings import DIRECTORY, TableSettings
from kdissect.spark.storage import InputFile, list_files, unopened, without_query
from kdissect.wording import plural

if TYPE_CHECKING:
    import pyarrow as pa

MOST_REPLICAS = 4
"""The most tasks that share a capture. Dissecting takes about half of all work, and each task does it, so
more tasks gain little."""
BYTES_A_TASK = 32 << 20
"""The bytes for one task. With less to do, another task costs more than it saves."""


class CapturePoint(NamedTuple):
    """Files that are one capture."""

    name: str
    files: tuple[InputFile, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of its files, in the order in which they were named."""
        return tuple(file.path for file in self.files)

    @property
    def size(self) -> int:
        """The bytes of its files."""
        return sum(file.size for file in self.files)


class Plan(NamedTuple):
    """What is read, and by how many tasks."""

    points: tuple[CapturePoint, ...]
    tasks: tuple[int, ...]
    """How many tasks make the rows of each point."""
    passes: int = 1
    """How often a task reads the captures."""
    is_set_by_user: bool = True
    """Whether the user set the number of tasks; otherwise it depends on the cores of the session
    (:meth:`on`)."""

    @property
    def size(self) -> int:
        """The bytes of all captures; 0 if unknown."""
        return sum(point.size for point in self.points)

    @property
    def bytes_to_read(self) -> int:
        """The bytes that all tasks together read of captures."""
        return self.passes * self.size

    def on(self, cores: int) -> Plan:
        """The plan for a number of cores: the larger a capture point is, the more of them make its rows."""
        if self.is_set_by_user:
            return self
        share = cores / max(self.size, 1)
        tasks = tuple(tasks_for(point.size, round(point.size * share)) for point in self.points)
        return self._replace(tasks=tasks, is_set_by_user=True)

    def lines(self) -> list[str]:
        """The plan in words, with sizes in MiB (1,048,576 bytes), and the reason for files that cannot be
        read."""
        reading = plural(len(self.points), "task")
        out = [f"{reading} to read {_mib(self.bytes_to_read)} of {_mib(self.size)}"]
        for point, tasks in zip(self.points, self.tasks, strict=True):
            name = f"capture point {point.name}" if point.name else "one capture"
            rows = "1 task" if tasks == 1 else f"1 task reads it, {tasks} make its rows"
            if not self.is_set_by_user and point.size > BYTES_A_TASK:
                rows = "1 task reads it; the number of cores decides how many tasks make its rows"
            out.append(f"{name}: {plural(len(point.files), 'file')}, {_mib(point.size)}, {rows}")
            out += [f"  {file.path} ({_state_of(file)})" for file in point.files]
        return out


def plan(paths: list[str], settings: TableSettings) -> Plan:
    """The plan for these captures.

    :raises CaptureError: there is no file.
    :raises ValueError: a file belongs to no capture point, or the regular expression is wrong.
    """
    points = capture_points(list_files(paths), settings.capture_point)
    passes = 2 if settings.two_pass else 1
    return Plan(points, (settings.tasks or 1,) * len(points), passes, settings.tasks is not None)


def task_numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    """The numbers that ``spark.range`` gives a task."""
    for batch in batches:
        yield from batch.column(0).to_pylist()


def tasks_for(size: int, wanted: int) -> int:
    """How many tasks share a capture of ``size`` bytes, if ``wanted`` tasks can run at a time."""
    return max(1, min(wanted, -(-size // BYTES_A_TASK)))


def replicas_of(point: CapturePoint, settings: TableSettings) -> int:
    """How many tasks share a capture without a plan. Each task reads everything."""
    return settings.tasks or tasks_for(point.size, min(MOST_REPLICAS, os.cpu_count() or 1))


def capture_points(files: list[InputFile], rule: str | None) -> tuple[CapturePoint, ...]:
    """Which files are one capture; ``rule`` is the setting ``capture_point``. A folder that cannot be listed
    is a point of its own, because the captures in it are unknown.

    :raises ValueError: a file belongs to no capture point, or the regular expression is wrong.
    """
    if rule is None:
        return (CapturePoint("", tuple(files)),)
    points: dict[str, list[InputFile]] = {}
    for file in files:
        name = file.path if file.is_folder else point_of(file.path, rule)
        points.setdefault(name, []).append(file)
    return tuple(CapturePoint(name, tuple(points[name])) for name in sorted(points))


def point_of(path: str, rule: str | None) -> str:
    """The name of the capture point of a file.

    :raises ValueError: it belongs to no capture point, or the regular expression is wrong.
    """
    if rule is None:
        return ""
    name = without_query(path)
    if rule == DIRECTORY:
        return os.path.dirname(name) or "."
    try:
        found = re.search(rule, name)
    except re.error as error:
        raise ValueError(f"capture_point: {rule!r} is not a regular expression: {error}") from None
    if found is None:
        raise ValueError(f"capture_point: {rule!r} matches nothing in {path}")
    return found[1] if found.re.groups else found[0]


def _state_of(file: InputFile) -> str:
    error = unopened(file.path)
    return _mib(file.size) if error is None else f"cannot be read: {error.strerror or error}"


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MiB"
