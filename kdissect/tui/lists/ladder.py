"""Exchanges as a ladder: time goes down, every endpoint has a lane, messages are arrows between them.

A :class:`Ladder` orders the events of its exchanges once, as arrays; a line is drawn when it is on the
screen. An exchange whose request and response were captured is two events, any other is one. Nothing here
draws on the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len, set_cell_size

from kdissect.exchange import Exchange
from kdissect.feed.index import Index, Places
from kdissect.feed.rows import (
    FIRST,
    HAS_LATENCY,
    HAS_REQUEST,
    HAS_RESPONSE,
    HAS_VERSION,
    grade_of,
)
from kdissect.present.form import Clock, duration, plural, size
from kdissect.present.sanitise import CUT, sanitise
from kdissect.protocol.errors import FATAL, RETRIABLE, SIGNS, graded
from kdissect.tui.lists.layout import shortened
from kdissect.tui.widgets.table import Heading

LANE = 26
"""The cells that a lane needs. Brokers without room share the last one."""

_LATENCY, _IN_FLIGHT = Heading("Latency", 8, True), Heading("In flight", 9)
_BEFORE_IN_FLIGHT = 64
"""The cells that lanes get before there is a column for requests in flight."""
_TIME_WIDTHS = {"r": 12, "a": 15}
_FULL_BAR = 5
_EDGE = 14
"""The most cells before the first lane and after the last, for their names."""


class Snapshot(NamedTuple):
    """Columns of the index at one time: a worker may read them while the index grows."""

    number: NDArray[Any]
    connection: NDArray[Any]
    client: NDArray[Any]
    client_id: NDArray[Any]
    broker: NDArray[Any]
    time_ns: NDArray[Any]
    latency_ns: NDArray[Any]
    flags: NDArray[Any]


def snapshot(index: Index) -> Snapshot:
    """The current columns."""
    return Snapshot(*(index.column(name) for name in Snapshot._fields))


def of_client(columns: Snapshot, place: int, hosts: NDArray[np.uint32]) -> Places:
    """The exchanges of all connections of an exchange's client. Such a connection comes from the same host
    and has the same client id in at least one exchange.

    :param hosts: the number of the host of every text that is an address.
    """
    host, client_id = hosts[columns.client[place]], columns.client_id[place]
    same = (hosts[columns.client] == host) & (columns.client_id == client_id)
    connections = np.unique(np.append(columns.connection[same], columns.connection[place]))
    return np.flatnonzero(np.isin(columns.connection, connections)).astype(np.uint32)


def of_numbers(columns: Snapshot, numbers: Sequence[int]) -> Places:
    """The exchanges with these numbers."""
    return np.flatnonzero(np.isin(columns.number, np.array(numbers, columns.number.dtype))).astype(np.uint32)


def hosts_of(texts: Sequence[str]) -> tuple[NDArray[np.uint32], list[str]]:
    """The number of the host of each text that is an address; and the hosts."""
    numbers: dict[str, int] = {}
    out = np.empty(len(texts), np.uint32)
    for at, text in enumerate(texts):
        host = text.rpartition(":")[0] or text
        out[at] = numbers.setdefault(host, len(numbers))
    return out, list(numbers)


class LadderEvents(NamedTuple):
    """The events, in the order of time."""

    which: NDArray[np.uint32]
    """Twice the exchange's place, plus one for its response."""
    in_flight: NDArray[np.uint32]
    """The requests in flight after each event; only requests that were answered count."""


def events_of(columns: Snapshot, places: Places) -> LadderEvents:
    """The events of exchanges. At the same time, requests come before responses, and lower numbers first."""
    by_number = places[np.argsort(columns.number[places], kind="stable")]
    flags, began = columns.flags[by_number], columns.time_ns[by_number]
    asked = (flags & HAS_REQUEST) != 0
    answered = (flags & HAS_RESPONSE) != 0
    both = asked & answered & ((flags & HAS_LATENCY) != 0)
    # The time of an exchange without request is that of its response.
    times = np.concatenate(
        (began[asked], (began + np.where(both, columns.latency_ns[by_number], 0))[answered])
    )
    which = np.concatenate((by_number[asked] * 2, by_number[answered] * 2 + 1))
    steps = np.concatenate((both[asked].astype(np.int64), -both[answered].astype(np.int64)))
    order = np.argsort(times, kind="stable")
    return LadderEvents(which[order], np.maximum(np.cumsum(steps[order]), 0).astype(np.uint32))


