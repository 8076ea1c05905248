"""Names of captures → what is one capture, and how its work is shared.

All files are one capture, as for ``kdissect read``, unless the setting ``capture_point`` tells several
apart. A task has a capture point: it reads each byte once, and makes the rows of all tables. The setting
``tasks`` has several tasks share the rows of a capture point. Each of them reads and dissects all of it. That
costs more, and ends sooner where making rows is most of the work.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from kdissect.spark.settings import DIRECTORY, Settings
from kdissect.spark.storage import File, list_files
from kdissect.wording import plural

if TYPE_CHECKING:
    import pyarrow as pa

MOST_REPLICAS = 4
"""Dissecting takes about half of all work, and each task does it: more tasks than these gain little."""
BYTES_A_TASK = 32 << 20
"""With less to do, another task costs more than it saves."""


class CapturePoint(NamedTuple):
    """Files that are one capture."""

    name: str
    files: tuple[File, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(file.path for file in self.files)

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(file.size for file in self.files)


class Plan(NamedTuple):
    """What is read by how many tasks."""

    points: tuple[CapturePoint, ...]
    tasks: tuple[int, ...]
    """Of each point."""
    passes: int = 1
    """How often a task reads."""

    @property
    def size(self) -> int:
        """Bytes of all captures; 0 where that cannot be told."""
        return sum(point.size for point in self.points)

    @property
    def bytes_to_read(self) -> int:
        """What all tasks together read of captures."""
        return self.passes * sum(
            point.size * count for point, count in zip(self.points, self.tasks, strict=True)
        )

    def lines(self) -> list[str]:
        """The plan in words."""
        out = [f"{plural(sum(self.tasks), 'task')}: {_mib(self.bytes_to_read)} to read of {_mib(self.size)}"]
        for point, tasks in zip(self.points, self.tasks, strict=True):
            name = f"capture point {point.name}" if point.name else "one capture"
            out.append(
                f"{name}: {plural(len(point.files), 'file')}, {_mib(point.size)}, {plural(tasks, 'task')}"
            )
            out += [f"  {file.path} ({_mib(file.size)})" for file in point.files]
        return out


def plan(paths: list[str], settings: Settings) -> Plan:
    """What to do with these captures.

    :raises CaptureError: no file is there.
    :raises ValueError: a file belongs to no capture point, or the regular expression is wrong.
    """
    points = capture_points(list_files(paths), settings.capture_point)
    return Plan(points, (settings.tasks or 1,) * len(points), 2 if settings.two_pass else 1)


def task_numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    """What ``spark.range`` gives a task."""
    for batch in batches:
        yield from batch.column(0).to_pylist()


def tasks_for(size: int, wanted: int) -> int:
    """How many tasks share a capture of so many bytes, if ``wanted`` could run at a time."""
    return max(1, min(wanted, -(-size // BYTES_A_TASK)))


def replicas_of(point: CapturePoint, settings: Settings) -> int:
    """How many tasks share a capture where no plan was made. Each task reads everything."""
    return settings.tasks or tasks_for(point.size, min(MOST_REPLICAS, os.cpu_count() or 1))


def capture_points(files: list[File], rule: str | None) -> tuple[CapturePoint, ...]:
    """Which files are one capture; ``rule`` is the setting ``capture_point``.

    :raises ValueError: a file belongs to no capture point, or the regular expression is wrong.
    """
    if rule is None:
        return (CapturePoint("", tuple(files)),)
    points: dict[str, list[File]] = {}
    for file in files:
        points.setdefault(point_of(file.path, rule), []).append(file)
    return tuple(CapturePoint(name, tuple(points[name])) for name in sorted(points))


def point_of(path: str, rule: str | None) -> str:
    """The name of the capture point that a file belongs to.

    :raises ValueError: it belongs to no capture point, or the regular expression is wrong.
    """
    if rule is None:
        return ""
    if rule == DIRECTORY:
        return os.path.dirname(path) or "."
    try:
        found = re.search(rule, path)
    except re.error as error:
        raise ValueError(f"capture_point: {rule!r} is no regular expression: {error}") from None
    if found is None:
        raise ValueError(f"capture_point: {path} has nothing that {rule!r} finds")
    return found[1] if found.re.groups else found[0]


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MiB"
