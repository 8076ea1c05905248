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
