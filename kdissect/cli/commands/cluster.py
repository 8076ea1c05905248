"""``kdissect cluster``: captures → the clusters in them at one time, and their changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import click

from kdissect.analysis.cluster import (
    ClusterBrokers,
    ClusterChanges,
    ClusterConfigs,
    ClusterPartitions,
    ClusterTopics,
    held_at,
)
from kdissect.analysis.cluster_model import ClusterModel
from kdissect.analysis.fold import Row, Statistic, View
from kdissect.cli.errors import Wrong
from kdissect.cli.exit_codes import STRICT
from kdissect.cli.filters import filter_options
from kdissect.cli.folding import TableFolding
from kdissect.cli.formats import check_writable, writer_of
from kdissect.cli.inputs import FILES, MORE_FILES, PORTS
from kdissect.cli.jobs import jobs_option
from kdissect.cli.moments import moment_of
from kdissect.cli.output import OUTPUT_FILE, QUIET, TextOutput
from kdissect.cli.reading import Reading
from kdissect.cli.tls_keys import key_options
from kdissect.limits import Limits
from kdissect.present.form import TIMES, Clock, plural
from kdissect.present.options import Options
from kdissect.present.sanitise import sanitise
from kdissect.present.statistics import STATISTICS, titled
from kdissect.present.statistics_text import table_lines
from kdissect.present.tables import FORMATS

_TABLES: dict[str, type[View[ClusterModel]]] = {
    "brokers": ClusterBrokers,
    "topics": ClusterTopics,
    "partitions": ClusterPartitions,
    "configs": ClusterConfigs,
    "changes": ClusterChanges,
}
_SHOWN = {
    "brokers": ("node_id", "host", "port", "rack", "listener", "fenced", "controller", "epoch", "software"),
    "topics": ("topic", "partitions", "replication", "internal"),
    "partitions": (
        "topic",
        "partition",
        "leader",
        "leader_epoch",
        "replicas",
        "isr",
        "elr",
        "offline",
        "preferred",
    ),
    "configs": ("resource_type", "resource", "config", "value", "source"),
    "changes": ("ns", "what", "subject", "before", "after", "by", "exchange"),
}
"""The columns of the text output."""


@click.command()
@FILES
@MORE_FILES
@click.option(
    "--at",
    metavar="TIME",
    help="Show the state at this time: +30s after the beginning, -5s before the end, a date and "
    "time, or @MS. Default: the end.",
)
@click.option(
    "-z",
    "tables",
    multiple=True,
    type=click.Choice(tuple(_TABLES)),
    help="Print only this table. May be given often.",
)
@click.option(
    "-T",
    "form",
    type=click.Choice(("text", *FORMATS)),
    default="text",
    help="Output format. Several tables need text or ndjson.",
)
@filter_options
@click.option(
    "-t", "clock", type=click.Choice(tuple(TIMES)), help="How times are shown, as with read -t. Default: r."
)
@PORTS
@key_options
@OUTPUT_FILE
@STRICT
@click.option("--exit-status", is_flag=True, help="Exit code 1 if no table has a row.")
@QUIET
@jobs_option
def command(**given: Any) -> int:
    """Show the clusters in captures: brokers, topics, leaders, replicas, settings, and what changed.

    The capture is the only source: answers to clients, messages between brokers and controllers, and the
    metadata log of KRaft. The text leaves out settings with their default values. kdissect stats
    -z cluster_partitions (and so on) prints all rows, and from when to when each was true.
    """
    return _ClusterCommand(given).run()


class _ClusterCommand:
    """One run of the command."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._given = given
        self._names: Sequence[str] = given["tables"] or tuple(_TABLES)
        self._form: str = given["form"]
        if len(self._names) > 1 and self._form not in ("text", "ndjson"):
            raise Wrong(f"-T {self._form} prints only one table: give -z {'|'.join(_TABLES)}, or -T ndjson")
        self._moment = None if given["at"] is None else moment_of(given["at"], "--at", at_the_end=True)
        check_writable(self._form, given["output"])
        self._folding = TableFolding(given, self._make)

    def _make(self, limits: Limits) -> list[Statistic]:
        return [_TABLES[name](limits) for name in self._names]

    def run(self) -> int:
        return self._folding.print(self._print)

    def _print(self, file: BinaryIO, reading: Reading) -> int:
        views = [each for each in self._folding.statistics if isinstance(each, View)]
        end_ns = views[0].basis.end_ns
        at_ns = None
        if self._moment is not None:
            first_ns = reading.first_ns
            if first_ns is None or end_ns is None:
                raise Wrong(f"--at {self._moment.text}: the capture is empty")
            at_ns = self._moment.within("--at", first_ns, max(first_ns, end_ns))
        found = [(name, held_at(view.result(), at_ns)) for name, view in zip(self._names, views, strict=True)]
        for name, view in zip(self._names, views, strict=True):
            self._folding.complain_of_left_out(name, view)
            break  # all tables leave out the same
        if self._form == "text":
            output = TextOutput(file, self._given["output"])
            clock = Clock(self._given["clock"] or "r", reading.first_ns)
            for line in _text(found, at_ns, clock, self._folding.options, output.room):
                output.line(line)
        else:
            for name, rows in found:
                table = STATISTICS[_TABLES[name].name]
                table = table if len(found) == 1 else titled(table.name, table)
                writer = writer_of(self._form, table, file, self._folding.options)
                for row in rows:
                    writer.write(row)
                writer.close()
        return sum(len(rows) for _, rows in found)


def _text(
    found: list[tuple[str, list[Row]]], at_ns: int | None, clock: Clock, options: Options, room: int | None
) -> Iterator[str]:
    ids = sorted({row["cluster_id"] for _, rows in found for row in rows if row["cluster_id"] is not None})
    if not any(rows for _, rows in found):
        yield "The capture shows nothing about a cluster" + ("" if at_ns is None else " until then") + "."
        return
    name = (
        f"Cluster {sanitise(ids[0])}" if len(ids) == 1 else plural(len(ids), "cluster") if ids else "Cluster"
    )
    yield f"{name}, {'at the end of the capture' if at_ns is None else f'at {clock.text(at_ns)}'}"
    for title, rows in found:
        if title == "configs":
            rows = [row for row in rows if row["source"] != "default"]
        if not rows:
            continue
        columns = _SHOWN[title] if len(ids) < 2 else ("cluster_id", *_SHOWN[title])
        yield ""
        yield title
        table = STATISTICS[_TABLES[title].name].select(columns)
        yield from table_lines(table, rows, options, clock, room=room)
