"""The base of all statistics, and the parts that build them.

    statistic = Topics()
    for event in events: statistic.feed(event)
    rows = statistic.result()

If a filter chooses the exchanges that count, all other events go to ``statistic.see(event)``. They are needed
because names of topic ids, fetch sessions and requests in flight follow from the whole traffic.

If ``b`` was fed the events after those of ``a``, ``a.merge(b)`` joins the two. Then ``a`` has the same
contents as one statistic fed with all events, as long as no limit was hit. :mod:`kdissect.analysis.whole`
makes this so beyond limits, too: it opens the rooms of folds. For this, a merged part must take as much room
as its events would have taken. Memory is bounded: the first
``limits.rows`` rows of a table are kept, and the events of other rows are counted in
:attr:`Statistic.left_out`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, Self, TypeVar

from kdissect.analysis.declared import Declared
from kdissect.analysis.first_names import FirstNames
from kdissect.analysis.latest import Latest
from kdissect.analysis.room import Room
from kdissect.analysis.rows import ROW_BYTES, K, R, Rows
from kdissect.dissect import Event
from kdissect.durations import DURATIONS, FORM, duration_ns
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.session.briefs import Brief, Interest
from kdissect.session.conversation import Connection

Row = dict[str, Any]
"""A row of a statistic's table: plain values by column."""

SECOND = 1_000_000_000
MILLISECOND = 1_000_000


SHORTEST_NS = DURATIONS["us"]
"""The shortest interval."""


def interval_ns(name: str, text: str) -> int:
    """``1s``, ``0.5``, ``100ms``, ``5m`` in nanoseconds; without a unit they are seconds.

    :param name: the name of the statistic, for the error's text.
    :raises ValueError: it is not of that form, or shorter than a microsecond.
    """
    try:
        length = duration_ns(text)
    except ValueError:
        length = 0
    if length < SHORTEST_NS:
        raise ValueError(f"{name},{text}: the interval is {FORM}, and no less than 1us")
    return length


