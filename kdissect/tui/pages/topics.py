"""The screen of topics and partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from textual import on
from textual.app import ComposeResult

from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.summary import by_topic
from kdissect.feed.counting import Asked
from kdissect.feed.filtering import quoted
from kdissect.feed.statistics import CountedTables
from kdissect.feed.stories import CLIENT as OF_CLIENT
from kdissect.feed.stories import GROUP as OF_GROUP
from kdissect.feed.stories import TOPIC as OF_TOPIC
from kdissect.feed.stories import Subject, subject
from kdissect.present.form import bars, duration, plural, size
from kdissect.present.lanes import POINTS, USUAL_LAG_STEP, lag_step, thinned
from kdissect.present.names_of_clusters import NamesOfClusters, with_ambiguous_clusters
from kdissect.tui.lists.figures import (
    CLUSTER,
    FigureColumn,
    Figures,
    address,
    error_columns,
    grave_tone,
    in_bytes,
    list_column,
    name_column,
    number,
    rare,
    rate,
    words,
)
from kdissect.tui.pages.statistics import GroupedPage
from kdissect.tui.widgets.table import VirtualTable

TOPIC, PARTITION, GROUP, CLIENT = "topic", "partition", "group", "client"


def _batch_sizes(row: Row) -> str:
    smallest, largest = row["batch_bytes_min"], row["batch_bytes_max"]
    if smallest is None or smallest == largest:
        return "" if smallest is None else size(smallest)
    return f"{size(smallest)}…{size(largest)}"


def _lag(row: Row) -> str:
    if row["lag_min"] is None or row["lag_min"] == row["lag_max"]:
        return "" if row["lag_max"] is None else f"{row['lag_max']:,}"
    return f"{row['lag_min']:,}…{row['lag_max']:,}"


def _age(row: Row) -> str:
    """The age of a consumer's lag: records written after its last Fetch are not in it."""
    return "" if (row["age_ns"] or 0) < SECOND else f"{duration(row['age_ns'])} ago"


TOPIC_COLUMNS = (
    name_column("Topic", "topic", least=20),
    CLUSTER,
    number("Part", "partitions"),
    number("Produced", "produced_records", 3),
    rate("rec/s in", "produced_records_per_s", 1),
    number("Fetched", "fetched_records", 3),
    rate("rec/s out", "fetched_records_per_s", 1),
    in_bytes("Bytes in", "produced_bytes", 2),
    in_bytes("Bytes out", "fetched_bytes", 2),
    in_bytes("Replicated", "replicated_bytes", 8),
    list_column("Codec", "codecs", 4, most=16),
    FigureColumn("Batch", _batch_sizes, lambda row: row["batch_bytes_max"], 6),
    FigureColumn("Lag", _lag, lambda row: row["lag_max"]),
    *error_columns(),
)

PARTITION_COLUMNS = (
    name_column("Topic", "topic", least=20),
    CLUSTER,
    number("Part", "partition"),
    words("Direction", "direction", most=10),
    number("Exchanges", "exchanges", 5),
    number("Batches", "batches", 4),
    number("Records", "records"),
    rate("rec/s", "records_per_s", 1),
    in_bytes("Bytes", "bytes"),
    FigureColumn(
        "Bytes/s",
        lambda row: "" if row["bytes_per_s"] is None else f"{size(round(row['bytes_per_s']))}/s",
        lambda row: row["bytes_per_s"],
        3,
    ),
    list_column("Codec", "codecs", 2, most=16),
    FigureColumn("Batch", _batch_sizes, lambda row: row["batch_bytes_max"], 6),
    FigureColumn(
        "Lag", lambda row: _lag(row) if row["direction"] == "fetch" else "", lambda row: row["lag_max"]
    ),
    rare("Control", "control_batches", 8),
    rare("Cut", "partial_batches", 8),
    *error_columns(),
)


LAG = number("Lag", "lag")
GROUP_COLUMNS = (
    name_column("Group", "group", least=16),
    CLUSTER,
    name_column("Topic", "topic", least=16),
    number("Part", "partition"),
    number("Committed", "committed", 1),
    number("End of log", "log_end", 1),
    LAG,
    FigureColumn("Over time", lambda row: bars(row["line"]), None, 1, False, POINTS),
    number("Most", "lag_max"),
    rate("Grows/s", "lag_per_s", 1),
    rate("In/s", "written_per_s", 3),
    rate("Out/s", "committed_per_s", 3),
    number("Commits", "commits", 2),
    rare("Rewinds", "rewinds", 2),
    list_column("Committed by", "committers", 2, most=40),
)

