"""Exchanges → one line each.

    12  0.004317  3  10.0.0.5:51234 → 10.0.0.7:9092  etl-1  Fetch v12  #42  61.2 ms  98 B → 4.2 KiB  orders  …

Columns are wide enough for what is usual and grow with what comes, so that lines can be printed as they
come. Colour is for terminals only, and never the only sign of anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from kdissect.exchange import Exchange
from kdissect.model import Endpoint
from kdissect.present.form import Clock, duration, size
from kdissect.present.options import PLAIN, Options
from kdissect.present.sanitise import sanitise, width
from kdissect.wording import plural

MOST_TOPICS = 3
"""Topics named on a line; of more, the number follows."""

RED, GREEN, YELLOW, BLUE, DIM, BOLD = "31", "32", "33", "34", "2", "1"

NUMBER, TIME, CONNECTION, ENDS, CLIENT, API, CORRELATION, LATENCY, SIZES = range(9)
"""The columns."""

_WIDTHS = (4, 9, 2, 33, 12, 17, 5, 7, 17)
_RIGHT = (True, True, True, False, False, False, False, True, False)
_COLOURS = (DIM, None, DIM, None, GREEN, BOLD, DIM, None, DIM)

_MOST_ENDS = 4_096
"""Connections whose two ends are kept as text."""


def paint(text: str, colour: str | None, on: bool) -> str:
    """``text`` in an ANSI colour."""
    return f"\x1b[{colour}m{text}\x1b[0m" if on and colour and text else text


class Lines:
    """Makes the lines; keeps the widths of their columns."""

    def __init__(self, clock: Clock | None = None, colour: bool = False, options: Options = PLAIN) -> None:
        self._clock = clock or Clock()
        self._colour = colour
        self._options = options
        self.widths = list(_WIDTHS)
        """Cells of each column."""
        self._ends: dict[tuple[Endpoint, Endpoint], str] = {}
        """The two ends of connections as they stand on the line: connections have many exchanges."""

    def line(self, exchange: Exchange) -> str:
        """One line, without its end."""
        first, latency = exchange._first(), exchange.latency_ns
        ends = self._ends_of(exchange)
        client = sanitise(exchange.client_id or "", 32)
        api, correlation = api_text(exchange), first.correlation_id
        took = "" if latency is None else duration(latency)
        both = sizes(exchange)
        out = [
            self._cell(NUMBER, f"{exchange.number}", -1),
            self._cell(TIME, self._clock.text(first.frame.last_ns), -1),
            self._cell(CONNECTION, f"{exchange.connection}", -1),
            self._cell(ENDS, ends, len(ends)),
            self._cell(CLIENT, client, width(client)),
            self._cell(API, api, -1),
            self._cell(CORRELATION, "" if correlation is None else f"#{correlation}", -1),
            self._cell(LATENCY, took, -1),
            self._cell(SIZES, both, -1),
        ]
        out += self._notes(exchange)
        return "  ".join(out).rstrip()

    def _cell(self, at: int, text: str, columns: int) -> str:
        """The text, filled up to the width of its column, which grows with it.

        :param columns: cells that it takes; -1: as many as it has characters.
        """
        most = self.widths[at]
        if columns < 0:
            columns = len(text)
        if columns < most:
            fill = " " * (most - columns)
            text = fill + text if _RIGHT[at] else text + fill
        elif columns > most:
            self.widths[at] = columns
        return paint(text, _COLOURS[at], True) if self._colour else text

    def _ends_of(self, exchange: Exchange) -> str:
        key = (exchange.client_endpoint, exchange.broker_endpoint)
        text = self._ends.get(key)
        if text is None:
            if len(self._ends) >= _MOST_ENDS:
                self._ends.clear()
            text = self._ends[key] = f"{exchange.client} → {exchange.broker}"
        return text

    def _notes(self, exchange: Exchange) -> list[str]:
        """What not every line has."""
        notes = []
        topics = exchange.topics
        if topics:
            notes.append(paint(topics_text(topics), BLUE, self._colour))
        error = exchange.error
        if error:
            notes.append(paint(sanitise(error), RED, self._colour))
        whole = exchange.request is not None and exchange.response is not None
        if exchange.missing and not whole:
            side = "request" if exchange.request is None else "response"
            quiet = exchange.missing == "acks=0"
            text = f"[no {side}: {exchange.missing}]"
            notes.append(paint(text, DIM if quiet else YELLOW, self._colour))
        for message in exchange._both():
            frame = message.frame
            if frame.size > len(frame.payload):
                why = f", {exchange.missing}" if exchange.missing else ""
                text = f"[{message.kind} cut: {len(frame.payload):,} of {plural(frame.size, 'byte')}{why}]"
                notes.append(paint(text, YELLOW, self._colour))
        if exchange.inferred:
            what = ", ".join(each.partition(":")[0] for each in exchange.inferred.split("; "))
            notes.append(paint(f"[inferred {sanitise(what)}]", YELLOW, self._colour))
        faults = exchange.faults
        if faults:
            kinds = dict.fromkeys(fault.kind for fault in faults)
            notes.append(paint(f"[faults: {', '.join(kinds)}]", RED, self._colour))
        return notes


def api_text(exchange: Exchange) -> str:
    """``Fetch v12``; ``?`` for a response whose request is not known."""
    api, version = exchange.api or "?", exchange._first().api_version
    return api if version is None else f"{api} v{version}"


def sizes(exchange: Exchange) -> str:
    """``98 B → 4.2 KiB``; ``-`` for the side that is missing."""
    request, response = exchange.request, exchange.response
    asked = "-" if request is None else size(request.frame.size)
    answered = "-" if response is None else size(response.frame.size)
    return f"{asked} → {answered}"


def topics_text(topics: Sequence[str]) -> str:
    """The first topics and how many more there are: ``orders,clicks,views +5``."""
    if len(topics) == 1:
        return sanitise(topics[0])
    named = ",".join([sanitise(topic) for topic in topics[:MOST_TOPICS]])
    return named + (f" +{len(topics) - MOST_TOPICS}" if len(topics) > MOST_TOPICS else "")