class Fold(ABC):
    """An object that is fed the events of a capture, and can be merged."""

    at_every_point: ClassVar[bool] = False
    """Whether it takes in a connection's rows of all capture points; otherwise only the row that counts."""

    reads_tcp: ClassVar[bool] = False
    """Whether it reads the TCP facts in the rows of connections."""

    is_deep: ClassVar[bool] = False
    """Whether it unpacks every record, and is fed only on request."""

    apis: ClassVar[frozenset[str] | None] = None
    """The APIs whose exchanges it takes in, by their names; None for all. An exchange with a missing message
    goes to all folds, whatever its API."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self.limits = limits
        self.room = Room(limits)
        """The memory that it may use. Folds that are fed together share it."""
        self.latest = Latest()
        """The latest facts of the exchanges so far, including those of other APIs. Folds that are fed
        together share it."""

    def feed(self, event: Event) -> None:
        """Take in the next event."""
        if isinstance(event, Exchange):
            self.latest.see(event)
            self._exchange(event)
        elif isinstance(event, Brief):
            self._brief(event)
        elif isinstance(event, Connection) and (self.at_every_point or not event.is_copy):
            self._connection(event)

    @property
    def briefs(self) -> Interest | None:
        """The data that it needs of exchanges in brief; None if it needs whole ones."""
        return None

    def handlers(self) -> tuple[Callable[[Exchange], None], Callable[[Exchange], None]]:
        """The functions with which :meth:`feed` and :meth:`see` take in an exchange. The caller has checked
        that it is one of the :attr:`apis`, and has shown it to :attr:`latest`."""
        return self._exchange, self._other

    def batch_handler(self) -> Callable[[list[Exchange]], None] | None:
        """A function that takes in many exchanges, as the first of :meth:`handlers` does one by one. None if
        that would be no quicker. The caller has checked the same for each."""
        return None

    def brief_handler(self) -> Callable[[list[Brief]], None]:
        """A function that takes in exchanges in brief, as :meth:`feed` does one by one."""
        return self._take_briefs

    def see(self, event: Event) -> None:
        """Take in the next event if it does not count: only for what it tells of others."""
        if isinstance(event, Exchange):
            self.latest.see(event)
            self._other(event)

    @abstractmethod
    def _exchange(self, exchange: Exchange) -> None:
        """Take in an exchange."""

    def _brief(self, brief: Brief) -> None:
        """Take in an exchange in brief. Its counts are the same as those of the whole exchange."""
        self._exchange(brief.exchange())

    def _take_briefs(self, briefs: list[Brief]) -> None:
        """Take in exchanges in brief, one after the other."""
        for brief in briefs:
            self._brief(brief)

    def _other(self, exchange: Exchange) -> None:  # noqa: B027 - most exchanges tell of themselves only
        """Take in an exchange that does not count."""

    def _connection(self, connection: Connection) -> None:  # noqa: B027 - most count exchanges only
        """Take in the row of an ended connection."""

    @abstractmethod
    def merge(self, later: Self) -> None:
        """Add the results of another fold over later events."""

    @property
    @abstractmethod
    def left_out(self) -> int:
        """The number of things that were not counted because there would have been too many rows."""


class Batched(Fold):
    """A fold that takes in many exchanges quicker than one by one.

    :meth:`_exchanges` does it, mostly with a function whose variables have C types.
    """

    def batch_handler(self) -> Callable[[list[Exchange]], None]:
        return self._exchanges

    @abstractmethod
    def _exchanges(self, exchanges: list[Exchange]) -> None:
        """Take in exchanges, one after the other."""

    def _exchange(self, exchange: Exchange) -> None:
        self._exchanges([exchange])


class Statistic(Fold):
    """A fold that makes the rows of a table. Outputs know only these declarations of it."""

    name: ClassVar[str]
    """The name of its table in ``-z``."""
    about: ClassVar[str]
    """Its contents, in a line."""
    columns: ClassVar[tuple[Declared, ...]]
    """The columns of its rows, in order."""
    groupings: ClassVar[tuple[str, ...]] = ()
    """The possible groupings of rows: ``-z NAME,GROUPING``."""
    takes_interval: ClassVar[bool] = False
    """Whether it can have an interval: ``-z NAME,100ms``."""

    @classmethod
    def from_option(cls, limits: Limits, how: tuple[str, ...]) -> Self:
        """The statistic for ``-z NAME,HOW,…``.

        :raises ValueError: it has no such option; the error's text lists the options.
        """
        if cls.takes_interval and len(how) == 1:
            return cls(limits, interval_ns(cls.name, how[0]))  # type: ignore[call-arg]
        wrong = [word for word in how if word not in cls.groupings]
        if wrong and cls.groupings:
            raise ValueError(f"{cls.name},{wrong[0]}: rows can be grouped by {', '.join(cls.groupings)}")
        if wrong:
            raise ValueError(
                f"{','.join((cls.name, *how))}: no grouping may follow {cls.name}"
                + (" but one interval such as 100ms" if cls.takes_interval else "")
            )
        return cls(limits, how) if cls.groupings else cls(limits)  # type: ignore[call-arg]

    def keep_first(self, names: FirstNames) -> None:
        """Keep only these names separate from now on, and count the others together. A live capture may go on
        for months, with ever new names."""

    @abstractmethod
    def result(self) -> list[Row]:
        """The rows so far; feeding may go on."""

    def result_rows(self) -> Iterable[Row]:
        """The same rows, for a caller that needs them one after the other. A statistic with many rows makes
        each when it is asked for."""
        return self.result()


B = TypeVar("B", bound=Fold)


class View(Statistic, Generic[B]):
    """A statistic whose rows are made from a fold that other statistics use too. If they are fed together
    (:class:`~kdissect.analysis.fold_set.Together`), that fold exists only once."""

    basis_type: ClassVar[type[Fold]]
    """The type of the fold."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self.basis: B = self.basis_type(limits)  # type: ignore[assignment]
        self.room = self.basis.room
        self.latest = self.basis.latest

    def feed(self, event: Event) -> None:
        self.basis.feed(event)

    def see(self, event: Event) -> None:
        self.basis.see(event)

    def _exchange(self, exchange: Exchange) -> None:
        raise NotImplementedError  # the basis takes it in

    def merge(self, later: Self) -> None:
        self.basis.merge(later.basis)

    @property
    def left_out(self) -> int:
        return self.basis.left_out


class OneTable(Statistic, Generic[K, R]):
    """A statistic that counts into rows of one kind.

    :param new: makes an empty row.
    """

    row_bytes: ClassVar[int] = ROW_BYTES
    """The approximate size of one of its rows in memory."""

    def __init__(self, new: Callable[[], R], limits: Limits) -> None:
        super().__init__(limits)
        self._rows: Rows[K, R] = Rows(new, self.room, self.row_bytes)

    def merge(self, later: Self) -> None:
        self._rows.merge(later._rows)

    @property
    def left_out(self) -> int:
        return self._rows.left_out


def least(one: int | None, other: int | None) -> int | None:
    """The smaller of the known values."""
    if one is None or other is None:
        return other if one is None else one
    return other if other < one else one


def most(one: int | None, other: int | None) -> int | None:
    """The larger of the known values."""
    if one is None or other is None:
        return other if one is None else one
    return other if other > one else one
