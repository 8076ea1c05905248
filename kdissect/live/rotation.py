"""When a file of a capture is full, when a capture has gone on for long enough, and what files are called:
dumpcap's ``-b`` and ``-a``."""

from __future__ import annotations

import os
import re
import time
from typing import NamedTuple

_FORM = re.compile(r"(duration|interval|filesize|packets|files):(\d+)")
_KILOBYTE = 1_000


class Bounds(NamedTuple):
    """Limits; the first that is reached counts. None is no limit."""

    seconds: int | None = None
    bytes: int | None = None
    packets: int | None = None
    files: int | None = None
    interval: int | None = None
    """A new file whenever the time of day is a multiple of so many seconds."""

    @property
    def rotates(self) -> bool:
        """Whether there is more than one file."""
        return any(each is not None for each in (self.seconds, self.bytes, self.packets, self.interval))

    def are_reached(self, seconds: float, size: int, packets: int) -> bool:
        """Whether a file, or a capture, that has these is complete."""
        return (
            (self.seconds is not None and seconds >= self.seconds)
            or (self.bytes is not None and size >= self.bytes)
            or (self.packets is not None and packets >= self.packets)
        )


def bounds_of(rules: tuple[str, ...], names: tuple[str, ...]) -> Bounds:
    """Limits as dumpcap has them: ``duration:60``, ``filesize:1000`` (kilobytes), ``files:10`` …

    :param names: those that count here.
    :raises ValueError: a rule has another form; the text is for the user.
    """
    found: dict[str, int] = {}
    for rule in rules:
        match = _FORM.fullmatch(rule)
        if match is None or match[1] not in names or int(match[2]) == 0:
            raise ValueError(f"{rule}: the form is {', '.join(f'{name}:N' for name in names)}, N above 0")
        found[match[1]] = int(match[2])
    size = found.get("filesize")
    return Bounds(
        found.get("duration"),
        None if size is None else size * _KILOBYTE,
        found.get("packets"),
        found.get("files"),
        found.get("interval"),
    )


def file_name(path: str, number: int, now_ns: int) -> str:
    """``out.pcapng`` as ``out_00001_20260131235959.pcapng``: dumpcap's names, in local time."""
    stem, extension = os.path.splitext(path)
    when = time.strftime("%Y%m%d%H%M%S", time.localtime(now_ns // 1_000_000_000))
    return f"{stem}_{number:05d}_{when}{extension}"
