"""Times in a capture, as options take them: ``+30s`` after its beginning, ``-5s`` before its end, a date and
time, ``@MS`` since the epoch."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from kdissect.cli.errors import Wrong
from kdissect.durations import duration_ns
from kdissect.present.form import Clock

FORM = "+30s (after the beginning), -5s (before the end), a date and time, or @MS"
MILLISECOND = 1_000_000


class Moment(NamedTuple):
    """A time that is asked for."""

    text: str
    ns: int
    """Since the epoch, or from where it counts."""
    base: str
    """What it counts from: ``+`` the beginning, ``-`` back from the end, nothing: the epoch."""

    def within(self, option: str, first_ns: int, last_ns: int) -> int:
        """The time, ns since the epoch.

        :raises Wrong: the capture has nothing then.
        """
        ns = {"+": first_ns + self.ns, "-": last_ns - self.ns}.get(self.base, self.ns)
        if not first_ns <= ns <= last_ns:
            clock = Clock("u")
            raise Wrong(
                f"{option} {self.text}: the capture has nothing then; it lasts from {clock.text(first_ns)} "
                f"to {clock.text(last_ns)}, +{(last_ns - first_ns) / 1e9:.3f}s"
            )
        return ns


def moment(option: str, text: str) -> Moment:
    """What an option's value means.

    :raises Wrong: it is no time.
    """
    if text[:1] in ("+", "-"):
        try:
            return Moment(text, duration_ns(text[1:]), text[0])
        except ValueError:
            raise _no_time(option, text) from None
    if re.fullmatch(r"@[0-9]{1,18}", text):
        return Moment(text, int(text[1:]) * MILLISECOND, "")
    try:
        when = datetime.fromisoformat(text)
        when = when if when.tzinfo is not None else when.astimezone()
    except (ValueError, OverflowError, OSError):
        raise _no_time(option, text) from None
    return Moment(text, (when - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1_000, "")


def _no_time(option: str, text: str) -> Wrong:
    return Wrong(f"{option} {text or repr(text)}: this is no time; give {FORM}")
