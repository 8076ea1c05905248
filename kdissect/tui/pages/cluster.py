"""The screen of the cluster: its changes, and its state at the time under the cursor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from textual.app import ComposeResult

from kdissect.analysis.fold import Row
from kdissect.feed.counting import Asked
from kdissect.feed.statistics import CountedTables, Statistics
from kdissect.feed.stories import TOPIC, Subject, subject
from kdissect.present.form import Clock, plural
from kdissect.present.sanitise import sanitise
from kdissect.tui.lists.figures import FigureColumn, Figures, exchange_number, name_column, number, words
from kdissect.tui.pages.statistics import GroupedScreen, GroupedTable
from kdissect.tui.widgets.table import VirtualTable

CHANGES, BROKERS, PARTITIONS, TOPICS, CONFIGS = (
    "cluster_changes",
    "cluster_brokers",
    "cluster_partitions",
    "cluster_topics",
    "cluster_configs",
)
ASKED = (CHANGES, BROKERS, PARTITIONS, TOPICS, CONFIGS)
VIEWS = {"partitions": PARTITIONS, "topics": TOPICS, "settings": CONFIGS}
"""The tables below the brokers, in the order in which the key cycles through them."""
HERE, BEGIN, END = "▶ here", "begin", "end"
"""Rows in the list of changes: the time under the cursor of another screen, and both ends."""
_BAD = (
    "unclean-election",
    "broker-gone",
    "broker-fenced",
    "isr-shrunk",
    "log-dirs-offline",
    "broker-refused",
)
_NOBODY = -1


def change_columns(clock: Clock) -> tuple[FigureColumn, ...]:
    """The columns of the list of changes.

    :param clock: writes times.
    """
    return (
        FigureColumn("Time", lambda row: clock.text(row["ns"]), lambda row: row["ns"], is_most_first=False),
        words("What", "what", least=18),
        name_column("Of", "subject", least=20),
        words("Before", "before", 1, most=40),
        words("After", "after", 0, most=60),
        words("By", "by", 2, most=40),
        words("Seen in", "told_by", 3, most=28),
        exchange_number("exchange", 2),
    )


def _role(row: Row) -> str:
    words = ["controller"] if row["controller"] else []
    return ", ".join([*words, *(["fenced"] if row["fenced"] else [])])


def _leader(row: Row) -> str:
    if row["leader"] is None:
        return "?"
    return "none" if row["leader"] == _NOBODY else str(row["leader"])


def _state(row: Row) -> str:
    """The problem of a partition, in a word."""
    if row["leader"] == _NOBODY:
        return "no leader"
    isr, replicas = row["isr"], row["replicas"]
    if isr is not None and replicas is not None and len(_nodes(isr)) < len(_nodes(replicas)):
        return "not all in sync"
    return "not the preferred leader" if row["preferred"] is False else ""


def _nodes(text: str) -> list[str]:
    return [each for each in text.replace(" ", "").split(",") if each]


BROKER_COLUMNS = (
    number("Broker", "node_id"),
    FigureColumn(
        "Address", lambda row: f"{sanitise(row['host'])}:{row['port']}", None, 0, False, 60, False, 20
    ),
    FigureColumn("Role", _role, None, 1, False),
    number("Leads", "leads", 1),
    number("Copies", "copies", 2),
    words("Rack", "rack", 3, most=20),
    words("Listener", "listener", 4, most=20),
    words("Software", "software", 2, most=32),
    number("Epoch", "epoch", 5),
    words("Seen in", "told_by", 4, most=28),
)


def view_columns(clock: Clock) -> dict[str, tuple[FigureColumn, ...]]:
    """The columns of each view of the state.

    :param clock: writes times.
    """
    since = FigureColumn("Since", lambda row: clock.text(row["from_ns"]), lambda row: row["from_ns"], 2)
    return {
        "partitions": (
            name_column("Topic", "topic", least=20),
            number("Part", "partition"),
            FigureColumn("Leader", _leader, lambda row: row["leader"]),
            words("In sync", "isr", 0, least=8),
            words("Replicas", "replicas", 0, least=8),
            FigureColumn("State", _state, lambda row: _state(row) or None, 1, False, 28, False, 15),
            number("Epoch", "leader_epoch", 2),
            words("Offline", "offline", 1),
            words("May lead", "elr", 3),
            since,
            words("Seen in", "told_by", 4, most=28),
        ),
        "topics": (
            name_column("Topic", "topic", least=20),
            number("Partitions", "partitions"),
            number("Replication", "replication"),
            FigureColumn("Internal", lambda row: "internal" if row["internal"] else "", None, 2, False),
            words("Id", "topic_id", 3, most=40),
            since,
            words("Seen in", "told_by", 4, most=28),
        ),
        "settings": (
            words("Of", "resource_type", most=16),
            name_column("Whose", "resource", 0, least=16),
            name_column("Setting", "config", 0, least=24),
            words("Value", "value", 0, most=60),
            words("Source", "source", 1, most=20),
            since,
            words("Seen in", "told_by", 4, most=28),
        ),
    }


_KEYS = {
    "partitions": ("topic", "partition"),
    "topics": ("topic",),
    "settings": ("resource_type", "resource", "config"),
}


def _tone(row: Row) -> str | None:
    if row["is_new"]:
        return "table--warning"
    if "leader" in row and row["leader"] == _NOBODY:
        return "table--error"
    return "table--warning" if "isr" in row and _state(row) == "not all in sync" else None


def _broker_tone(row: Row) -> str | None:
    if row["fenced"]:
        return "table--error"
    return "table--warning" if row["is_new"] else None


def _change_tone(row: Row) -> str | None:
    return "table--warning" if row["what"] in _BAD else "table--dim" if row["what"] in (BEGIN, END) else None


def change_figures(clock: Clock) -> Figures:
    """The changes, without rows."""
    names = ("what", "ns", "subject", "exchange")
    return Figures(change_columns(clock), lambda row: tuple(row[name] for name in names), _change_tone)


def change_rows(changes: Sequence[Row], span: tuple[int, int], here: Row | None) -> list[Row]:
    """Changes in the order of time, between the beginning and the end of the capture.

    :param here: the row of the exchange that was under the cursor of another screen.
    """
    begin, end = (_moment(what, ns) for what, ns in zip((BEGIN, END), span, strict=True))
    inner = sorted([*changes, *([here] if here is not None else [])], key=lambda row: int(row["ns"]))
    return [begin, *inner, end]


def _moment(what: str, ns: int, **more: object) -> Row:
    names = ("subject", "before", "after", "by", "told_by", "exchange", "topic", "partition", "node_id")
    return {"ns": ns, "what": what, **dict.fromkeys(names), **more}


def then(rows: Sequence[Row], at_ns: int) -> list[Row]:
    """The state at a time; each row has whether it began at that time."""
    from kdissect.analysis.cluster import held_at  # with the metadata log, which no other screen needs

    return [{**row, "is_new": row["from_ns"] == at_ns} for row in held_at(rows, at_ns)]


def brokers_then(brokers: Sequence[Row], partitions: Sequence[Row]) -> list[Row]:
    """Brokers, with the numbers of partitions that each leads and replicates."""
    leads = Counter(row["leader"] for row in partitions)
    copies: Counter[str] = Counter()
    for replicas, count in Counter(row["replicas"] or "" for row in partitions).items():
        for node in _nodes(replicas):
            copies[node] += count
    return [{**row, "leads": leads[row["node_id"]], "copies": copies[str(row["node_id"])]} for row in brokers]


class ClusterPage(GroupedScreen):
    """The list shows changes, between the beginning and the end of the capture. The exchange under the cursor
    of the screen before has its place in it. Below are the brokers and the partitions (one key: topics,
    settings) at the time under the cursor. Enter shows the exchange that reported a change."""

    DEFAULT_CSS = """
    ClusterPage #list { height: 2fr; }
    ClusterPage #brokers { height: auto; max-height: 30%; border-top: hkey $panel; }
    ClusterPage #state { height: 3fr; border-top: hkey $panel; }
    ClusterPage.-low #list { height: 6; }
    ClusterPage.-no-bars #brokers, ClusterPage.-no-bars #state { border-top: none; }
    """
    GROUPINGS = tuple(VIEWS)
    OF_WHAT = "from all exchanges, without the filter"

    def __init__(self) -> None:
        self._here: Row | None = None
        self._to_find = True
        """Whether the cursor still has to go to the exchange of the screen before, or else to the end."""
        super().__init__()

    def figures(self) -> Figures:
        self.view_columns = view_columns(self.clock)
        self.brokers = Figures(
            BROKER_COLUMNS, lambda row: (row["node_id"], row["host"], row["port"]), _broker_tone
        )
        self.state = Figures(
            self.view_columns[self.grouping],
            lambda row: tuple(row[name] for name in _KEYS[self.grouping]),
            _tone,
        )
        return change_figures(self.clock)

    def body(self) -> ComposeResult:
        yield GroupedTable(self.rows, id="list")
        yield GroupedTable(self.brokers, id="brokers")
        yield GroupedTable(self.state, id="state")

    @property
    def statistics(self) -> Statistics:
        return self.kdissect.judging

    def shown(self) -> int:
        return len(self.kdissect.index)

    def needed_statistics(self) -> Asked:
        return ASKED

    def open_from(self, place: int | None, ns: int | None) -> None:
        """Show the state at the time of an exchange, by its place in the index, or at a time."""
        index = self.kdissect.index
        if place is not None:
            number_of, api = index.value("number", place), index.text("api", place)
            here = _moment(
                HERE, index.value("time_ns", place), subject=f"No. {number_of} {api}", exchange=number_of
            )
        elif ns is not None:
            here = _moment(HERE, ns)
        else:
            return
        self._here, self._to_find = here, True
        if self.is_mounted:
            self.refill()

    def fill(self, counted: CountedTables) -> None:
        index = self.kdissect.index
        first = index.first_ns or 0
        rows = change_rows(counted.tables[CHANGES], (first, max(first, index.last_ns or 0)), self._here)
        self.rows.show(rows, change_columns(self.clock))
        self.at_most(self.list_pane, len(rows) + 2)
        if self._to_find:
            wanted = len(rows) - 1 if self._here is None else rows.index(self._here)
            self._to_find = self.statistics.is_busy
            self.call_after_refresh(self._go_to, wanted)

    def _go_to(self, row: int) -> None:
        self.list_pane.cursor = row

    def cursor_moved(self) -> None:
        row, counted = self.chosen_row(), self.counted
        if row is None or counted is None:
            return
        partitions = then(counted.tables[PARTITIONS], row["ns"])
        self.brokers.show(brokers_then(then(counted.tables[BROKERS], row["ns"]), partitions))
        shown = partitions
        if self.grouping != "partitions":
            shown = then(counted.tables[VIEWS[self.grouping]], row["ns"])
        if self.grouping == "settings":
            shown = [each for each in shown if each["source"] != "default"]
        self.state.show(shown, self.view_columns[self.grouping])
        brokers, state = (self.query_one(name, VirtualTable) for name in ("#brokers", "#state"))
        self.wish(brokers, len(self.brokers) + 2)
        at = next((at for at in range(len(self.state)) if self.state.row(at)["is_new"]), 0)
        brokers.rows_changed(0)
        state.rows_changed(at)
        state.show_empty("" if shown else self._why_nothing(counted, row["ns"]))
        self.update_message()

    def _why_nothing(self, counted: CountedTables, at_ns: int) -> str:
        """The text below the headings of the lower list while it has no row."""
        what, known = self.grouping, counted.tables[VIEWS[self.grouping]]
        if self.statistics.is_busy:
            return ""
        if not known:
            return f"No message in the capture mentions {what}."
        first = min(row["from_ns"] for row in known)
        if at_ns < first:
            return (
                f"No message before {self.clock.text(first)} mentions {what}. "
                "End shows the cluster at the end of the capture, ↓ the next change."
            )
        if then(known, at_ns):
            return f"All {what} known at this time have their default value."
        return f"No {what} are known at this time."

    def rows_text(self) -> str:
        changes = sum(
            1 for at in range(len(self.rows)) if self.rows.row(at)["what"] not in (BEGIN, HERE, END)
        )
        row = self.chosen_row()
        at = "" if row is None else f", the cluster at {self.clock.text(row['ns'])}"
        if not len(self.brokers) and not len(self.state):
            return f"{plural(changes, 'change')}{at}: no information before that time"
        return f"{plural(changes, 'change')}{at}: {plural(len(self.state), self.grouping.removesuffix('s'))}"

    def notes(self) -> list[str]:
        return [*super().notes(), f"g: {', '.join(self.other_groupings)}"]

    def show_table(self, name: str) -> None:
        grouping = next((view for view, table in VIEWS.items() if table == name), self.grouping)
        if grouping != self.grouping:
            self.grouping = grouping
            if self.is_mounted:
                self.regroup()

    def regroup(self) -> None:
        self.cursor_moved()

    def exchange_of(self, row: Row) -> int | None:
        found: int | None = row["exchange"]
        return found

    def subject_of(self, row: Row) -> Subject | None:
        return None if row["topic"] is None else subject(TOPIC, row["topic"])

    @property
    def opens(self) -> str:
        return "Exchange"

    def open(self, row: Row) -> None:
        if row["exchange"] is None:
            self.show_message("no exchange contains this")
        else:
            self.kdissect.go_to_number(row["exchange"])
