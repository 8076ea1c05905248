"""Names of captures → what is one capture, and how its work is shared.

All files are one capture, as for ``kdissect read``, unless the setting ``capture_point`` tells several
apart. Which strategy shares a capture's work among tasks is chosen by their number:

``replicas``  every task reads and frames everything, and makes the rows of its share of the exchanges.
``buckets``   every task reads everything and frames some of the connections, twice: first to number the
              exchanges, then to make rows.
``shuffle``   every task reads a part of the files and sends what it read to the task of its connection
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from kdissect.spark.settings import DIRECTORY, Settings
from kdissect.spark.storage import File, list_files
from kdissect.wording import plural

STRATEGIES = ("auto", "replicas", "buckets", "shuffle")
MOST_REPLICAS = 4
"""Framing takes about half of all work: with more tasks than these, sharing it too costs less than doing
it in each of them."""
MOST_BUCKETS = 16
"""The same of reading."""
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

    strategy: str
    points: tuple[CapturePoint, ...]
    tasks: tuple[int, ...]
    """Of each point."""

    @property
    def bytes_to_read(self) -> int:
        """What all tasks and steps together read of captures, for one table."""
        sizes = [point.size for point in self.points]
        if self.strategy == "shuffle":
            return 4 * sum(sizes)
        every = sum(size * count for size, count in zip(sizes, self.tasks, strict=True))
        return every if self.strategy == "replicas" else 2 * every

    def lines(self) -> list[str]:
        """The plan in words."""
        size = _mib(sum(point.size for point in self.points))
        out = [f"strategy {self.strategy}: {plural(sum(self.tasks), 'task')}, {size}"]
        for point, tasks in zip(self.points, self.tasks, strict=True):
            name = f"capture point {point.name}" if point.name else "one capture"
            out.append(
                f"{name}: {plural(len(point.files), 'file')}, {_mib(point.size)}, {plural(tasks, 'task')}"
            )
            out += [f"  {file.path} ({_mib(file.size)})" for file in point.files]
        return out


def plan(paths: list[str], settings: Settings, cores: int, strategy: str = "auto") -> Plan:
    """What to do with these captures on so many cores.

    :raises CaptureError: no file is there.
    :raises ValueError: a file belongs to no capture point, or the regular expression is wrong.
    """
    points = capture_points(list_files(paths), settings.capture_point)
    wanted = -(-cores // len(points))
    tasks = tuple(settings.tasks or tasks_for(point.size, wanted) for point in points)
    if strategy == "auto":
        most = max(tasks)
        strategy = "replicas" if most <= MOST_REPLICAS else "buckets" if most <= MOST_BUCKETS else "shuffle"
    return Plan(strategy, points, tasks)


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