CLIENT_COLUMNS = (
    name_column("Client id", "client_id", least=16),
    name_column("Topic", "topic", least=16),
    CLUSTER,
    number("Part", "partition"),
    LAG,
    FigureColumn("As of", _age, lambda row: row["age_ns"], is_rare=True),
    number("Most", "max_lag"),
    name_column("Group", "group", 1, most=40),
    address("Client", "client", 1),
    rate("Grows/s", "lag_per_s", 1),
    number("Fetches up to", "position", 1),
    number("End of log", "high_watermark", 1),
    number("Records", "records", 2),
    in_bytes("Bytes", "bytes", 4),
    address("Broker", "broker", 5),
    rare("Stalled", "stalled", 2),
    rare("Rewinds", "rewinds", 3),
    *error_columns(),
)


def figures() -> Figures:
    """The empty rows."""
    names = ("topic", "partition", "direction", "group", "cluster_id", "client_id", "client", "broker")
    return Figures(TOPIC_COLUMNS, lambda row: tuple(row.get(name) for name in names), grave_tone)


def lag_rows(lag: Sequence[Row], over_time: Iterable[Row]) -> list[Row]:
    """A row for each group and partition, the largest lag first, with its lag over time as a ``line``."""
    rows, lines, names = (
        with_ambiguous_clusters(lag, "group"),
        dict[object, list[int]](),
        NamesOfClusters(lag, "group"),
    )
    for row in over_time:
        if row["ns"] is not None and row["lag"] is not None:
            lines.setdefault((names.name_of(row), row["topic"], row["partition"]), []).append(row["lag"])
    rows = [
        {**row, "line": thinned(lines.get((names.name_of(row), row["topic"], row["partition"]), ()))}
        for row in rows
    ]
    return sorted(rows, key=lambda row: -(row["lag"] or 0))


def client_rows(positions: Iterable[Row], until_ns: int | None = None) -> list[Row]:
    """A row for each consumer and partition, the largest lag first, with the age of the lag as ``age_ns``.

    :param until_ns: when the capture ends.
    """

    def age_ns(row: Row) -> int | None:
        last_ns = row["fetched_last_ns"]
        return None if until_ns is None or last_ns is None else until_ns - last_ns

    rows = [{**row, "age_ns": age_ns(row)} for row in positions if row["replica_id"] in (None, -1)]
    return sorted(rows, key=lambda row: -(row["lag"] or 0))