class Lanes(NamedTuple):
    """The endpoints, in the order of their first events."""

    clients: list[tuple[int, int]]
    """The numbers of the host and of the client id's text."""
    brokers: list[int]
    """Numbers of the addresses' texts."""


def lanes_of(columns: Snapshot, places: Places, hosts: NDArray[np.uint32], is_one_client: bool) -> Lanes:
    """The lanes of exchanges.

    :param is_one_client: whether all are of the first one's client, whatever ids they name.
    """
    pairs = np.stack((hosts[columns.client[places]], columns.client_id[places]), axis=1)
    found, first = np.unique(pairs, axis=0, return_index=True)
    clients = [(int(a), int(b)) for a, b in found[np.argsort(first)]]
    if is_one_client:
        clients = clients[:1]
    brokers, first = np.unique(columns.broker[places], return_index=True)
    return Lanes(clients, brokers[np.argsort(first)].tolist())


class LaneSharers(NamedTuple):
    """The endpoints of an exchange that share their lanes with others. Empty for an endpoint with its own
    lane."""

    client: str
    broker: str

    @property
    def request(self) -> tuple[str, str]:
        """The texts before and after a request's arrow."""
        return self.client and f"{self.client}: ", self.broker and f" to {self.broker}"

    @property
    def response(self) -> str:
        """The text after a response's arrow."""
        words = (self.broker and f"from {self.broker}", self.client and f"to {self.client}")
        return " ".join(filter(None, words))


class Notes(NamedTuple):
    """The subject of an exchange's messages, in a few words."""

    request: str = ""
    response: str = ""


_NAMING_APIS = frozenset(
    (
        *("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch"),
        *("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat", "FindCoordinator"),
        *("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"),
    )
)
"""APIs whose messages name groups and transactions. Only these are read for their arrow."""
_GENERATIONS = ("generationId", "generationIdOrMemberEpoch", "memberEpoch")


def notes_of(exchange: Exchange) -> Notes:
    """The group or transactional id, the generation or epoch, and the request of EndTxn."""
    request = exchange.request.body() if exchange.request is not None else {}
    response = exchange.response.body() if exchange.response is not None else {}
    words = [sanitise(each) for each in (*exchange.transactional_ids, *exchange.groups)]
    committed = request.get("committed")
    if isinstance(committed, bool):
        words.append("commit" if committed else "abort")
    return Notes(" ".join((*words, *_generation(request))), " ".join(_generation(response)))


def _generation(body: Mapping[str, Any]) -> Iterator[str]:
    for name in _GENERATIONS:
        value = body.get(name)
        if isinstance(value, int) and value >= 0:
            yield f"{'epoch' if name == 'memberEpoch' else 'generation'} {value}"
            return
    epoch = body.get("producerEpoch")
    if isinstance(epoch, int) and epoch >= 0:
        yield f"producer epoch {epoch}"


