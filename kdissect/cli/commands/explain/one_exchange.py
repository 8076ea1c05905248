"""``explain FILE --exchange N``: why one exchange took long or failed, and what happened around it."""

from __future__ import annotations

from typing import Any

from kdissect.analysis.neighbours import Beside
from kdissect.analysis.whole import WholeFold
from kdissect.cli.config import load_config
from kdissect.cli.errors import Wrong
from kdissect.cli.exit_codes import DONE
from kdissect.cli.output import TextOutput, inputs_of, open_output
from kdissect.cli.reading import reading_of
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.insight.finding import Finding
from kdissect.insight.judge import Judge
from kdissect.present.exchange_story import exchange_lines
from kdissect.present.options import Options
from kdissect.session.conversation import Connection


def explain_exchange(paths: tuple[str, ...], given: dict[str, Any]) -> int:
    """Print all that is known of one exchange. The capture is read twice."""
    if given["form"] != "text":
        raise Wrong(f"-T {given['form']}: --exchange prints text; kdissect read -Y 'number == N' has rows")
    config, number = load_config(), given["exchange"]
    options = Options(limits=config.limits, shown_fields=config.shown_fields)
    whole = WholeFold(lambda: Judge(config.limits))
    found: list[Exchange] = []
    last = 0
    late: list[tuple[int, int]] = []
    """The time and the packet of each late retransmission on its connection."""

    def look(event: Event) -> None:
        nonlocal last
        whole.feed(event)
        if isinstance(event, Connection) and found and event.connection == found[0].connection:
            tcp = event.tcp or {}
            late.extend(zip(tcp.get("rto_ns") or (), tcp.get("rto_packets") or (), strict=True))
        if isinstance(event, Exchange):
            last = max(last, event.number)
            if event.number == number:
                found.append(event)

    with reading_of(given, paths, config, options, twice=True) as reading:
        reading.open()
        reading.read_before(names=False, learn=look)
        whole.finish()
        if not found:
            there = f"they are numbered 1 to {last:,}" if last else "the capture has none"
            raise Wrong(f"--exchange {number}: there is no such exchange: {there}")
        exchange = found[0]
        beside = Beside(exchange)
        for event in reading:
            if isinstance(event, Exchange):
                beside.feed(event)
        judged = whole.counted.judged(config.thresholds, config.ignored).findings
        findings = [each for each in judged if _is_about(each, exchange)]
        with open_output(given["output"], inputs_of(given)) as file:
            output = TextOutput(file, given["output"])
            resent = [each for each in late if exchange.begun_ns <= each[0] <= exchange.ended_ns]
            output.lines(exchange_lines(exchange, beside, findings, reading.first_ns, options, resent))
        return reading.exit_code(False, False, True) if reading.is_damaged else DONE


def _is_about(each: Finding, exchange: Exchange) -> bool:
    """Whether a finding names the exchange, or was seen at the same time and may be related to it."""
    if exchange.number in each.exchanges:
        return True
    if each.category == "capture" or each.first_ns is None or each.last_ns is None:
        return exchange.connection in each.connections
    return each.first_ns <= exchange.ended_ns and each.last_ns >= exchange.begun_ns
