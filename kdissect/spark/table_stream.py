"""``spark.readStream.format("kdissect")``: a folder in which captures appear → the rows of a table.

    folder ─► which bytes are next ─► one task a capture point: its state + these bytes ─► rows, next state

A notebook may read only the first rows of a batch (``show``), or the whole batch twice. So the spans of a
batch are stored before it runs. If a task finds an older state than it needs, it does the batches in between
first.

The option ``state`` names a folder, in which each query has its own:

    QUERY/asked.json        the options of its first batch, which all batches must have
    QUERY/batches/7.json    what the batch 7 reads, and after which batches of its capture points
    QUERY/state/7/…         what it left (:mod:`kdissect.spark.states`)
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxBytes

from kdissect.model import CaptureError
from kdissect.present.columns import Table
from kdissect.spark.fault_reports import News, sending_faults
from kdissect.spark.folders import SmallFiles, small_files
from kdissect.spark.micro_batch import events_of_batch, why_lost
from kdissect.spark.progress import Note
from kdissect.spark.row_filter import Choice
from kdissect.spark.rows import batches_of
from kdissect.spark.run_request import difference, first, stored_request
from kdissect.spark.settings import TableSettings
from kdissect.spark.spool import FileSpan, of_offset, spans_between, to_offset
from kdissect.spark.states import StateError, States, state_key
from kdissect.spark.storage import is_inside, is_remote, join, refuse_no_folder
from kdissect.spark.stream import FolderReader
from kdissect.spark.user_errors import in_one_line

OPTIONS = ("state", "state_key", "drain", "max_bytes_per_batch", "settle_seconds")
"""The options that only ``readStream`` has."""


class BatchTask(InputPartition):
    """The work of a task: a capture point in a batch of a query."""

    def __init__(self, query: str, batch: int, point: str) -> None:
        super().__init__(point)
        self.query = query
        self.batch = batch
        self.point = point


class TableStream(FolderReader):
    """Follows the folder, and makes the rows of the new data.

    :param own: the given options of :data:`OPTIONS` by name, and the folder as ``path``.
    :param table: the columns to make.
    :param news: sends faults of files from its tasks to the driver.
    :raises ValueError: an option is missing or wrong, or the table cannot be made batch by batch.
    :raises CaptureError: there is no such folder.
    :raises StateError: there is no key for the state.
    """

    def __init__(
        self, own: Mapping[str, str], settings: TableSettings, table: Table, news: News | None = None
    ) -> None:
        _refuse_whole(settings)
        folder, state = own["path"], own.get("state")
        if state is None:
            raise ValueError(
                "state: is missing; name a folder that all machines share, in which kdissect keeps what the"
                " next batch needs"
            )
        try:
            refuse_no_folder(folder, folder, "the captures")
        except OSError as error:
            raise CaptureError(str(error)) from None
        if is_inside(state, folder):
            raise ValueError(f"state: {state} is in {folder}, whose files are read; take another folder")
        super().__init__(_of_folder(folder, own, settings))
        self._state = state
        self._key = state_key(own.get("state_key")) if "state_key" in own or is_remote(state) else None
        self._ends_others = _is_true("drain", own.get("drain"))
        self._settings = settings
        self._table = table
        self._news = news
        self._same: set[str] = set()
        """The queries that are known to have the same options as before."""
        Choice(settings)  # errors are reported before any task starts
        settings.refuse_unusable()

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return {"query": uuid.uuid4().hex, "batch": 0, "lasts": {}, **to_offset({})}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """How far the next batch reads; ``start`` itself if there is nothing to read.

        :raises CaptureError: the folder cannot be listed.
        :raises ValueError: a file belongs to no capture point, or the query had other options before.
        """
        most = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        before = of_offset(start)
        with in_one_line():
            if start["batch"]:  # otherwise the query that goes on is not known yet
                self._refuse_change(start["query"])
            after = self._spool.next(before, most, self._end)
        if after is before:
            return start
        batch = start["batch"] + 1
        lasts = dict(start["lasts"])
        for span in spans_between(before, after, self._spool.rule):
            lasts[span.point] = batch
        return {"query": start["query"], "batch": batch, "lasts": lasts, **to_offset(after)}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        with in_one_line():
            super().prepareForTriggerAvailableNow()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """A task for each capture point with something new. Their spans are stored beside the state.

        :raises ValueError: the query had other options before, or the spans cannot be stored.
        """
        spans = spans_between(of_offset(start), of_offset(end), self._spool.rule)
        points = list(dict.fromkeys(span.point for span in spans))
        # If the first batch runs again, Spark has made a new start offset: only the end has the name of the
        # query.
        query, batch = end["query"], end["batch"]
        with in_one_line():
            self._refuse_change(query)
            befores = {point: start["lasts"].get(point, 0) for point in points}
            plan = {"befores": befores, "spans": spans}
            self._files(query).write(_plan_name(batch), json.dumps(plan).encode())
        return [BatchTask(query, batch, point) for point in points]

    def commit(self, end: dict[str, Any]) -> None:
        """Remove states and notes that no later batch needs."""
        with in_one_line():
            states, files = self._states(end["query"]), self._files(end["query"])
            states.forget()
            for name in files.names():
                batch = _batch_of(name)
                if batch is None or batch > end["batch"]:
                    continue
                points = json.loads(files.read(name))["befores"]
                if all(states.last_of(point, end["batch"] + 1) >= batch for point in points):
                    files.remove(name)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a task, as record batches of Arrow.

        :raises ValueError: the state of the batch before cannot be used.
        """
        assert isinstance(partition, BatchTask)
        with in_one_line():
            yield from self._rows(partition)

    def _rows(self, task: BatchTask) -> Iterator[Any]:
        settings, states = self._settings, self._states(task.query)
        *missed, (_, spans) = self._planned(states, task)
        for batch, before in missed:
            _refuse_gone(before, batch)
            for _ in events_of_batch(states, batch, task.point, before, settings, Note(None, "")):
                pass
        note = Note(settings.progress, f"{settings.table}-{task.batch}-{task.point}")
        events = events_of_batch(states, task.batch, task.point, spans, settings, note)
        heard = sending_faults(self._news, events, [span.path for span in spans])
        yield from batches_of(heard, self._table, task.point, settings, Choice(settings), note)

    def _planned(self, states: States, task: BatchTask) -> list[tuple[int, list[FileSpan]]]:
        """The spans of all unfinished batches up to this one, by batch.

        :raises StateError: they are not known any more.
        """
        files, last = self._files(task.query), states.last_of(task.point, task.batch)
        found, batch = [], task.batch
        while batch > last:
            try:
                plan = json.loads(files.read(_plan_name(batch)))
            except FileNotFoundError:
                where = join(join(self._state, task.query), _plan_name(batch))
                raise StateError(
                    f"{where}: is not there; begin a query with another checkpointLocation"
                ) from None
            spans = [FileSpan(*values) for values in plan["spans"]]
            found.append((batch, [span for span in spans if span.point == task.point]))
            batch = plan["befores"][task.point]
        return found[::-1]

    def _refuse_change(self, query: str) -> None:
        """Check that a query has the same options as at first. Otherwise rows would be repeated or missing.

        :raises ValueError: it has other options.
        """
        if query in self._same:
            return
        self._states(query)
        now = stored_request((), (), self._settings)
        change = difference(first(join(self._state, query), now), now, of_commands=False)
        if change is not None:
            raise ValueError(
                f"{change}, as in the batches before, or begin a query with another checkpointLocation"
            )
        self._same.add(query)

    def _states(self, query: str) -> States:
        """The states of a query.

        :raises StateError: the folder belongs to another user, or cannot be made.
        """
        states = States(
            join(join(self._state, query), "state"),
            self._key,
            ends_others=self._ends_others,
            how_to_end='start the query once with .option("drain", "true")',
        )
        states.prepare()
        return states

    def _files(self, query: str) -> SmallFiles:
        return small_files(join(self._state, query))


