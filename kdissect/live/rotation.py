"""When a file of a capture is full, when a capture ends, and the names of files: dumpcap's ``-b`` and
``-a``."""

from __future__ import annotations

import os
import re
import time
from typing import NamedTuple

from kdissect.durations import DURATIONS, duration_ns

_KILOBYTE = 1_000


class Bounds(NamedTuple):
    """Limits. The first one reached ends the file or the capture. None is no limit."""

    seconds: float | None = None
    bytes: int | None = None
    packets: int | None = None
    files: int | None = None
    interval: int | None = None
    """A new file whenever the time of day is a multiple of this many seconds."""

    @property
    def rotates(self) -> bool:
        """Whether there is more than one file."""
        return any(each is not None for each in (self.seconds, self.bytes, self.packets, self.interval))

    def are_reached(self, seconds: float, size: int, packets: int) -> bool:
        """Whether a file or a capture of this age and size is complete."""
        return (
            (self.seconds is not None and seconds >= self.seconds)
            or (self.bytes is not None and size >= self.bytes)
            or (self.packets is not None and packets >= self.packets)
        )


_FORMS = {"duration": "60s", "interval": "60s", "filesize": "KILOBYTES", "packets": "N", "files": "N"}
"""The form of the value after each name, for the user."""


def bounds_of(rules: tuple[str, ...], names: tuple[str, ...]) -> Bounds:
    """Limits in dumpcap's form: ``duration:60`` (seconds, or ``1m``), ``filesize:1000`` (kilobytes) …

    :param names: the names that are allowed here.
    :raises ValueError: a rule has another form; the text is for the user.
    """
    found: dict[str, float] = {}
    for rule in rules:
        name, _, text = rule.partition(":")
        value = _value(name, text) if name in names else 0
        if value <= 0:
            forms = ", ".join(f"{name}:{_FORMS[name]}" for name in names)
            raise ValueError(f"{rule}: the form is {forms}, each above 0")
        found[name] = value
    whole = {name: int(value) for name, value in found.items() if name != "duration"}
    size = whole.get("filesize")
    return Bounds(
        found.get("duration"),
        None if size is None else size * _KILOBYTE,
        whole.get("packets"),
        whole.get("files"),
        whole.get("interval"),
    )


def _value(name: str, text: str) -> float:
    """The number of a rule, times in seconds; 0 if the text is no such number."""
    if name not in ("duration", "interval"):
        return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else 0
    try:
        span = duration_ns(text)
    except ValueError:
        return 0
    is_whole = span % DURATIONS["s"] == 0
    return span / DURATIONS["s"] if name == "duration" or is_whole else 0


def file_name(path: str, number: int, now_ns: int) -> str:
    """``out.pcapng`` as ``out_00001_20260131235959.pcapng``: dumpcap's names, in local time."""
    stem, extension = os.path.splitext(path)
    when = time.strftime("%Y%m%d%H%M%S", time.localtime(now_ns // 1_000_000_000))
    return f"{stem}_{number:05d}_{when}{extension}"
