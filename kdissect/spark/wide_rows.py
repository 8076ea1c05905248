"""Rows of several tables in one DataFrame: each table has a column of structs, and each row one of them.

Spark keeps such a DataFrame, and the tables are taken out of it one after the other. So a capture is
dissected once for all of them. It costs more than files that tasks write themselves
(:mod:`kdissect.spark.sinks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from kdissect.lazy import Later
from kdissect.present.columns import Table
from kdissect.spark.tables import ddl

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
else:
    pa = Later("pyarrow")


def wide_ddl(tables: Iterable[tuple[str, Table]]) -> str:
    """The schema in Spark's words. The tables are given with the names of their columns in the DataFrame."""
    return ", ".join(f"`{name}` struct<{_struct_of(ddl(table))}>" for name, table in tables)


def table_in(wide: DataFrame, name: str) -> DataFrame:
    """One of the tables: its rows, in separate columns."""
    return wide.where(wide[name].isNotNull()).select(f"`{name}`.*")


class Widener:
    """Makes record batches of the DataFrame from record batches of its tables.

    :param schemas: the schemas of the tables, by the names of their columns in the DataFrame.
    """

    def __init__(self, schemas: Sequence[tuple[str, pa.Schema]]) -> None:
        self._kinds = [pa.struct(list(schema)) for _, schema in schemas]
        names = [name for name, _ in schemas]
        self._schema = pa.schema(list(zip(names, self._kinds, strict=True)))

    def widened(self, at: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The record batches of a table, in the form of the DataFrame.

        :param at: the index of the table, from 0.
        """
        kinds = self._kinds
        for batch in batches:
            columns = [pa.nulls(batch.num_rows, kind) for kind in kinds]
            columns[at] = pa.StructArray.from_arrays(batch.columns, fields=list(kinds[at]))
            yield pa.record_batch(columns, schema=self._schema)


def _struct_of(schema: str) -> str:
    return schema.replace("` ", "`:")