def _is_true(name: str, value: str | None) -> bool:
    """The value of an option.

    :raises ValueError: it is neither ``true`` nor ``false``.
    """
    if value is not None and value.lower() not in ("true", "false"):
        raise ValueError(f"{name}: true or false, not {value!r}")
    return value is not None and value.lower() == "true"


def _of_folder(folder: str, own: Mapping[str, str], settings: TableSettings) -> dict[str, str]:
    """The options for following the folder.

    :raises ValueError: one is wrong.
    """
    found = {"path": folder, **settings.options()}
    most, settle = own.get("max_bytes_per_batch"), own.get("settle_seconds")
    if most is not None:
        if not re.fullmatch("[0-9]+", most) or int(most) < 1:
            raise ValueError(f"max_bytes_per_batch: a whole number above 0, not {most!r}")
        found["most_bytes"] = most
    if settle is not None:
        if not re.fullmatch(r"[0-9]+(\.[0-9]*)?|\.[0-9]+", settle):
            raise ValueError(f"settle_seconds: a number of seconds, not {settle!r}")
        found["settle_seconds"] = settle
    return found


def _refuse_whole(settings: TableSettings) -> None:
    """Refuse options that need all batches together.

    :raises ValueError: there is such an option.
    """
    if settings.stats is not None:
        raise ValueError("stats: a stream has tables only; for findings use kdissect spark stream --findings")
    if settings.table == "packets":
        raise ValueError("table: a stream has no packets")
    if settings.two_pass:
        raise ValueError("two_pass: a stream is read once")
    for name, given in (("keylog", settings.keylog), ("rsa_key", settings.rsa_key)):
        if given:
            # A second reading of a batch could find other secrets, and so give other rows.
            raise ValueError(
                f"{name}: readStream takes none; use kdissect spark stream, or captures that have the secrets"
                " in them"
            )
    if settings.table == "connections" and settings.filter is not None:
        raise ValueError("filter: chooses connections by exchanges, which may be in earlier batches")


def _refuse_gone(spans: Sequence[FileSpan], batch: int) -> None:
    """Check that the files of an earlier batch can still be read.

    :raises StateError: a file is gone, or cannot be read, so that the batch cannot be done.
    """
    for span in spans:
        if not span.is_gone and (why := why_lost(span)) is not None:
            raise StateError(
                f"{span.path} {why}, but nobody has taken all rows of batch {batch}, which read it;"
                " restore it, or begin a query with another checkpointLocation"
            )


def _plan_name(batch: int) -> str:
    return f"batches/{batch}.json"


def _batch_of(name: str) -> int | None:
    """The batch in the name of a plan."""
    number = name.removeprefix("batches/").removesuffix(".json")
    return int(number) if number.isdigit() and name == _plan_name(int(number)) else None
