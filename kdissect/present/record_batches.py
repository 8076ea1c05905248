"""An exchange → its batches of records, for the decoders of payloads.

:mod:`kdissect.present.record_lines` has a shorter way for lines of NDJSON, and
:mod:`kdissect.present.gathered` for Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kdissect.exchange import Exchange
from kdissect.names import is_metadata_topic
from kdissect.present.batches import control_of
from kdissect.present.columns import Table
from kdissect.present.options import Options
from kdissect.present.plain_records import plain_columns
from kdissect.present.record_text import VARIABLE, Group
from kdissect.present.records import add_batch, batch_record_rows, record_set_sources
from kdissect.protocol.json_form import dumps
from kdissect.record.batch import Batch
from kdissect.record.records import Columns, wrap64
from kdissect.record.sets import read_record_set
from kdissect.session.briefs import Brief


class PlainBatch:
    """Records whose values can be shown unchanged, as columns."""

    __slots__ = ("assigned", "columns", "common")

    def __init__(self, columns: Columns, common: dict[str, Any], assigned: int | None) -> None:
        self.columns = columns
        self.common = common
        """The values that their rows share."""
        self.assigned = assigned
        """The broker's offset for the batch's base offset."""


def record_batches(source: Exchange | Brief, options: Options) -> Iterator[PlainBatch | list[dict[str, Any]]]:
    """The records of an exchange, batch by batch: as columns, or else as rows."""
    for data, topic, topic_id, assigned, context in record_set_sources(source):
        is_metadata = is_metadata_topic(topic, topic_id)
        is_known = topic is not None or topic_id is not None
        for batch in read_record_set(data, options.limits).batches:
            columns = plain_columns(
                batch, options.show_secrets, is_metadata if is_known else None, takes_control=True
            )
            if columns is None or (batch.is_control and columns.count != 1):
                about = topic, topic_id
                rows = batch_record_rows(batch, batch.records(), about, context, assigned, options)
                yield [row for _, row in rows]
            else:
                common = context.copy()
                add_batch(common, batch)
                if batch.is_control:  # control batches have one record, as nearly every broker writes them
                    common["control"] = control_of(columns.records()[0], batch, options)
                if assigned is None or batch.magic >= 2:
                    yield PlainBatch(columns, common, assigned)
                else:
                    for part, first in by_places(batch, columns, assigned):
                        yield PlainBatch(part, common, first)
            # The broker numbers the records of a set consecutively, whatever the producer's offsets were.
            if assigned is not None:
                assigned = None if batch.count is None else assigned + batch.count


def by_places(batch: Batch, columns: Columns, assigned: int) -> Iterator[tuple[Columns, int | None]]:
    """The records of a message of magic 0 or 1, as a single batch or as one batch each. Each batch comes with
    the broker's offset for its base offset.

    The broker numbers records by their positions. In a wrapper the offsets may differ from that: then each
    record is a batch. If a message is broken, the positions are unknown.

    :param assigned: the broker's offset for the first record.
    """
    if columns.count != batch.count:
        yield columns, None
    elif columns.is_consecutive():
        yield columns, assigned
    else:
        for index in range(columns.count):
            yield columns.only(index), wrap64(assigned + index)


def groups_of(table: Table) -> tuple[Group, ...]:
    """The columns before each of :data:`VARIABLE`, and those after the last."""
    groups: list[Group] = []
    steps: list[tuple[str, bytes, bool]] = []
    for at, column in enumerate(table.columns):
        before = f"{',' if at else '{'}{dumps(column.name)}:".encode("ascii")
        if column.name in VARIABLE:
            groups.append((tuple(steps), before))
            steps = []
        else:
            steps.append((column.name, before, column.optional))
    return (*groups, (tuple(steps), b"}\n"))
