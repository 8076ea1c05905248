"""Points in time as values of options: ``--since +30s``, ``--at 2026-11-22T12:00:00Z``."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from kdissect.analysis.fold import SECOND
from kdissect.cli.errors import Wrong
from kdissect.durations import duration_ns
from kdissect.filter.errors import FilterError
from kdissect.filter.literals import moment
from kdissect.filter.syntax import Word

_FORM = "+30s counts from the first packet; else 12:03:01, or 2026-11-22T12:03:01Z"


class Moment(NamedTuple):
    """A point in time, as somebody wrote it."""

    ns: int
    from_first: bool = False
    """Whether it counts from the first packet; else from the epoch, or from midnight."""
    of_day: bool = False
    """Whether it is a time of the day of the first packet, local."""

    def ns_since_epoch(self, first_ns: int) -> int:
        """When that is.

        :param first_ns: the time of the first packet.
        """
        if self.from_first:
            return first_ns + self.ns
        if self.of_day:
            day = datetime.fromtimestamp(first_ns // SECOND).replace(hour=0, minute=0, second=0)
            return int(day.timestamp()) * SECOND + self.ns
        return self.ns


def moment_of(text: str, option: str) -> Moment:
    """The point in time that a text means.

    :raises Wrong: it is none; the text says which forms there are.
    """
    text = text.strip()
    if text.startswith("+"):
        try:
            return Moment(duration_ns(text[1:]), from_first=True)
        except ValueError as error:
            raise Wrong(f"{option} {error}") from None
    try:
        found = moment(Word(text, text, False, 0, len(text)), "ns", option)
    except FilterError:
        raise Wrong(f"{option} {text}: there is no such time: {_FORM}") from None
    return Moment(int(found.value), of_day=found.of_day)
