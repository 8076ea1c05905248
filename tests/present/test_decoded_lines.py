"""Lines of decoded records that are written many at a time."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdissect.cli.formats import columns_of
from kdissect.payload.decoder import DecodingRule, PayloadDecoder
from kdissect.payload.schemas import RegistrySchema, Schemas
from kdissect.present.catalogue import TABLES
from kdissect.present.decoded_lines import DecodedLinesWriter
from kdissect.present.options import Options
from kdissect.present.records import record_rows
from kdissect.present.tables import row_line
from kdissect.record.records import Record
from kdissect.record.write import write_batch
from tests.amount import times
from tests.analysis.produced import produce
from tests.lab import dissected_case

TABLE = columns_of(TABLES["records"], [], embedded=False, payloads=True)


@pytest.mark.parametrize("case", ["java43-basic", "java39-transactions"])
@pytest.mark.parametrize("form", ["text", "hex"])
def test_lines_are_those_of_rows(case: str, form: str) -> None:
    def options() -> Options:
        schemas = Schemas([RegistrySchema("AVRO", '"string"', "1")])
        rules = [DecodingRule("*", "key", "hex", decode=bytes.hex)]
        return Options(bytes_form=form, payloads=PayloadDecoder(schemas, rules))

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
            payloads=PayloadDecoder(
                Schemas([RegistrySchema("AVRO", schema, "60"), RegistrySchema("AVRO", '"int"', "300")])
            )
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


MAP = {"type": "record", "name": "M", "fields": [{"name": "m", "type": {"type": "map", "values": "int"}}]}
DATA = (
    st.binary(max_size=8)
    | st.text('ab1 -:{"[<é\n', max_size=40).map(str.encode)
    | st.sampled_from(
        [b"12345678-1234-4234-9234-123456789abc", b"a" * 36, b'"a"', b"5", b"true", b"a" * 5_000]
    )
    | st.builds(
        lambda id, rest: b"\0\0\0\0" + bytes((id,)) + rest,
        st.integers(0, 3),
        st.binary(max_size=6) | st.sampled_from([b"\x02\x02a\x02\0", b"\x04\x02a\x02\x02a\x04\0", b"\0"]),
    )
)
NAMES = (
    "trace",
    "ce_specversion",
    "__value_schema_id",
    "__key_schema_id",
    "content-type",
    "apicurio.value.globalId",
)
HEADERS = st.lists(
    st.tuples(
        st.sampled_from(NAMES), st.none() | st.sampled_from([b"1.0", b"\0\0\0\0\x01", b"avro/binary+x"])
    ),
    max_size=2,
)


@settings(max_examples=times(100, 5_000), deadline=None)
@given(
    st.lists(st.tuples(st.none() | DATA, st.none() | DATA, HEADERS), min_size=1, max_size=5), st.booleans()
)
def test_lines_are_those_of_rows_whatever_records_hold(
    made: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]], has_subject: bool
) -> None:
    subjects = [RegistrySchema("AVRO", '"string"', None, "t-value")] if has_subject else []
    rules = [DecodingRule("t", "key", "hex", decode=bytes.hex)] if has_subject else []

    def options() -> Options:
        known = Schemas(
            [
                RegistrySchema("AVRO", json.dumps(MAP), "1"),
                RegistrySchema("JSON", '{"type": "object"}', "2"),
                *subjects,
            ]
        )
        return Options(payloads=PayloadDecoder(known, rules))

    records = [Record(at, 0, key, value, tuple(headers)) for at, (key, value, headers) in enumerate(made)]
    exchange = produce(0, write_batch(records))
    by_row = options()
    wanted = b"".join(row_line(TABLE, row, by_row) for row in record_rows(exchange, by_row))
    out = io.BytesIO()
    list(DecodedLinesWriter(TABLE, out, options()).write(exchange))
    assert out.getvalue() == wanted
