"""Kinds of faults, and the number of each: the faults of the captured bytes in a few rows."""

from __future__ import annotations

from dataclasses import dataclass

from kdissect.analysis.declared import column
from kdissect.analysis.fold import Batched, OneTable, Row, least
from kdissect.analysis.packed import packed
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.faults import KINDS
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Fault


@packed
@dataclass(slots=True)
class _FaultCount:
    count: int = 0
    packet: int | None = None

    def add(self, fault: Fault) -> None:
        self.count += 1
        self.packet = least(self.packet, fault.packet)

    def merge(self, later: _FaultCount) -> None:
        self.count += later.count
        self.packet = least(self.packet, later.packet)


class Damage(Batched, OneTable[tuple[str, str], _FaultCount]):
    """The statistic ``damage``."""

    name = "damage"
    about = "the kinds of faults, and how many of each"
    columns = (
        column(
            "layer", "text", "layer of the fault: file, link, tcp, frame, session, message, records or tls"
        ),
        column("kind", "text", "the kind of fault (kdissect fields faults)"),
        column("meaning", "text", "what this kind of fault means"),
        column("count", "int64", "number of such faults"),
        column("packet", "int64", "packet of the first such fault; null if unknown", unit="id"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(_FaultCount, limits)

    def feed(self, event: Event) -> None:
        if isinstance(event, Fault):
            self._add(event)
        else:
            super().feed(event)

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        for exchange in exchanges:
            for fault in exchange.cheap_faults:
                self._add(fault)

    def _add(self, fault: Fault) -> None:
        row = self._rows.row((fault.layer, fault.kind))
        if row is not None:
            row.add(fault)

    def result(self) -> list[Row]:
        return [
            {
                "layer": layer,
                "kind": kind,
                "meaning": KINDS[kind][1] if kind in KINDS else None,
                "count": row.count,
                "packet": row.packet,
            }
            for (layer, kind), row in sorted(self._rows.rows.items())
        ]
