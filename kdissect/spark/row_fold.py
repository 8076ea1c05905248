"""Folds over rows of the table ``exchanges``: the values that they read, and their declarations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from kdissect.analysis.fold import Statistic
from kdissect.exchange import Exchange
from kdissect.protocol.entities import GROUP


class SeenCopy(NamedTuple):
    """An exchange at one of the capture points that saw it."""

    point: str
    latency_ns: int | None


class StoredExchange(NamedTuple):
    """The values of a row that are counted; :class:`~kdissect.analysis.traffic.ExchangeColumns`."""

    number: int
    api: str | None
    api_version: int | None
    broker: str
    client: str
    client_id: str | None
    principal: str | None
    groups: Sequence[str] | None
    transactional_ids: Sequence[str] | None
    topics: Sequence[str]
    error: str | None
    error_class: str | None
    request_size: int | None
    response_size: int | None
    latency_ns: int | None
    software: str | None
    """The software of its connection."""
    begun_ns: int
    """The time when it began, ns since the epoch."""
    asked: Mapping[str, Any]
    """The body of its request; empty unless a fold reads it."""
    copies: Sequence[SeenCopy]
    """One for each capture point that saw it; empty unless a fold reads them."""

    @property
    def group(self) -> str | None:
        """The group that the request is about."""
        return _text(self.asked.get(GROUP))

    @property
    def member(self) -> str | None:
        """The member that the request says it is from."""
        return _text(self.asked.get("memberId")) or None


COLUMNS = StoredExchange._fields[: StoredExchange._fields.index("begun_ns")]
"""Values that are columns of the rows. The others are computed from columns."""


class RowFold(Statistic):
    """A statistic that is fed rows instead of events."""

    reads_requests: ClassVar[bool] = False
    """Whether it reads the bodies of requests."""
    reads_copies: ClassVar[bool] = False
    """Whether it reads where else an exchange was seen."""

    @property
    def reads_names(self) -> bool:
        """Whether it needs the names of topic ids."""
        return False

    @abstractmethod
    def count(self, exchange: StoredExchange) -> object:
        """Count a row."""

    def learn(self, topic_id: str, name: str) -> None:
        """Learn the name of a topic id from a row."""

    def _exchange(self, exchange: Exchange) -> None:
        raise NotImplementedError  # it is fed rows


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
