"""Exchanges → one line each.

    12  0.004317  3  10.0.0.5:51234 → 10.0.0.7:9092  etl-1  Fetch v12  #42  61.2 ms  98 B → 4.2 KiB  orders  …

Columns are wide enough for usual values and grow with longer ones, so that each line can be printed at once.
Colour is for terminals only, and never the only sign of anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from kdissect.exchange import Exchange
from kdissect.message import Message
from kdissect.model import Endpoint, endpoint_text
from kdissect.present.form import Clock, write_duration, write_size
from kdissect.present.options import PLAIN, Options
from kdissect.present.sanitise import sanitise, width
from kdissect.protocol.errors import FATAL, RETRIABLE, ROUTINE, SIGNS, class_in, error_name, graded, gravest
from kdissect.protocol.json_text import JsonText
from kdissect.session.briefs import Brief, PairLayout
from kdissect.wording import plural

MOST_TOPICS = 3
"""The most topics named on a line; the number of further ones follows."""

RED, GREEN, YELLOW, BLUE, DIM, BOLD = "31", "32", "33", "34", "2", "1"
_COLOUR_OF = {SIGNS[FATAL]: RED, SIGNS[RETRIABLE]: YELLOW, SIGNS[ROUTINE]: DIM}

NUMBER, TIME, CONNECTION, ENDS, CLIENT, API, CORRELATION, LATENCY, SIZES = range(9)
"""The columns."""

_WIDTHS = (4, 9, 2, 33, 12, 17, 5, 7, 17)
_RIGHT = (True, True, True, False, False, False, False, True, False)
_COLOURS = (DIM, None, DIM, None, GREEN, BOLD, DIM, None, DIM)

_RESET = b"\x1b[0m"
_ARROW = " → ".encode()

_MOST_TOLD = 4_096
"""The most texts of a kind that are kept for later lines."""
_RECENT = 256
"""The number of connections, and of APIs, whose shared columns are kept in a table for quick access."""
_LONGEST_KEPT = 64
_MOST_CODES = 16
_IPV4_ENDPOINT = 6
"""The size of an endpoint with an IPv4 address, in bytes."""
_CLIENT = 32
"""The most characters of a client id that are shown."""


class _SharedText:
    """A text that many lines share."""

    __slots__ = ("columns", "ends", "text")

    def __init__(self, text: bytes, columns: int, ends: tuple[Endpoint, Endpoint] | None = None) -> None:
        self.text = text
        self.columns = columns
        """The cells that it takes."""
        self.ends = ends
        """Both ends of the connection, if it is their text."""


def _shared(text: bytes, columns: int, ends: tuple[Endpoint, Endpoint] | None) -> _SharedText:
    """``_SharedText(text, columns, ends)``, set attribute by attribute: compiled, that is several times
    faster."""
    made = _SharedText.__new__(_SharedText)
    made.text, made.columns, made.ends = text, columns, ends
    return made


class _SharedColumns:
    """Columns that lines share, with their padding."""

    __slots__ = ("client", "ends", "number", "text", "widening")

    def __init__(
        self,
        text: bytes,
        number: int,
        widening: int,
        ends: tuple[Endpoint, Endpoint] | None = None,
        client: str | None = None,
    ) -> None:
        self.text = text
        self.number = number
        """The number of the connection, or the version of the API."""
        self.widening = widening
        """How often columns had become wider when the text was made. If the number has changed since, the
        text is out of date."""
        self.ends, self.client = ends, client
        """The ends and the client id of a connection."""


def _shared_text(text: str) -> _SharedText:
    return _SharedText(text.encode(), width(text))


def _ends_text(ends: tuple[Endpoint, Endpoint]) -> _SharedText:
    out = JsonText()
    for at, end in enumerate(ends):
        if at:
            out.put(_ARROW)
        if len(end) != _IPV4_ENDPOINT:
            out.text(endpoint_text(end))
            continue
        raw = end
        out.number(raw[0])
        for part in range(1, 4):
            out.put(b".")
            out.number(raw[part])
        out.put(b":")
        out.number(raw[4] << 8 | raw[5])
    text = out.take()
    return _shared(text, len(text) - 2, ends)  # ASCII except for the arrow: one cell, three bytes


class Lines:
    """Makes the lines, and keeps the widths of their columns."""

    def __init__(self, clock: Clock | None = None, colour: bool = False, options: Options = PLAIN) -> None:
        self._clock = clock or Clock()
        self._colour = colour
        self._options = options
        self._widest = [0] * 9
        """The cells of each column; when compiled, C numbers."""
        self._widening = 0
        """How often the widths became larger, or were set."""
        self._of_connections: list[_SharedColumns | None] = [None] * _RECENT
        """Connection, ends and client of the exchanges of connections, by the low bits of the connection
        numbers."""
        self._of_apis: list[_SharedColumns | None] = [None] * _RECENT
        """The API of exchanges, by the API key."""
        self.widths = list(_WIDTHS)
        self._ends: dict[int, _SharedText] = {}
        """The text of the two ends of a connection, by its number, because a connection has many
        exchanges."""
        self._clients: dict[str, _SharedText] = {}
        self._apis: dict[tuple[int, int], _SharedText] = {}
        """The texts of APIs, by key and version."""
        self._topics: dict[str, bytes] = {}
        """The texts of topic names."""
        self._errors: dict[tuple[int, ...] | int, str] = {}
        """The texts of errors, by the codes of a response, the routine ones among them, and the number of
        codes; or by the code, if there is only one and it is not routine."""

    @property
    def widths(self) -> list[int]:
        """The cells of each column."""
        return [self._widest[at] for at in range(len(_WIDTHS))]

    @widths.setter
    def widths(self, widths: list[int]) -> None:
        for at in range(len(_WIDTHS)):
            self._widest[at] = widths[at]
        self._widening += 1

    def expected(
        self, widths: Sequence[int], exchanges: int, connections: int, latest_ns: int | None
    ) -> tuple[int, ...]:
        """The widths that columns are likely to have after this many exchanges and connections."""
        out = list(widths)
        out[NUMBER] = max(out[NUMBER], len(str(exchanges)))
        out[CONNECTION] = max(out[CONNECTION], len(str(connections - 1)))
        first_ns = self._clock.first_ns
        if self._clock.letter == "r" and first_ns is not None and latest_ns is not None:
            out[TIME] = max(out[TIME], len(Clock("r", first_ns).text(latest_ns)))
        return tuple(out)

    def line(self, exchange: Exchange) -> str:
        """One line, without its end."""
        out = JsonText()
        self.write(out, exchange)
        return out.take().decode()

    def write(self, out: JsonText, exchange: Exchange) -> None:
        """Add the line, without its end."""
        first = exchange._first()
        start = self._begin(out, NUMBER)
        out.number(exchange.number)
        self._end(out, NUMBER, start, out.size() - start)
        start = self._begin(out, TIME)
        self._clock.write(out, first.frame.last_ns)
        self._end(out, TIME, start, out.size() - start)
        start = self._begin(out, CONNECTION)
        out.number(exchange.connection)
        self._end(out, CONNECTION, start, out.size() - start)
        self._put(out, ENDS, self._ends_of(exchange))
        self._put(out, CLIENT, self._client_of(exchange))
        self._put(out, API, self._api_of(exchange))
        start = self._begin(out, CORRELATION)
        correlation = first.correlation_id
        if correlation is not None:
            out.put(b"#")
            out.number(correlation)
        self._end(out, CORRELATION, start, out.size() - start)
        start = self._begin(out, LATENCY)
        latency = exchange.latency_ns
        took = 0 if latency is None else write_duration(out, latency)
        self._end(out, LATENCY, start, took)
        start = self._begin(out, SIZES)
        self._write_sizes(out, exchange)
        self._end(out, SIZES, start, out.size() - start - 2)  # the arrow takes three bytes
        self._write_notes(out, exchange)
        out.trim()

    def write_brief(self, out: JsonText, brief: Brief) -> None:
        """Add the line for an exchange in brief, the same as :meth:`write` gives."""
        start = self._begin(out, NUMBER)
        out.number(brief.number)
        self._end(out, NUMBER, start, out.size() - start)
        start = self._begin(out, TIME)
        self._clock.write(out, brief.request_ns)
        self._end(out, TIME, start, out.size() - start)
        out.put(self._connection_in(brief))
        out.put(self._api_column(brief.form))
        start = self._begin(out, CORRELATION)
        out.put(b"#")
        out.number(brief.correlation_id)
        self._end(out, CORRELATION, start, out.size() - start)
        start = self._begin(out, LATENCY)
        took = (
            0
            if brief.response_data is None
            else write_duration(out, brief.response_first_ns - brief.request_ns)
        )
        self._end(out, LATENCY, start, took)
        start = self._begin(out, SIZES)
        write_size(out, brief.request_end - brief.request_start)
        out.put(_ARROW)
        if brief.response_data is None:
            out.put(b"-")
        else:
            write_size(out, brief.response_end - brief.response_start)
        self._end(out, SIZES, start, out.size() - start - 2)
        self._note_topics(out, brief.topics())
        answered = brief.response_survey
        if answered is not None and answered.error:
            error = self._error_in(answered.errors, brief.routine)
            self._note(out, error, _colour_of(error) if self._colour else RED)
        if brief.missing is not None:
            self._note_missing(out, "response", brief.missing)
        out.trim()

    def _connection_in(self, brief: Brief) -> bytes:
        """The columns that the exchanges of a connection share."""
        number, ends, client = brief.connection, brief.ends, brief.client_id
        place = number & (_RECENT - 1)
        told = self._of_connections[place]
        if told is not None and told.number == number and told.widening == self._widening:
            is_same = told.ends is ends and told.client is client
            if is_same or (told.ends == ends and told.client == client):
                return told.text
        out = JsonText()
        start = self._begin(out, CONNECTION)
        out.number(number)
        self._end(out, CONNECTION, start, out.size() - start)
        self._put(out, ENDS, self._ends_between(number, ends))
        self._put(out, CLIENT, self._client_named(client))
        # Set attribute by attribute: compiled, that is several times faster than a call.
        told = _SharedColumns.__new__(_SharedColumns)
        told.text, told.number, told.widening = out.take(), number, self._widening
        told.ends, told.client = ends, client
        self._of_connections[place] = told
        return told.text

    def _api_column(self, form: PairLayout) -> bytes:
        """The column that the exchanges of an API in a version share."""
        place = form.key & (_RECENT - 1)
        told = self._of_apis[place]
        if told is None or told.number != form.version or told.widening != self._widening:
            out = JsonText()
            self._put(out, API, self._api_in(form.api, form.name))
            told = self._of_apis[place] = _SharedColumns(out.take(), form.version, self._widening)
        return told.text

    def write_all(self, out: JsonText, events: Sequence[object]) -> int:
        """Add the line of each exchange among events, with its end; return their number. If a line cannot be
        made, it raises the error, and nothing of that line stays."""
        rows, size = 0, out.size()
        try:
            for event in events:
                if isinstance(event, Brief):
                    self.write_brief(out, event)
                elif isinstance(event, Exchange):
                    self.write(out, event)
                else:
                    continue
                out.put(b"\n")
                rows, size = rows + 1, out.size()
        finally:
            out.cut(size)
        return rows

    def _begin(self, out: JsonText, at: int) -> int:
        """Begin a column; return the start of its text."""
        if at:
            out.put(b"  ")
        if self._colour and _COLOURS[at] is not None:
            out.text(f"\x1b[{_COLOURS[at]}m")
        return out.size()

    def _end(self, out: JsonText, at: int, start: int, columns: int) -> None:
        """Pad the text of a column to its width, which grows with the text.

        :param start: the start of the text.
        :param columns: the cells that it takes.
        """
        most = self._widest[at]
        if columns < most:
            out.fill(start, most - columns, _RIGHT[at])
        elif columns > most:
            self._widest[at] = columns
            self._widening += 1
        if self._colour and _COLOURS[at] is not None:
            out.put(_RESET)

    def _put(self, out: JsonText, at: int, told: _SharedText) -> None:
        """Add a column."""
        start = self._begin(out, at)
        out.put(told.text)
        self._end(out, at, start, told.columns)

    def _ends_of(self, exchange: Exchange) -> _SharedText:
        return self._ends_between(exchange.connection, (exchange.client_endpoint, exchange.broker_endpoint))

    def _ends_between(self, connection: int, ends: tuple[Endpoint, Endpoint]) -> _SharedText:
        told = self._ends.get(connection)
        if told is None or (told.ends is not ends and told.ends != ends):
            if len(self._ends) >= _MOST_TOLD:
                self._ends.clear()
            told = self._ends[connection] = _ends_text(ends)
        return told

    def _client_of(self, exchange: Exchange) -> _SharedText:
        return self._client_named(exchange.client_id or "")

    def _client_named(self, client: str) -> _SharedText:
        if len(client) > _LONGEST_KEPT:
            return _shared_text(sanitise(client, _CLIENT))
        told = self._clients.get(client)
        if told is None:
            if len(self._clients) >= _MOST_TOLD:
                self._clients.clear()
            told = self._clients[client] = _shared_text(sanitise(client, _CLIENT))
        return told

    def _api_of(self, exchange: Exchange) -> _SharedText:
        first = exchange._first()
        if first.api_key is None or first.api_version is None:
            return _shared_text(api_text(exchange))
        return self._api_in((first.api_key, first.api_version), exchange.api or "?")

    def _api_in(self, key: tuple[int, int], name: str) -> _SharedText:
        told = self._apis.get(key)
        if told is None:
            if len(self._apis) >= _MOST_TOLD:
                self._apis.clear()
            told = self._apis[key] = _shared_text(f"{name} v{key[1]}")
        return told

    def _error_in(self, codes: list[int] | None, routine: tuple[int, ...]) -> str:
        """The text of a response's error codes.

        :param routine: the codes that are routine in this response.
        """
        assert codes is not None
        if len(codes) > _MOST_CODES:
            return _errors_text(codes, routine)
        key: tuple[int, ...] | int
        key = codes[0] if len(codes) == 1 and not routine else (*codes, *routine, len(codes))
        told = self._errors.get(key)
        if told is None:
            if len(self._errors) >= _MOST_TOLD:
                self._errors.clear()
            told = self._errors[key] = _errors_text(codes, routine)
        return told

    def _write_sizes(self, out: JsonText, exchange: Exchange) -> None:
        """Write ``98 B → 4.2 KiB``, with ``-`` for a missing side."""
        if exchange.request is None:
            out.put(b"-")
        else:
            write_size(out, exchange.request.frame.size)
        out.put(_ARROW)
        if exchange.response is None:
            out.put(b"-")
        else:
            write_size(out, exchange.response.frame.size)

    def _write_notes(self, out: JsonText, exchange: Exchange) -> None:
        """Write the parts that only some lines have."""
        self._note_topics(out, exchange.topics)
        error = error_text(exchange)
        if error:
            self._note(out, error, _colour_of(error))
        if exchange.missing and (exchange.request is None or exchange.response is None):
            side = "request" if exchange.request is None else "response"
            self._note_missing(out, side, exchange.missing)
        if exchange.request is not None:
            self._note_cut(out, exchange, exchange.request)
        if exchange.response is not None:
            self._note_cut(out, exchange, exchange.response)
        if exchange.inferred:
            what = ", ".join(each.partition(":")[0] for each in exchange.inferred.split("; "))
            self._note(out, f"[inferred {sanitise(what)}]", YELLOW)
        faults = exchange.cheap_faults
        if faults:
            kinds = dict.fromkeys([fault.kind for fault in faults])
            self._note(out, f"[faults: {', '.join(kinds)}]", RED)

    def _note_topics(self, out: JsonText, topics: list[str]) -> None:
        if not topics:
            return
        if len(topics) > 1 or self._colour:
            self._note(out, topics_text(topics), BLUE)
            return
        told = self._topics.get(topics[0])
        if told is None:
            if len(self._topics) >= _MOST_TOLD:
                self._topics.clear()
            told = self._topics[topics[0]] = b"  " + topics_text(topics).encode()
        out.put(told)

    def _note_missing(self, out: JsonText, side: str, why: str) -> None:
        self._note(out, f"[no {side}: {why}]", DIM if why == "acks=0" else YELLOW)

    def _note_cut(self, out: JsonText, exchange: Exchange, message: Message) -> None:
        frame = message.frame
        if frame.size > len(frame.payload):
            why = f", {exchange.missing}" if exchange.missing else ""
            text = f"[{message.kind} cut: {len(frame.payload):,} of {plural(frame.size, 'byte')}{why}]"
            self._note(out, text, YELLOW)

    def _note(self, out: JsonText, text: str, colour: str) -> None:
        out.put(b"  ")
        if self._colour and text:
            out.text(f"\x1b[{colour}m{text}\x1b[0m")
        else:
            out.text(text)


def error_text(exchange: Exchange) -> str:
    """``✗ TOPIC_AUTHORIZATION_FAILED (fatal)``: the first error, with the sign of the worst one; empty
    without an error."""
    error = exchange.error
    return "" if error is None else _with_sign(error, exchange.error_classes())


def _colour_of(error: str) -> str:
    """The colour of an error, by its sign."""
    return _COLOUR_OF.get(error[0], RED)


def _errors_text(codes: Sequence[int], routine: tuple[int, ...]) -> str:
    """The text of the error codes of a response."""
    return _with_sign(error_name(codes[0]), [class_in(code, routine) for code in codes])


def _with_sign(error: str, classes: Sequence[str]) -> str:
    grave, name = gravest(classes), sanitise(error)
    return name if grave is None else f"{SIGNS[grave]} {graded(name, classes[0], grave)}"


def api_text(exchange: Exchange) -> str:
    """``Fetch v12``; ``?`` for a response without a known request."""
    api, version = exchange.api or "?", exchange._first().api_version
    return api if version is None else f"{api} v{version}"


def topics_text(topics: Sequence[str]) -> str:
    """The first topics, and the number of further ones: ``orders,clicks,views +5``."""
    if len(topics) == 1:
        return sanitise(topics[0])
    named = ",".join([sanitise(topic) for topic in topics[:MOST_TOPICS]])
    return named + (f" +{len(topics) - MOST_TOPICS}" if len(topics) > MOST_TOPICS else "")
