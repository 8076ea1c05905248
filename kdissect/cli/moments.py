"""Points in time as values of options: ``--since +30s``, ``--at -5s``, ``--at 2026-11-22T12:00:00Z``."""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple

from kdissect.analysis.fold import MILLISECOND, SECOND
from kdissect.cli.errors import Wrong
from kdissect.durations import duration_ns
from kdissect.filter.errors import FilterError
from kdissect.filter.literals import moment
from kdissect.filter.syntax import Word
from kdissect.present.form import Clock

FORM = "+30s (after the first packet), 12:03:01, 2026-11-22T12:03:01Z, or @MS (since the epoch)"
FORM_AT_THE_END = f"-5s (before the last packet), {FORM}"


class MomentOption(NamedTuple):
    """A point in time, as the user wrote it."""

    text: str
    ns: int
    from_first: bool = False
    """Whether it counts from the first packet, and not from the epoch or from midnight."""
    of_day: bool = False
    """Whether it is a local time of day, on the day of the first packet."""
    before_last: bool = False
    """Whether it counts back from the last packet."""

    def ns_since_epoch(self, first_ns: int, last_ns: int | None = None) -> int:
        """The time in ns since the epoch.

        :param first_ns: the time of the first packet.
        :param last_ns: the time of the last packet, if the option may count from it.
        """
        if self.before_last:
            assert last_ns is not None
            return last_ns - self.ns
        if self.from_first:
            return first_ns + self.ns
        if self.of_day:
            day = datetime.fromtimestamp(first_ns // SECOND).replace(hour=0, minute=0, second=0)
            return int(day.timestamp()) * SECOND + self.ns
        return self.ns

    def within(self, option: str, first_ns: int, last_ns: int) -> int:
        """The time, in a capture from ``first_ns`` to ``last_ns``.

        :raises Wrong: the capture has nothing then.
        """
        ns = self.ns_since_epoch(first_ns, last_ns)
        if not first_ns <= ns <= last_ns:
            clock = Clock("u")
            raise Wrong(
                f"{option} {self.text}: the capture has no packets at that time; it lasts from "
                f"{clock.text(first_ns)} to {clock.text(last_ns)}, +{(last_ns - first_ns) / SECOND:.3f}s"
            )
        return ns


def moment_of(text: str, option: str, at_the_end: bool = False) -> MomentOption:
    """Parse a point in time.

    :param at_the_end: whether the last packet is known when the time is needed.
    :raises Wrong: it has another form; the text lists the forms.
    """
    form = FORM_AT_THE_END if at_the_end else FORM
    text = text.strip()
    if text.startswith("+") or (at_the_end and text.startswith("-")):
        try:
            length = duration_ns(text[1:])
        except ValueError:
            raise Wrong(f"{option} {text}: this is not a time; give {form}") from None
        return MomentOption(text, length, from_first=text[0] == "+", before_last=text[0] == "-")
    if re.fullmatch(r"@[0-9]{1,18}", text):
        return MomentOption(text, int(text[1:]) * MILLISECOND)
    # Before 1973: the number counts seconds, milliseconds or microseconds.
    if re.fullmatch(r"[0-9]{1,17}(\.[0-9]*)?", text):
        raise Wrong(f"{option} {text}: this number is not a time in nanoseconds since 1970; give {form}")
    try:
        found = moment(Word(text, text, False, 0, len(text)), "ns", option)
    except FilterError:
        raise Wrong(f"{option} {text or repr(text)}: this is not a time; give {form}") from None
    return MomentOption(text, int(found.value), of_day=found.of_day)