def alike(topics: Sequence[Row], positions: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """The rows of both tables. They name a cluster only if several clusters have a topic of that name."""
    rows = with_ambiguous_clusters((*topics, *positions), "topic")
    return rows[: len(topics)], rows[len(topics) :]


def topic_rows(topics: Iterable[Row], positions: Iterable[Row]) -> list[Row]:
    """A row for each topic. Both tables are as :func:`alike` returns them."""
    traffic, readers = (_by(("cluster_id",), rows) for rows in (topics, positions))
    rows = [
        {**row, "cluster_id": cluster}
        for (cluster,) in traffic.keys() | readers.keys()
        for row in by_topic(traffic.get((cluster,), ()), readers.get((cluster,), ()))
    ]
    return sorted(rows, key=lambda row: (row["topic"] is None, row["topic"] or "", row["cluster_id"] or ""))


def partition_rows(topics: Iterable[Row], positions: Iterable[Row]) -> list[Row]:
    """A row for each partition and direction, with the lag of its readers. Both tables are as :func:`alike`
    returns them."""
    readers = _by(_PLACE, positions)
    out = []
    for row in topics:
        here = by_topic((), readers.get(_values(_PLACE, row), ()))
        lag = (here[0]["lag_min"], here[0]["lag_max"]) if here else (None, None)
        out.append({**row, "lag_min": lag[0], "lag_max": lag[1]})
    return out


_TOPIC = ("topic", "cluster_id")
_PLACE = (*_TOPIC, "partition")


def _values(names: Sequence[str], row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def _by(names: Sequence[str], rows: Iterable[Row]) -> dict[tuple[Any, ...], list[Row]]:
    """The rows by the values of some columns."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(_values(names, row), []).append(row)
    return found


ASKED = ("topics", "positions")


_WHAT = {
    TOPIC: ("topic",),
    PARTITION: ("partition and direction", "partitions and directions"),
    GROUP: ("partition of a group", "partitions of groups"),
    CLIENT: ("partition of a consumer", "partitions of consumers"),
}
"""The names of a row, in the singular and the plural."""


_WITHIN = {TOPIC: PARTITION_COLUMNS, PARTITION: CLIENT_COLUMNS}
"""The columns of the rows below a topic or partition."""


class TopicsPage(GroupedPage):
    """Topics, their partitions, the lag of groups, or that of clients. Below a topic are its partitions,
    below a partition its readers. Enter shows the exchanges of one."""

    DEFAULT_CSS = """
    TopicsPage #list { max-height: 60%; }
    TopicsPage #within { height: 1fr; border-top: hkey $panel; }
    TopicsPage.-alone #list { max-height: 100%; }
    TopicsPage.-alone #within { display: none; }
    """
    GROUPINGS = (TOPIC, PARTITION, GROUP, CLIENT)
    _step = USUAL_LAG_STEP
    """The seconds between the points of a line of lag."""

    def __init__(self) -> None:
        self.within = figures()
        """The partitions or readers of the row under the cursor."""
        self._of_topic: list[dict[tuple[Any, ...], list[Row]]] = []
        """The rows of each table of :data:`ASKED`, by topic and cluster."""
        super().__init__()

    def body(self) -> ComposeResult:
        yield from super().body()
        yield VirtualTable(self.within, id="within")

    def on_screen_resume(self) -> None:
        if self.kdissect.ended is not None:
            self._step = lag_step(self.kdissect.index.first_ns, self.kdissect.index.last_ns)

    def figures(self) -> Figures:
        return figures()

    def statistics_by(self, grouping: str) -> Asked:
        if grouping == GROUP:
            return ("lag", f"lag,{self._step}s")
        return ("positions",) if grouping == CLIENT else ASKED

    def fill(self, counted: CountedTables) -> None:
        tables = counted.tables
        self._of_topic = []
        if self.grouping == GROUP:
            lag, over_time = (tables[name] for name in self.needed_statistics())
            self.rows.show(lag_rows(lag, over_time), GROUP_COLUMNS)
        elif self.grouping == CLIENT:
            rows = with_ambiguous_clusters(tables["positions"], "topic")
            self.rows.show(self._client_rows(rows), CLIENT_COLUMNS)
        else:
            both = alike(*(tables[name] for name in ASKED))
            self._of_topic = [_by(_TOPIC, rows) for rows in both]
            if self.grouping == TOPIC:
                self.rows.show(topic_rows(*both), TOPIC_COLUMNS)
            else:
                self.rows.show(partition_rows(*both), PARTITION_COLUMNS)
        has_more = bool(len(self.rows)) and self.grouping in _WITHIN
        self.wish(self.list_pane, len(self.rows) + 1 if has_more else "1fr")  # and one line for the headings

    def cursor_moved(self) -> None:
        row, columns = self.chosen_row(), _WITHIN.get(self.grouping)
        if row is None or columns is None or self.counted is None:  # rows of the grouping before
            self.add_class("-alone")
            return
        topics, positions = (rows.get(_values(_TOPIC, row), []) for rows in self._of_topic)
        if self.grouping == TOPIC:
            self.within.show(partition_rows(topics, positions), columns)
        else:
            here = [each for each in positions if each["partition"] == row["partition"]]
            self.within.show(self._client_rows(here), columns)
        self.set_class(not len(self.within), "-alone")
        self.query_one("#within", VirtualTable).rows_changed(0)

    def _client_rows(self, positions: Iterable[Row]) -> list[Row]:
        return client_rows(positions, self.kdissect.index.last_ns)

    def notes(self) -> list[str]:
        found = super().notes()
        if self.grouping != GROUP:
            found.append("Lag: at the last Fetch; :lag has that of commits")
        return found

    def opened(self) -> Iterable[Row]:
        yield from super().opened()
        for table in self._of_topic:  # the rows below
            for rows in table.values():
                yield from rows

    @on(VirtualTable.Chosen, "#within")
    def _within_chosen(self, event: VirtualTable.Chosen) -> None:
        self.open(self.within.row(event.row))

    def listed(self) -> str:
        return "offset of a group" if self.grouping in (GROUP, CLIENT) else "topic"

    def rows_text(self) -> str:
        return plural(len(self.rows), *_WHAT[self.grouping])

    def subject_of(self, row: Row) -> Subject | None:
        name = {GROUP: "group", CLIENT: "client_id"}.get(self.grouping, "topic")
        kind = {GROUP: OF_GROUP, CLIENT: OF_CLIENT}.get(self.grouping, OF_TOPIC)
        value = row[name] if row[name] is not None or name != "client_id" else row["client"]
        return None if value is None else subject(kind, value)

    def filter_of(self, row: Row) -> str | None:
        if row["topic"] is None:
            return None
        text = f"topic == {quoted(row['topic'])}"
        if row.get("partition") is not None:
            text += f" and partition == {row['partition']}"
        for name in (GROUP, "client_id"):
            if row.get(name) is not None and (name != GROUP or self.grouping == GROUP):
                text += f" and {name} == {quoted(row[name])}"
        return text
