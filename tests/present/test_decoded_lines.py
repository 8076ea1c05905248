"""Lines of decoded records that are written many at a time."""

from __future__ import annotations

import io
import json

import pytest

from kdissect.cli.formats import columns_of
from kdissect.payload.decoder import Decoder, Rule
from kdissect.payload.schemas import Schema, Schemas
from kdissect.present.catalogue import TABLES
from kdissect.present.decoded_lines import DecodedLinesWriter
from kdissect.present.options import Options
from kdissect.present.records import record_rows
from kdissect.present.tables import row_line
from kdissect.record.records import Record
from kdissect.record.write import write_batch
from tests.analysis.produced import produce
from tests.lab import dissected_case

TABLE = columns_of(TABLES["records"], [], embedded=False, payloads=True)


@pytest.mark.parametrize("case", ["java43-basic", "java39-transactions"])
@pytest.mark.parametrize("form", ["text", "hex"])
def test_lines_are_those_of_rows(case: str, form: str) -> None:
    def options() -> Options:
        schemas = Schemas([Schema("AVRO", '"string"', "1")])
        rules = [Rule("*", "key", "hex", decode=bytes.hex)]
        return Options(bytes_form=form, payloads=Decoder(schemas, rules))

    exchanges = dissected_case(case).exchanges
    by_row = options()
    wanted = b"".join(row_line(TABLE, row, by_row) for each in exchanges for row in record_rows(each, by_row))
    out = io.BytesIO()
    writer = DecodedLinesWriter(TABLE, out, options())
    counts = [count for each in exchanges for count in writer.write(each)]
    writer.close()
    assert out.getvalue() == wanted
    assert sum(counts) == wanted.count(b"\n") > 0
    decoded = [json.loads(line) for line in wanted.splitlines()]
    assert any("valueDecoded" in row for row in decoded)
    assert any("valueDecoded" not in row for row in decoded)


def test_values_of_a_schema_are_those_of_rows() -> None:
    schema = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}'

    def options() -> Options:
        return Options(
            payloads=Decoder(Schemas([Schema("AVRO", schema, "60"), Schema("AVRO", '"int"', "300")]))
        )

    head = b"\0\0\0\0\x3c"
    values = [head + b"\x04ab", head + b"\x02c", head + b"\x08c", head, head + b"\x48" + b"0" * 36]
    values += [head[:4] + b"0" * 33 + b"x", b"\0\0\0\x01\x2c\x04", b"\0\0\0\x01\x2c\x06", b"{}"]
    records = [Record(at, 0, values[-at], each) for at, each in enumerate(values)]
    exchange = produce(0, write_batch(records))
    by_row = options()
    wanted = b"".join(row_line(TABLE, row, by_row) for row in record_rows(exchange, by_row))
    out = io.BytesIO()
    list(DecodedLinesWriter(TABLE, out, options()).write(exchange))
    assert out.getvalue() == wanted
    assert wanted.count(b'"valueDecoded":{"a":') == 3
