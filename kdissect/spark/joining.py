"""Small files of a table → fewer ones, with the same rows in the same order.

Each task writes its own files. With many capture points, or many tasks, there are too many small files for
readers. So Spark's tasks join consecutive files, before anybody reads them.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kdissect.lazy import Later
from kdissect.present.arrow import parquet_writer
from kdissect.spark.job_descriptions import described
from kdissect.spark.plan import task_numbers
from kdissect.spark.sinks import TaskFile
from kdissect.spark.storage import join
from kdissect.spark.writing import create_file, read_file
from kdissect.wording import plural

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql import SparkSession
else:
    pa = Later("pyarrow")
    pq = Later("pyarrow.parquet")

ENOUGH_BYTES = 64 << 20
"""Files are joined up to this size. Reading and writing them again costs little up to there."""
_GROUP_ROWS = 131_072
_GROUP_BYTES = 64 << 20
"""The size of a row group in memory."""


def groups_of(files: Iterable[TaskFile]) -> list[list[TaskFile]]:
    """Files of one table in order, grouped by the file that they become."""
    groups: list[list[TaskFile]] = []
    size = 0
    for file in files:
        size += file.size
        if groups and size <= ENOUGH_BYTES:
            groups[-1].append(file)
        else:
            groups.append([file])
            size = file.size
    return groups


def joined(
    spark: SparkSession, files: Sequence[TaskFile], tables: Collection[str], folder: str
) -> list[TaskFile]:
    """The same rows in fewer files. The joined files stay, but are not used any more.

    :param files: the files in order.
    :param tables: the keys of the tables whose files are joined; files of other tables stay.
    :param folder: a folder that driver and workers share; each table has a folder in it.
    """
    groups = [group for key in tables for group in groups_of(file for file in files if file.table == key)]
    many = [at for at, group in enumerate(groups) if len(group) > 1]
    one = {at: group[0] for at, group in enumerate(groups)}
    if many:
        every = spark.range(0, len(many), 1, len(many))
        work = partial(_join, [groups[at] for at in many], folder)
        with described(spark, f"join small files, in {plural(len(many), 'task')}"):
            rows = every.mapInArrow(work, "number long, path string, rows long, size long").collect()
        for row in rows:
            at = many[row.number]
            one[at] = TaskFile(one[at].table, row.path, row.rows, row.size)
    return [*(file for file in files if file.table not in tables), *one.values()]


def _join(
    groups: Sequence[Sequence[TaskFile]], folder: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for number in task_numbers(batches):
        group = groups[number]
        path = join(folder, f"{group[0].table}/part-{number:05}-{uuid.uuid4().hex[:12]}.parquet")
        size = write_together([file.path for file in group], path)
        values = [[number], [path], [sum(file.rows for file in group)], [size]]
        yield pa.record_batch(values, names=["number", "path", "rows", "size"])


def write_together(paths: Sequence[str], target: str) -> int:
    """Write the rows of files of Parquet into a new one. If only some files have a column, it is null in the
    rows of the others.

    :returns: the size of the new file in bytes.
    :raises OSError: a file cannot be read or written.
    """
    schema = pa.unify_schemas([_schema_of(path) for path in paths])
    with create_file(target) as out, parquet_writer(out, schema) as writer:
        waiting: list[pa.Table] = []
        rows = size = 0
        for group in _row_groups(paths):
            table = _as(group, schema)
            waiting.append(table)
            rows += table.num_rows
            size += table.nbytes
            if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
                writer.write_table(pa.concat_tables(waiting))
                waiting.clear()
                rows = size = 0
        if waiting:
            writer.write_table(pa.concat_tables(waiting))
        writer.close()
        return out.tell()


def _schema_of(path: str) -> pa.Schema:
    with read_file(path) as file:
        return pq.read_schema(file)


def _row_groups(paths: Iterable[str]) -> Iterator[pa.Table]:
    """The row groups of files, one after the other. Only one file is open at a time, because there may be
    thousands."""
    for path in paths:
        with read_file(path) as file:
            whole = pq.ParquetFile(file)
            for at in range(whole.num_row_groups):
                yield whole.read_row_group(at)


def _as(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same rows, with null for columns of later releases."""
    columns = [
        table[field.name] if field.name in table.schema.names else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
