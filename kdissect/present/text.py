"""Exchanges → one line each.

    12  0.004317  3  10.0.0.5:51234 → 10.0.0.7:9092  etl-1  Fetch v12  #42  61.2 ms  98 B → 4.2 KiB  orders  …

Columns are wide enough for what is usual and grow with what comes, so that lines can be printed as they
come. Colour is for terminals only, and never the only sign of anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from kdissect.exchange import Exchange
from kdissect.present.form import Clock, duration, size
from kdissect.present.options import PLAIN, Options
from kdissect.present.sanitise import pad, sanitise, width
from kdissect.wording import plural

MOST_TOPICS = 3
"""Topics named on a line; of more, the number follows."""

RED, GREEN, YELLOW, BLUE, DIM, BOLD = "31", "32", "33", "34", "2", "1"

_WIDTHS = (4, 9, 2, 33, 12, 17, 5, 7, 17)
_RIGHT = (True, True, True, False, False, False, False, True, False)
_COLOURS = (DIM, None, DIM, None, GREEN, BOLD, DIM, None, DIM)


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

    @property
    def widths(self) -> list[int]:
        """Cells of each column."""
        return list(self._widths)

    @widths.setter
    def widths(self, widths: Sequence[int]) -> None:
        self._widths = list(widths)
        forms = [f"%{'' if right else '-'}{most}s" for most, right in zip(widths, _RIGHT, strict=True)]
        painted = (paint(form, colour, self._colour) for form, colour in zip(forms, _COLOURS, strict=True))
        self._form = "  ".join(painted)
        self._length = len(self._form) - sum(map(len, forms)) + sum(widths)

    def line(self, exchange: Exchange) -> str:
        """One line, without its end."""
        first, latency = exchange.first_message, exchange.latency_ns
        client_id, api = exchange.client_id, api_text(exchange)
        client_id = sanitise(client_id, 32) if client_id else ""
        cells = (
            str(exchange.number),
            self._clock.text(first.frame.last_ns),
            str(exchange.connection),
            f"{exchange.client} → {exchange.broker}",
            client_id,
            api,
            "" if first.correlation_id is None else f"#{first.correlation_id}",
            "" if latency is None else duration(latency),
            sizes(exchange),
        )
        line: str = self._form % cells
        # Other cells have no characters that are two columns wide. A cell too long makes the line longer.
        if len(line) != self._length or not (client_id.isascii() and api.isascii()):
            line = self._measured(cells)
        return "  ".join([line, *self._notes(exchange)]).rstrip()

    def _measured(self, cells: tuple[str, ...]) -> str:
        """A line of which a cell is longer than its column, or may look so; the column is wider then."""
        widths = [max(most, width(text)) for most, text in zip(self._widths, cells, strict=True)]
        if widths != self._widths:
            self.widths = widths
        padded = [
            paint(pad(text, most, right), colour, self._colour)
            for text, most, right, colour in zip(cells, widths, _RIGHT, _COLOURS, strict=True)
        ]
        return "  ".join(padded)

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
        for message in exchange.messages:
            if message.is_cut:
                frame = message.frame
                why = f", {exchange.missing}" if exchange.missing else ""
                text = f"[{message.kind} cut: {len(frame.payload):,} of {plural(frame.size, 'byte')}{why}]"
                notes.append(paint(text, YELLOW, self._colour))
        if exchange.inferred:
            what = ", ".join(each.partition(":")[0] for each in exchange.inferred.split("; "))
            notes.append(paint(f"[inferred {sanitise(what)}]", YELLOW, self._colour))
        faults = exchange.faults
        if faults:
            kinds = dict.fromkeys([fault.kind for fault in faults])
            notes.append(paint(f"[faults: {', '.join(kinds)}]", RED, self._colour))
        return notes


def api_text(exchange: Exchange) -> str:
    """``Fetch v12``; ``?`` for a response whose request is not known."""
    api, version = exchange.api or "?", exchange.api_version
    return api if version is None else f"{api} v{version}"


def sizes(exchange: Exchange) -> str:
    """``98 B → 4.2 KiB``; ``-`` for the side that is missing."""
    request, response = exchange.request_size, exchange.response_size
    return f"{'-' if request is None else size(request)} → {'-' if response is None else size(response)}"


def topics_text(topics: Sequence[str]) -> str:
    """The first topics and how many more there are: ``orders,clicks,views +5``."""
    named = ",".join(sanitise(topic) for topic in topics[:MOST_TOPICS])
    return named + (f" +{len(topics) - MOST_TOPICS}" if len(topics) > MOST_TOPICS else "")
