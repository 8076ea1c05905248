"""The time and memory that the processes of a command use.

This module imports little. A process begins with the memory of the process that forks it, and the system
counts that. So a benchmark that has loaded Arrow would measure its own size.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

_TICK = os.sysconf("SC_CLK_TCK")
_EVERY = 0.1


class Process(NamedTuple):
    """The time and memory of a process."""

    name: str
    cpu: float
    """CPU seconds."""
    peak: int
    """Resident bytes."""


def measure(
    command: list[str], variables: dict[str, str] | None = None, folder: str | None = None
) -> tuple[float, dict[int, Process]]:
    """Run a command; return its seconds, and the figures of each of its processes.

    :param variables: its environment; by default this process's, with this checkout first.
    :param folder: its folder; by default this process's.
    :raises RuntimeError: it fails.
    """
    used: dict[int, Process] = {}
    start = time.monotonic()
    if variables is None:
        variables = {**os.environ, "PYTHONPATH": os.getcwd()}
    running = subprocess.Popen(command, start_new_session=True, env=variables, cwd=folder)
    while running.poll() is None:
        for number, process in _processes(running.pid).items():
            known = used.get(number, process)  # an ended process has no figure of memory any more
            used[number] = process._replace(peak=max(process.peak, known.peak))
        time.sleep(_EVERY)
    if running.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {running.returncode}")
    return time.monotonic() - start, used


def _processes(session: int) -> dict[int, Process]:
    """The processes of a session."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
            fields = rest.split()
            if int(fields[3]) != session:
                continue
            status = (folder / "status").read_text()
        except OSError:
            continue  # it has ended
        peak = next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)
        cpu = (int(fields[11]) + int(fields[12])) / _TICK
        found[int(folder.name)] = Process(name, cpu, peak * 1024)
    return found
