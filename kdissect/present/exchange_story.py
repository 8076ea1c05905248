"""One exchange for people: its parts as bars, the events around it, and those before and after."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kdissect.analysis.neighbours import Beside
from kdissect.analysis.sentences import action_of
from kdissect.exchange import Exchange
from kdissect.insight.finding import Finding
from kdissect.present.columns import EXCHANGES
from kdissect.present.error_pages import error_lines, error_page
from kdissect.present.findings_text import heading
from kdissect.present.form import SECOND, duration
from kdissect.present.options import Options
from kdissect.present.paragraphs import WIDTH, fold_text, paragraph
from kdissect.present.sanitise import sanitise
from kdissect.protocol.errors import errors

_BAR = 24
"""Cells of the longest bar."""
_PARTS = (
    ("behind_ns", "it waited behind the request before it"),
    ("throttle_ns", "a quota held it back"),
    ("network_ns", "the network, there and back"),
    ("wait_ns", "it waited, as the client had asked"),
    ("broker_ns", "the broker worked"),
    ("served_ns", "the broker worked, or waited as asked"),
)
"""Columns of an exchange that are parts of its time, in the order of time."""
_WITH_LOSS = {
    "broker_ns": "the broker worked, or the network sent lost bytes again",
    "served_ns": "the broker worked or waited as asked, or the network sent lost bytes again",
}
"""The parts that contain the network's time if packets were lost."""
_TRANSFERS = (
    ("request_transfer_ns", "before that, the request came, first to last byte"),
    ("response_transfer_ns", "after that, the answer came, first to last byte"),
)
"""Columns of an exchange that are no parts of its time."""


def exchange_lines(
    exchange: Exchange,
    beside: Beside,
    findings: Sequence[Finding],
    first_ns: int | None,
    options: Options,
    resent: Sequence[tuple[int, int]] = (),
) -> Iterator[str]:
    """Everything that is known about why an exchange took long or failed.

    :param resent: the time and the packet of each retransmission in its time, on its connection, that came
        late.
    """
    start = exchange.begun_ns if first_ns is None else first_ns
    who = sanitise(exchange.client_id or exchange.client)
    version = "" if exchange.api_version is None else f" v{exchange.api_version}"
    yield (
        f"#{exchange.number} {exchange.api or 'an unknown request'}{version} of {who} to broker "
        f"{exchange.broker}, at {(exchange.begun_ns - start) / SECOND:.3f}"
    )
    yield from paragraph(f"{who} {action_of(exchange, options.limits).text}.", "  ")
    if exchange.inferred is not None:
        yield from paragraph(f"Not captured but concluded: {exchange.inferred}.", "  ")
    yield from _time(exchange, options, [((ns - start) / SECOND, packet) for ns, packet in resent])
    yield from _error(exchange)
    yield from _listed("in flight on its connection", beside.in_flight, start, options)
    if beside.in_flight_left_out:
        yield f"  and {beside.in_flight_left_out:,} more"
    yield from _listed("failed at the same time at this broker", beside.errors, start, options)
    if findings:
        yield ""
        yield "findings that name it, or that were there at that time"
        for each in findings:
            yield from heading(each, "  ")
    yield from _listed("before it", beside.before, start, options)
    yield from _listed("after it", beside.after, start, options)


def _time(exchange: Exchange, options: Options, resent: Sequence[tuple[float, int]]) -> Iterator[str]:
    yield ""
    if exchange.latency_ns is None:
        yield f"no time is known: {exchange.missing or 'one side is missing'}"
        return
    yield f"it took {duration(exchange.latency_ns)}, from the request's last byte to the answer's first"
    of_time = [(name, _WITH_LOSS.get(name, label) if resent else label) for name, label in _PARTS]
    parts, transfers = (list(_took(of, exchange, options)) for of in (of_time, _TRANSFERS))
    longest = max((ns for _, ns in (*parts, *transfers)), default=0)
    room = max((len(duration(ns)) for _, ns in (*parts, *transfers)), default=0)
    for listed in (parts, transfers):
        if listed and listed is transfers:
            yield ""
        for label, ns in listed:
            bar = "█" * max(1, round(_BAR * ns / longest))
            yield f"  {duration(ns):>{room}}  {bar:<{_BAR}}  {label}"
    if resent:
        times = ", ".join(f"{at:.3f} (packet {packet:,})" for at, packet in resent)
        yield ""
        text = f"In this time bytes of the connection were lost and sent again: at {times}."
        yield from paragraph(text, "  ")


def _took(of: Sequence[tuple[str, str]], exchange: Exchange, options: Options) -> Iterator[tuple[str, int]]:
    """Those of these columns that are known and took time."""
    known = {name: EXCHANGES.column(name).value(exchange, options) for name, _ in of}
    if known.get("broker_ns") is not None:
        known.pop("served_ns", None)
    for name, label in of:
        value = known.get(name)
        if value is not None and value > 0:
            yield label, value


def _error(exchange: Exchange) -> Iterator[str]:
    if exchange.error is None:
        return
    known = next((each for each in errors().values() if each.name == exchange.error), None)
    yield ""
    if known is None:
        yield f"it failed: {exchange.error}"
        return
    grave = exchange.error_class
    yield f"it failed{', which is an ordinary step here' if grave == 'routine' else ''}:"
    for line in error_lines(error_page(known)):
        yield f"  {line}"


def _listed(title: str, found: Iterable[Exchange], start: int, options: Options) -> Iterator[str]:
    exchanges = sorted(found, key=lambda each: (each.begun_ns, each.number))
    if not exchanges:
        return
    yield ""
    yield title
    times = [f"{(each.begun_ns - start) / SECOND:.3f}" for each in exchanges]
    room = max(map(len, times))
    for time, each in zip(times, exchanges, strict=True):
        took = "" if each.latency_ns is None else f", {duration(each.latency_ns)}"
        text = f"{sanitise(each.client_id or each.client)} {action_of(each, options.limits).text}{took}"
        before, number = f"  {time:>{room}}  ", f"#{each.number}"
        for at, line in enumerate(fold_text(sanitise(text, None), WIDTH - len(before) - len(number) - 1)):
            shown = (before if at == 0 else " " * len(before)) + line
            yield f"{shown:<{WIDTH - len(number) - 1}} {number}" if at == 0 else shown
