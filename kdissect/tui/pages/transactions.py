"""The screen of transactions: the end and the content of each, and transactional ids as time lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

from textual import on
from textual.app import ComposeResult

from kdissect.analysis.fold import Row
from kdissect.analysis.speakers import Speaker, speaker
from kdissect.analysis.speakers import address as address_of
from kdissect.analysis.transaction import ABORTED, COMMITTED, FENCED, OPEN, TIMED_OUT, UNKNOWN
from kdissect.exchange import Exchange
from kdissect.feed.counting import Asked
from kdissect.feed.filtering import quoted, span_text
from kdissect.feed.statistics import CountedTables
from kdissect.feed.stories import PRODUCER, TRANSACTION, Subject, subject
from kdissect.present.form import Clock, duration, plural, size
from kdissect.present.lanes import CellSpan, TextLane
from kdissect.present.names_of_clusters import NamesOfClusters, QualifiedName, with_ambiguous_clusters
from kdissect.present.paragraphs import fold_text
from kdissect.present.sanitise import sanitise
from kdissect.present.whole_record import TextLine
from kdissect.tui.lists.figures import (
    CLUSTER,
    FigureColumn,
    Figures,
    address,
    in_bytes,
    name_column,
    number,
    rare,
    rare_span,
    time_span,
    words,
)
from kdissect.tui.pages.statistics import OF_ALL_CLUSTERS, StatisticsPage
from kdissect.tui.widgets.table import Heading, VirtualTable
from kdissect.tui.widgets.text_pane import TextPane

SIGNS = {COMMITTED: "✓", ABORTED: "✗", FENCED: "⊘", TIMED_OUT: "◷", OPEN: "┄", UNKNOWN: "?"}
"""The sign of each outcome."""
HERE, OTHER, STILL = "█", "─", "┄"
"""The signs of a time line: the transaction under the cursor, another one, one that is open to the end."""
_BAD = (FENCED, TIMED_OUT)
_RANKS = {OTHER: 1, STILL: 1, SIGNS[COMMITTED]: 3, SIGNS[UNKNOWN]: 3, SIGNS[ABORTED]: 4, HERE: 2} | {
    SIGNS[each]: 5 for each in _BAD
}


def outcome(row: Row) -> str:
    """The outcome, with its sign."""
    return f"{SIGNS[row['outcome']]} {row['outcome']}"


def _tone(row: Row) -> str | None:
    if row["outcome"] in _BAD:
        return "table--error"
    return "table--warning" if row["errors"] or row["outcome"] in (ABORTED, OPEN) else None


def _producer(row: Row) -> str:
    if row["producer_id"] is None:
        return ""
    epoch = "" if row["producer_epoch"] is None else f"/{row['producer_epoch']}"
    return f"{row['producer_id']}{epoch}"


def columns(clock: Clock) -> tuple[FigureColumn, ...]:
    """The columns of the list.

    :param clock: writes times.
    """

    def begun(row: Row) -> str:
        return "" if row["begin_ns"] is None else clock.text(row["begin_ns"])

    return (
        name_column("Transactional id", "transactional_id", least=20),
        CLUSTER,
        FigureColumn("Outcome", outcome, outcome, 0, False, is_most_first=False),
        FigureColumn("Begun", begun, lambda row: row["begin_ns"], 1, is_most_first=False),
        time_span("Lasted", "duration_ns"),
        words("Ended by", "ended_by", 2, most=40),
        FigureColumn("Producer", _producer, lambda row: row["producer_id"], 3, False),
        name_column("Client id", "client_id", 2, most=28),
        number("Records", "records", 1),
        in_bytes("Bytes", "bytes", 5),
        number("Parts", "partitions", 4),
        rare("Retries", "retries", 2),
        rare_span("Held", "held_ns", 1),
        time_span("Visible", "visible_ns", 5),
        FigureColumn("Errors", lambda row: ", ".join(row["errors"]), None, 3, False),
        address("Coordinator", "coordinator", 6),
    )


def identity(row: Row) -> Hashable:
    """The identity of a transaction."""
    first = row["exchanges"][0] if row["exchanges"] else None
    return row["transactional_id"], row["producer_id"], row["begin_ns"], row["held_topic"], first


def figures(clock: Clock) -> Figures:
    """The empty rows."""
    return Figures(columns(clock), identity, _tone)


def text_of(row: Row, clock: Clock, room: int) -> list[TextLine]:
    """The known facts of a transaction.

    :param room: cells of a line.
    """
    name = row["transactional_id"]
    lasted = "" if row["duration_ns"] is None else f" after {duration(row['duration_ns'])}"
    whose = "a transaction whose producer was not captured" if name is None else sanitise(name, None)
    out = [TextLine(part, "heading") for part in fold_text(f"{whose}: {outcome(row)}{lasted}", room)]
    for each in _said(row, clock):
        out += [TextLine(part) for part in fold_text(sanitise(each, None), room)]
    return out


def _said(row: Row, clock: Clock) -> Iterator[str]:
    begun, ended = (None if row[name] is None else clock.text(row[name]) for name in ("begin_ns", "end_ns"))
    parts = ["its beginning may not be in the capture" if begun is None else f"begun {begun}"]
    if row["ended_by"] is not None:
        parts.append(f"ended{'' if ended is None else ' ' + ended} by {row['ended_by']}")
    if row["taken_by_client_id"] is not None or row["taken_by_client"] is not None:
        who = "@".join(each for each in (row["taken_by_client_id"], row["taken_by_client"]) if each)
        parts.append(f"{who} took the transactional id")
    yield ", ".join(parts)
    if row["asked"] is not None and row["outcome"] == UNKNOWN:
        yield f"EndTxn asked to {row['asked']} it; the capture does not show what became of that"
    if row["client_id"] is not None or row["client"] is not None:
        who = "@".join(each for each in (row["client_id"], row["client"]) if each)
        producer = f", producer {_producer(row)} (id/epoch)" if row["producer_id"] is not None else ""
        yield f"by {who}{producer}"
    if row["records"] is not None:
        where = "" if row["partitions"] is None else f" to {plural(row['partitions'], 'partition')}"
        yield f"wrote {plural(row['records'], 'record')}, {size(row['bytes'] or 0)}{where}"
    if row["groups"]:
        yield f"commits {plural(row['offsets'] or 0, 'offset')} of {', '.join(row['groups'])}"
    if row["retries"]:
        yield f"{plural(row['retries'], 'request')} refused and tried again, for {duration(row['retry_ns'])}"
    if row["errors"]:
        yield f"errors: {', '.join(row['errors'])}"
    if row["held_ns"]:
        where = "" if row["held_topic"] is None else f" at {row['held_topic']}-{row['held_partition']}"
        behind = "" if not row["held_offsets"] else f", {plural(row['held_offsets'], 'offset')} behind it"
        yield f"readers of committed records waited{where} for {duration(row['held_ns'])}{behind}"
    if row["visible_ns"] is not None:
        yield f"readers could see it {duration(row['visible_ns'])} after its end"
    if row["timeout_ms"] is not None:
        yield f"transaction.timeout.ms {row['timeout_ms']:,}"
    if row["state"] is not None:
        yield f"the coordinator said: {row['state']}"


_ID = "transactional_id"


class IdLines:
    """A time line for each transactional id of a cluster."""

    inks: Mapping[str, str] = {
        **{SIGNS[each]: "table--error" for each in _BAD},
        SIGNS[ABORTED]: "table--warning",
    }

    def __init__(self) -> None:
        self._names = NamesOfClusters((), _ID)
        self._ids: list[QualifiedName] = []
        self._places: dict[QualifiedName, int] = {}
        """The line of each id."""
        self._of: dict[QualifiedName, list[Row]] = {}
        self._span = CellSpan(0, 1)
        self._chosen: Row | None = None
        self._lanes: dict[tuple[QualifiedName, int], TextLane] = {}
        """By id and width, its line without the transaction under the cursor. A line may have thousands of
        transactions, and the cursor moves with each key."""
        self._counts: dict[QualifiedName, str] = {}
        """For each id, the number of each outcome."""
        self._version = 0

    def show(self, rows: Sequence[Row], span: CellSpan) -> None:
        """Take other transactions."""
        self._of, self._names = {}, NamesOfClusters(rows, _ID)
        for row in rows:
            if row[_ID] is not None:
                self._of.setdefault(self._names.name_of(row), []).append(row)
        self._ids, self._span = list(self._of), span
        self._places = {whose: at for at, whose in enumerate(self._ids)}
        self._lanes, self._counts = {}, {}
        self._version += 1

    def choose(self, row: Row | None) -> int | None:
        """Highlight a transaction; return the line of its id."""
        self._chosen = row
        return None if row is None else self._places.get(self._names.name_of(row))

    def __len__(self) -> int:
        return len(self._ids)

    def name(self, row: int) -> str:
        """The transactional id of a line."""
        return self._ids[row][0] or ""

    def headings(self, width: int) -> Sequence[Heading]:
        counts = (Heading("Each outcome", 16),) if width >= 100 else ()
        clusters = (Heading("Cluster", max(8, min(22, width // 6))),) if self._names.shared else ()
        name = Heading("Transactional id", max(16, min(40, width // 4)), is_name=True)
        return (name, *clusters, *counts, Heading("Time", 0))

    def _chosen_of(self, whose: QualifiedName) -> Row | None:
        """The highlighted transaction, if it is of this id."""
        chosen = self._chosen
        return chosen if chosen is not None and self._names.name_of(chosen) == whose else None

    def key(self, row: int) -> Hashable:
        chosen = self._chosen_of(self._ids[row])
        return self._version, row, None if chosen is None else identity(chosen)

    def tone(self, row: int) -> str | None:
        return None

    def cells(self, row: int, width: int) -> Sequence[str]:
        whose = self._ids[row]
        headings = self.headings(width)
        room = width - sum(each.width for each in headings) - (len(headings) - 1)
        told = {
            "Transactional id": lambda: sanitise(whose[0] or ""),
            "Cluster": lambda: sanitise(whose[1] or ""),
            "Each outcome": lambda: self._counted(whose),
            "Time": lambda: self._line(whose, room),
        }
        return [told[each.title]() for each in headings]

    def _counted(self, whose: QualifiedName) -> str:
        if whose not in self._counts:
            found = Counter(each["outcome"] for each in self._of[whose])
            self._counts[whose] = " ".join(f"{SIGNS[each]}{found[each]:,}" for each in SIGNS if found[each])
        return self._counts[whose]

    def _line(self, whose: QualifiedName, room: int) -> str:
        lane = self._lanes.get((whose, room))
        if lane is None:
            lane = self._lanes[whose, room] = TextLane(self._span, room, _RANKS)
            for row in self._of[whose]:
                self._draw(lane, row, STILL if row["outcome"] == OPEN else OTHER)
        chosen = self._chosen_of(whose)
        if chosen is not None:
            lane = lane.copy()
            self._draw(lane, chosen, HERE)
        return lane.text()

    def _draw(self, lane: TextLane, row: Row, sign: str) -> None:
        first = self._span.start_ns if row["begin_ns"] is None else row["begin_ns"]
        last = row["end_ns"] if row["end_ns"] is not None else row["last_ns"]
        is_open = row["outcome"] == OPEN
        last = self._span.end_ns if is_open else max(first, last or first)
        lane.fill(first, last, sign)
        if not is_open:
            lane.mark(last, SIGNS[row["outcome"]])


def place_at(rows: Sequence[Row], exchange: Exchange, ns: int) -> int | None:
    """The row of an exchange's transaction; None if it has no row. It is the first one of its id and cluster
    that was not over at that time. If all were over, it is the last one.

    :param ns: the time of the exchange.
    """
    of_id = {at: row for at, row in enumerate(rows) if row[_ID] in exchange.transactional_ids}
    cluster = _cluster_of(exchange, rows, of_id.values())
    places = [at for at, row in of_id.items() if cluster in (None, row["cluster_id"])]
    for at in places:
        last = _last_ns(rows[at])
        if last is None or ns <= last:
            return at
    return max(places, default=None)


def _cluster_of(exchange: Exchange, rows: Iterable[Row], of_id: Iterable[Row]) -> str | None:
    """The cluster of an exchange, from transactions: one that lists the exchange, those that its broker
    coordinates, or those of its id and client. None if they do not show one cluster.

    :param of_id: the transactions that have its id.
    """
    for told in (
        [row for row in of_id if exchange.number in row["exchanges"]],
        [row for row in rows if row["coordinator"] == exchange.broker],
        [row for row in of_id if _client_of(row) == speaker(exchange)],
    ):
        clusters: set[str] = {row["cluster_id"] for row in told} - {None}
        if len(clusters) == 1:
            return next(iter(clusters))
    return None


def _client_of(row: Row) -> Speaker:
    return Speaker(address_of(row["client"] or ""), row["client_id"])


def _last_ns(row: Row) -> int | None:
    """The time of its end or of its last request, whichever is later: a fenced producer may not know the end
    yet."""
    return max((each for each in (row["end_ns"], row["last_ns"]) if each is not None), default=None)


ASKED = ("transactions",)
_LOOKED_FOR = (
    "A transaction shows in requests with a transactional id: InitProducerId, AddPartitionsToTxn, "
    "TxnOffsetCommit, EndTxn, and Produce of transactional batches. The end of one also shows in the control "
    "records that a consumer or a follower fetches. 9 lists findings, 0 all other facts, for instance what "
    "producers wrote."
)
"""The text if there are no transactions."""
_LEAST_ROWS = 3
"""The least rows of the list."""


class TransactionsPage(StatisticsPage):
    """Transactions, and each transactional id as a time line. The text has the known facts of the transaction
    under the cursor. Enter shows its exchanges."""

    DEFAULT_CSS = """
    TransactionsPage #list { max-height: 60%; }
    TransactionsPage #ids { max-height: 30%; border-top: hkey $panel; }
    TransactionsPage #said { height: 1fr; min-height: 4; border-top: hkey $panel; }
    TransactionsPage.-no-bars #said, TransactionsPage.-no-bars #ids { border-top: none; }
    TransactionsPage.-none #list { height: 1fr; max-height: 100%; }
    TransactionsPage.-none #ids, TransactionsPage.-none #said { display: none; }
    """

    def __init__(self) -> None:
        self._wanted: tuple[Exchange, int] | None = None
        """The exchange whose transaction the cursor will go to, and its time."""
        super().__init__()

    def figures(self) -> Figures:
        self.lines = IdLines()
        return figures(self.clock)

    def body(self) -> ComposeResult:
        yield from super().body()
        yield VirtualTable(self.lines, id="ids")
        yield TextPane(id="said")

    @property
    def ids_pane(self) -> VirtualTable:
        """The time lines."""
        return self.query_one("#ids", VirtualTable)

    def needed_statistics(self) -> Asked:
        return ASKED

    def fill(self, counted: CountedTables) -> None:
        transactions, index = counted.tables[ASKED[0]], self.kdissect.index
        rows = with_ambiguous_clusters(transactions, _ID)
        self.rows.show(rows)
        start = index.first_ns or 0
        self.lines.show(rows, CellSpan(start, max(start + 1, index.last_ns or 0)))
        self.set_class(not rows, "-none")
        self.wish(self.list_pane, max(_LEAST_ROWS, len(rows)) + 1 if rows else "1fr")
        self.wish(self.ids_pane, len(self.lines) + 2 if len(self.lines) else 0)
        if self._wanted is not None and rows:
            at = place_at(transactions, *self._wanted)
            self._wanted = None if not self.statistics.is_busy else self._wanted
            if at is not None:
                self.call_after_refresh(self._go_to, at)

    def _go_to(self, row: int) -> None:
        self.list_pane.cursor = row

    def open_from(self, place: int | None, ns: int | None) -> None:
        exchange = None if place is None else self.kdissect.exchange_at(place)
        if place is not None and exchange is not None and exchange.transactional_ids:
            self._wanted = exchange, self.kdissect.index.value("time_ns", place)
            self.counted = None  # so that the screen is filled again, and the cursor moves

    def cursor_moved(self) -> None:
        row = self.chosen_row()
        at = self.lines.choose(row)
        self.ids_pane.rows_changed(at)

        def text(room: int) -> Sequence[TextLine]:
            return [] if row is None else text_of(row, self.clock, room)

        self.query_one("#said", TextPane).show_folded(text)

    def listed(self) -> str:
        return "transaction"

    def why_empty(self) -> str:
        why = super().why_empty()
        return f"{why} {_LOOKED_FOR}" if why else ""

    def rows_text(self) -> str:
        return plural(len(self.rows), "transaction") if len(self.rows) else "no transactions"

    def notes(self) -> list[str]:
        signs = "   ".join(f"{sign} {each}" for each, sign in SIGNS.items())
        return [*super().notes(), *([signs] if len(self.rows) else [])]

    def subject_of(self, row: Row) -> Subject | None:
        if row["transactional_id"] is not None:
            return subject(TRANSACTION, row["transactional_id"])
        return None if row["producer_id"] is None else subject(PRODUCER, row["producer_id"])

    def exchange_of(self, row: Row) -> int | None:
        return row["exchanges"][-1] if row["exchanges"] else None

    def filter_of(self, row: Row) -> str | None:
        if row["transactional_id"] is None:
            numbers = ", ".join(map(str, row["exchanges"]))
            return f"number in {{{numbers}}}" if numbers else None
        text = f"transactional_id == {quoted(row['transactional_id'])}"
        first, last = row["begin_ns"], _last_ns(row)
        return text if first is None or last is None else f"{text} and {span_text(first, last + 1)}"

    def note_of(self, row: Row) -> str:
        return self._note_of_id(row[_ID])

    def _note_of_id(self, name: str | None) -> str:
        """The note about a filter by an id: at any time, another cluster may have exchanges of it."""
        clusters = {each["cluster_id"] for each in self.rows.all if each[_ID] == name}
        return OF_ALL_CLUSTERS if name is not None and len(clusters) > 1 else ""

    @on(VirtualTable.Chosen, "#ids")
    def _id_chosen(self, event: VirtualTable.Chosen) -> None:
        name = self.lines.name(event.row)
        self.kdissect.filter_by(f"transactional_id == {quoted(name)}", note=self._note_of_id(name))
