"""Everything that is wrong with an exchange's bytes: its messages', and those of its record sets."""

from __future__ import annotations

from kdissect.exchange import Exchange
from kdissect.model import Fault
from kdissect.present.batches import record_faults
from kdissect.present.options import PLAIN, Options


class _Latest:
    """The answer given last: a row, the closing line and ``-w`` ask for the same one after the other."""

    exchange: Exchange | None = None
    options: Options = PLAIN
    faults: tuple[Fault, ...] = ()


_latest = _Latest()


def faults_of(exchange: Exchange, options: Options = PLAIN) -> tuple[Fault, ...]:
    """The exchange's faults, then those of its records, which are unpacked for it.

    That a record set of a response ends inside a batch is none: brokers cut there (KIP-74).
    """
    if _latest.exchange is not exchange or _latest.options != options:
        _latest.faults = tuple(_find(exchange, options))
        _latest.exchange, _latest.options = exchange, options
    return _latest.faults


def _find(exchange: Exchange, options: Options) -> list[Fault]:
    found = exchange.faults
    for place in exchange.record_sets():
        for fault in record_faults(place.data, options):
            if fault.kind == "partial-batch" and place.message is exchange.response:
                continue
            packet = place.message.frame.last_packet
            found.append(
                fault._replace(packet=packet, connection=exchange.connection, exchange=exchange.number)
            )
    return found