class Ladder:
    """The events as rows of a table.

    :param read: gives the exchange at a place of the index; None if it cannot be read. Without it, arrows
        name no groups and transactions.
    """

    def __init__(self, index: Index, read: Callable[[int], Exchange | None] | None = None) -> None:
        self._index = index
        self._read = read
        self.clock = Clock("r")
        self._generation = 0
        self._hosts: list[str] = []
        self._host_of: NDArray[np.uint32] = np.zeros(1, np.uint32)
        self._client_lane: dict[tuple[int, int], int] = {}
        self._broker_lane: dict[int, int] = {}
        self.events = LadderEvents(np.zeros(0, np.uint32), np.zeros(0, np.uint32))
        self.lanes = Lanes([], [])

    def show(self, events: LadderEvents, lanes: Lanes, hosts: tuple[NDArray[np.uint32], list[str]]) -> None:
        """Show other events."""
        self.events, self.lanes = events, lanes
        self._host_of, self._hosts = hosts
        self._client_lane = {each: at for at, each in enumerate(lanes.clients)}
        self._broker_lane = {each: at for at, each in enumerate(lanes.brokers)}
        self._generation += 1

    def __len__(self) -> int:
        return len(self.events.which)

    def place(self, row: int) -> int:
        """The place in the index of a row's exchange."""
        return int(self.events.which[row]) >> 1

    def is_response(self, row: int) -> bool:
        """Whether a row is a response."""
        return bool(self.events.which[row] & 1)

    def row_of(self, place: int) -> int | None:
        """The first row of an exchange."""
        found = np.flatnonzero(self.events.which >> 1 == place)
        return int(found[0]) if len(found) else None

    # -- rows -----------------------------------------------------------------------------------------

    def headings(self, width: int) -> Sequence[Heading]:
        time = Heading("Time", _TIME_WIDTHS[self.clock.letter], True)
        room = max(1, self._lanes_room(width))
        lanes = Heading(self._names(room), room if room == _BEFORE_IN_FLIGHT else 0)
        return (time, lanes, _LATENCY, _IN_FLIGHT) if self._has_in_flight(width) else (time, lanes, _LATENCY)

    def _has_in_flight(self, width: int) -> bool:
        return self._left(width) - _IN_FLIGHT.width - 1 >= _BEFORE_IN_FLIGHT

    def _left(self, width: int) -> int:
        """The cells besides times and latencies."""
        return width - _TIME_WIDTHS[self.clock.letter] - _LATENCY.width - 2

    def _lanes_room(self, width: int) -> int:
        """The cells for the lanes: no more in a narrower table than in a wider one."""
        if self._has_in_flight(width):
            return self._left(width) - _IN_FLIGHT.width - 1
        return min(self._left(width), _BEFORE_IN_FLIGHT)

    def key(self, row: int) -> Hashable:
        return self._generation, row

    def tone(self, row: int) -> str | None:
        place, index = self.place(row), self._index
        flags = index.value("flags", place)
        grade = grade_of(flags) if self.is_response(row) else ""
        if grade in (FATAL, RETRIABLE):
            return "table--error" if grade == FATAL else "table--warning"
        if not flags & HAS_RESPONSE:
            return "table--dim" if index.text("missing", place) == "acks=0" else "table--warning"
        return "table--warning" if index.value("faults", place) else None

    def cells(self, row: int, width: int) -> Sequence[str]:
        index, place = self._index, self.place(row)
        if self.clock.first_ns is None:
            self.clock.first_ns = index.first_ns
        flags, is_response = index.value("flags", place), self.is_response(row)
        has_latency = bool(flags & HAS_LATENCY)
        latency = index.value("latency_ns", place)
        time_ns = index.value("time_ns", place) + (latency if is_response and has_latency else 0)
        in_flight = int(self.events.in_flight[row])
        shown_latency = duration(latency) if is_response and has_latency else ""
        arrow = self._arrow(row, self._lanes_room(width))
        if not self._has_in_flight(width):
            return self.clock.text(time_ns), arrow, shown_latency
        bar = "█" * min(in_flight, _FULL_BAR) + (f" {in_flight}" if in_flight else "")
        return self.clock.text(time_ns), arrow, shown_latency, bar

    # -- lanes ----------------------------------------------------------------------------------------

    def _columns(self, width: int) -> list[int]:
        """The columns of the lanes."""
        clients, brokers = len(self.lanes.clients), len(self.lanes.brokers)
        shown = min(max(2, width // LANE), clients + brokers)
        edge = min(_EDGE, width // 8, width // (2 * max(1, shown)))
        return [edge + (width - 1 - 2 * edge) * at // max(1, shown - 1) for at in range(shown)]

    def _lane(self, row: int, lanes: int) -> tuple[int, int]:
        """The lanes of a row's client and broker, among the shown ones."""
        index, place = self._index, self.place(row)
        # Clients have half of the lanes at most, so that brokers have room too.
        clients = self._client_lanes(lanes)
        host = int(self._host_of[index.value("client", place)])
        client = self._client_lane.get((host, index.value("client_id", place)), 0)
        broker = self._broker_lane.get(index.value("broker", place), 0)
        return min(client, clients - 1), min(clients + broker, lanes - 1)

    def _client_lanes(self, lanes: int) -> int:
        brokers = len(self.lanes.brokers)
        return max(1, min(len(self.lanes.clients), max(lanes // 2, lanes - brokers)))

    def _names(self, width: int) -> str:
        """The names of the lanes, each above its own."""
        at = self._columns(width)
        if not at or not self.lanes.clients:
            return ""
        clients = self._client_lanes(len(at))
        names = [self._client_name(number, clients) for number in range(clients)]
        names += [self._broker_name(number, len(at) - clients) for number in range(len(at) - clients)]
        line = ""
        for number, ((name, end), x) in enumerate(zip(names, at, strict=True)):
            following = at[number + 1] if number + 1 < len(at) else width + (width - x)
            room = max(1, (x + following) // 2 if not number else following - x - 1)
            name = shortened(name, end, room)
            start = max(0, min(x - cell_len(name) // 2, width - cell_len(name)))
            line = set_cell_size(line, max(start, min(cell_len(line) + 1, start + 1))) + name
        return set_cell_size(line, width)

    def _client_name(self, lane: int, lanes: int) -> tuple[str, str]:
        """The name, and the part of it that stays if it has to be cut: the host."""
        if lane == lanes - 1 and len(self.lanes.clients) > lanes:
            return plural(len(self.lanes.clients) - lane, "client"), ""
        host, client_id = self.lanes.clients[lane]
        name = self._index.texts[client_id]
        return (name, f" {self._hosts[host]}") if name else (self._hosts[host], "")

    def _broker_name(self, lane: int, lanes: int) -> tuple[str, str]:
        """The name, and the part of it that stays if it has to be cut: the port."""
        if lane == lanes - 1 and len(self.lanes.brokers) > lanes:
            return plural(len(self.lanes.brokers) - lane, "broker"), ""
        host, colon, port = self._index.texts[self.lanes.brokers[lane]].rpartition(":")
        return host, colon + port

    def _arrow(self, row: int, width: int) -> str:
        at = self._columns(width)
        client, broker = self._lane(row, len(at))
        left, right = at[client], at[broker]
        is_response = self.is_response(row)
        line = [" "] * width
        for each in at:
            line[each] = "│"
        dash = "╌" if is_response else "─"
        for x in range(left + 1, right):
            line[x] = "┼" if line[x] == "│" else dash
        line[left + 1 if is_response else right - 1] = "◀" if is_response else "▶"
        room = max(1, right - left - 5)
        text = self._label(row, room, self._sharing(row, len(at)))
        text = text if len(text) <= room else text[: room - 1] + CUT
        start = left + 3
        line[start : start + len(text)] = text
        return "".join(line)

    def _notes(self, place: int) -> Notes:
        """The group and transaction in the messages of an exchange. A line on the screen is drawn once, so
        nothing is kept."""
        if self._read is None or self._index.text("api", place) not in _NAMING_APIS:
            return Notes()
        exchange = self._read(place)
        return Notes() if exchange is None else notes_of(exchange)

    def _sharing(self, row: int, lanes: int) -> LaneSharers:
        """The endpoints of a row that its lanes' headings do not show."""
        index, place, first = self._index, self.place(row), self._client_lanes(lanes)
        host = int(self._host_of[index.value("client", place)])
        lane = self._client_lane.get((host, index.value("client_id", place)), 0)
        client = broker = ""
        if first <= lane + 1 and first < len(self.lanes.clients):
            client = index.text("client_id", place) or self._hosts[host]
        shown, at = lanes - first, self._broker_lane.get(index.value("broker", place), 0)
        if shown <= at + 1 and shown < len(self.lanes.brokers):
            broker = self._short_broker(index.text("broker", place))
        return LaneSharers(client, broker)

    def _short_broker(self, address: str) -> str:
        """The port of a broker; the whole address if brokers have several hosts."""
        hosts = {self._index.texts[each].rpartition(":")[0] for each in self.lanes.brokers}
        return address if hosts - {address.rpartition(":")[0]} else f":{address.rpartition(':')[2]}"

    def _label(self, row: int, room: int, sharing: LaneSharers) -> str:
        """The text of an arrow: the API, and its topics, group or transaction; for a response the outcome.
        Both arrows of an exchange have its number, because connections may have the same correlation ids.

        Every character is one cell wide. If the API has no room, its name is cut and its version stays.
        """
        index, place = self._index, self.place(row)
        flags = index.value("flags", place)
        number = f" #{index.value('number', place)}" if flags & HAS_REQUEST else ""
        if self.is_response(row):
            error = index.text("error", place)
            count = size(max(0, index.value("response_size", place)))
            grade = grade_of(flags)
            told = f"{SIGNS[grade]} {graded(error, grade_of(flags, FIRST), grade)}" if grade else count
            told = " ".join(filter(None, (f"{told}{number}", self._notes(place).response)))
            text = " ".join(filter(None, (told, sharing.response)))
            if not flags & HAS_REQUEST:
                text = (
                    f"{index.text('api', place) or '?'} {text} [no request: {index.text('missing', place)}]"
                )
        else:
            version = f" v{index.value('api_version', place)}" if flags & HAS_VERSION else ""
            sender, receiver = sharing.request
            left = max(1, room - cell_len(sender))
            text = shortened(index.text("api", place) or "?", f"{version}{number}", left)
            text = f"{sender}{text}{receiver}"
            notes = self._notes(place).request or index.text("topics", place)
            text = f"{text} {notes}" if notes else text
            if not flags & HAS_RESPONSE:
                text += f" [no response: {index.text('missing', place)}]"
        return "".join(character if cell_len(character) == 1 else "?" for character in text)
