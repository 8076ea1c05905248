"""The statistics by name, as ``-z`` asks for them: a name, and perhaps how, after commas.

srt  srt,broker  srt,client,client_id  srt,topic  topics  positions  groups  members  rebalances
connections  clients  versions  errors  errors,client_id  errors,group,topic  io  io,100ms
"""

from __future__ import annotations

from collections.abc import Callable

from kdissect.analysis import errors, srt
from kdissect.analysis.clients import Clients
from kdissect.analysis.connections import Connections
from kdissect.analysis.errors import Errors
from kdissect.analysis.fold import Statistic
from kdissect.analysis.groups import Groups, Members, Rebalances
from kdissect.analysis.intervals import Intervals
from kdissect.analysis.positions import Positions
from kdissect.analysis.srt import ResponseTimes
from kdissect.analysis.topics import Topics
from kdissect.analysis.versions import Versions
from kdissect.durations import DURATIONS, FORM, duration_ns
from kdissect.limits import DEFAULTS, Limits

STATISTICS: dict[str, type[Statistic]] = {
    "srt": ResponseTimes,
    "topics": Topics,
    "positions": Positions,
    "groups": Groups,
    "members": Members,
    "rebalances": Rebalances,
    "connections": Connections,
    "clients": Clients,
    "versions": Versions,
    "errors": Errors,
    "io": Intervals,
}

GROUPED: dict[str, tuple[Callable[[Limits, tuple[str, ...]], Statistic], tuple[str, ...]]] = {
    "srt": (ResponseTimes, srt.GROUPINGS),
    "errors": (Errors, errors.GROUPINGS),
}
"""Those whose rows are told apart as asked for."""

SHORTEST_NS = DURATIONS["us"]
"""Of intervals."""


def statistic(text: str, limits: Limits = DEFAULTS) -> tuple[str, Statistic]:
    """The statistic that ``text`` asks for, with its name.

    :raises LookupError: there is none of that name.
    :raises ValueError: what follows the name is not understood; the text says what may.
    """
    name, *how = (part.strip() for part in text.split(","))
    if name in GROUPED:
        made, groupings = GROUPED[name]
        wrong = [word for word in how if word not in groupings]
        if wrong:
            raise ValueError(f"{name},{wrong[0]}: rows are told apart by {', '.join(groupings)}")
        return name, made(limits, tuple(how))
    if name == "io" and len(how) == 1:
        return name, Intervals(limits, interval_ns(how[0]))
    if how and name in STATISTICS:
        raise ValueError(f"{text}: nothing may follow {name} but, for io, an interval such as 100ms")
    return name, STATISTICS[name](limits)


def interval_ns(text: str) -> int:
    """``1s``, ``0.5``, ``100ms``, ``5m`` in nanoseconds; without a unit they are seconds.

    :raises ValueError: it is not of that form, or shorter than a microsecond.
    """
    try:
        length = duration_ns(text)
    except ValueError:
        length = 0
    if length < SHORTEST_NS:
        raise ValueError(f"io,{text}: the interval is {FORM}, and no less than 1us")
    return length
