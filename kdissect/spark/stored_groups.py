"""Rows of the table ``exchanges`` → groups: the requests of their members, and their errors."""

from __future__ import annotations

from typing import Self

from kdissect.analysis.counters import Grades
from kdissect.analysis.declared import GROUP_COLUMN, column, graded_errors
from kdissect.analysis.fold import OneTable, Row
from kdissect.limits import DEFAULTS, Limits
from kdissect.spark.distinct import Distinct
from kdissect.spark.row_fold import RowFold, StoredExchange

_ASKED = {"JoinGroup": "joins", "SyncGroup": "syncs", "OffsetCommit": "commits"}
_HEARTBEAT = "Heartbeat"


class _GroupCounts:
    """The counts of a row."""

    __slots__ = ("commits", "errors", "heartbeats", "joins", "syncs")

    def __init__(self) -> None:
        self.joins = self.syncs = self.commits = self.heartbeats = 0
        self.errors = Grades()

    def merge(self, later: _GroupCounts) -> None:
        self.joins += later.joins
        self.syncs += later.syncs
        self.commits += later.commits
        self.heartbeats += later.heartbeats
        self.errors.merge(later.errors)


class StoredGroups(RowFold, OneTable[str, _GroupCounts]):
    """A row for each group that a request names. ``stats -z groups`` has more columns, because it reads
    responses too."""

    name = "groups"
    about = "groups: members, and their requests"
    columns = (
        GROUP_COLUMN,
        column("members", "int64", "member ids in requests"),
        column("clients", "int64", "client ids"),
        column("joins", "int64", "JoinGroup requests"),
        column("syncs", "int64", "SyncGroup requests"),
        column("commits", "int64", "OffsetCommit requests"),
        column("heartbeats", "int64", "Heartbeat requests, also those of the newer protocols"),
        *graded_errors("responses with an error"),
    )
    reads_requests = True

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(_GroupCounts, limits)
        self._members: Distinct[str] = Distinct(self.room)
        self._clients: Distinct[str] = Distinct(self.room)

    def count(self, exchange: StoredExchange) -> None:
        group, api = exchange.group, exchange.api or ""
        row = None if group is None else self._rows.row(group)
        if group is None or row is None:
            return
        self._members.add(group, exchange.member)
        self._clients.add(group, exchange.client_id)
        if api.endswith(_HEARTBEAT):
            row.heartbeats += 1
        elif api in _ASKED:
            setattr(row, _ASKED[api], getattr(row, _ASKED[api]) + 1)
        if exchange.response_size is not None and exchange.error is not None:
            row.errors.add(exchange.error_class)

    def merge(self, later: Self) -> None:
        super().merge(later)
        self._members.merge(later._members)
        self._clients.merge(later._clients)

    @property
    def left_out(self) -> int:
        return super().left_out + self._members.left_out + self._clients.left_out

    def result(self) -> list[Row]:
        members, clients = self._members.counts(), self._clients.counts()
        return [
            {
                "group": group,
                "members": members.get(group, 0),
                "clients": clients.get(group, 0),
                "joins": row.joins,
                "syncs": row.syncs,
                "commits": row.commits,
                "heartbeats": row.heartbeats,
                **row.errors.columns(),
            }
            for group, row in sorted(self._rows.items())
        ]
