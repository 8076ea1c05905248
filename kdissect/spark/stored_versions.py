"""Rows of the table ``exchanges`` → the versions of the protocol that each software speaks."""

from __future__ import annotations

from typing import Self

from kdissect.analysis.declared import column
from kdissect.analysis.fold import OneTable, Row
from kdissect.limits import DEFAULTS, Limits
from kdissect.spark.distinct import Distinct
from kdissect.spark.row_fold import RowFold, StoredExchange

_UNKNOWN = "unknown"
_Spoken = tuple[str, str]
"""Software and API."""


class _SoftwareVersions:
    """The counts of a row."""

    __slots__ = ("exchanges", "versions")

    def __init__(self) -> None:
        self.exchanges = 0
        self.versions: set[int] = set()

    def merge(self, later: _SoftwareVersions) -> None:
        self.exchanges += later.exchanges
        self.versions |= later.versions


class StoredVersions(RowFold, OneTable[_Spoken, _SoftwareVersions]):
    """A row for each software and API. ``stats -z versions`` has a row for each client, and judges it."""

    name = "versions"
    about = "protocol versions that are spoken"
    columns = (
        column("software", "text", "name and version of the client's software; unknown if it tells neither"),
        column("api", "text", "the API"),
        column("versions", "int64s", "the versions of its requests"),
        column("exchanges", "int64", "exchanges"),
        column("clients", "int64", "client ids"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(_SoftwareVersions, limits)
        self._clients: Distinct[_Spoken] = Distinct(self.room)

    def count(self, exchange: StoredExchange) -> None:
        api, version = exchange.api, exchange.api_version
        if api is None or version is None:
            return
        spoken = exchange.software or _UNKNOWN, api
        row = self._rows.row(spoken)
        if row is not None:
            row.exchanges += 1
            row.versions.add(version)
            self._clients.add(spoken, exchange.client_id)

    def merge(self, later: Self) -> None:
        super().merge(later)
        self._clients.merge(later._clients)

    @property
    def left_out(self) -> int:
        return super().left_out + self._clients.left_out

    def result(self) -> list[Row]:
        clients = self._clients.counts()
        return [
            {
                "software": spoken[0],
                "api": spoken[1],
                "versions": sorted(row.versions),
                "exchanges": row.exchanges,
                "clients": clients.get(spoken, 0),
            }
            for spoken, row in sorted(self._rows.items())
        ]
