"""Rows → any of the formats. It chooses the writer, which receives the sources of rows.

    writer = table_writer("csv", table, file)
    writer.write(exchange) …
    writer.close()

``file`` takes bytes; a writer never closes it.
"""

from __future__ import annotations

from typing import BinaryIO

from kdissect.present.columns import EXCHANGES, Table
from kdissect.present.nearest import nearest
from kdissect.present.options import PLAIN, Options
from kdissect.present.tables import BINARY, FORMATS, DelimitedWriter, NdjsonWriter, Writer


def table_writer(form: str, table: Table, file: BinaryIO, options: Options = PLAIN) -> Writer:
    """A writer of one of the :data:`FORMATS`.

    :raises LookupError: there is no such format.
    :raises NotInstalledError: the format needs an extra that is not installed; the text says which.
    """
    if form == "ndjson" and table == EXCHANGES:
        from kdissect.present.exchange_text import ExchangeLines

        return ExchangeLines(file, options)
    if form == "ndjson":
        return NdjsonWriter(table, file, options)
    if form == "csv":
        return DelimitedWriter(table, file, options, ",", '"')
    if form == "tsv":
        return DelimitedWriter(table, file, options, "\t", "")
    if form in BINARY:
        from kdissect.present.arrow import ArrowWriter, ParquetWriter

        return (ParquetWriter if form == "parquet" else ArrowWriter)(table, file, options)
    raise LookupError(f"there is no format {form!r}{nearest(form, FORMATS)}")
