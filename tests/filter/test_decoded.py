"""Questions about fields inside decoded keys and values."""

from __future__ import annotations

import pytest

from kdissect.exchange import Exchange
from kdissect.filter.compiled import compile_filter
from kdissect.filter.complete import complete
from kdissect.filter.errors import FilterError
from kdissect.payload.decoder import PayloadDecoder
from kdissect.payload.schemas import RegistrySchema, Schemas
from kdissect.present.options import PLAIN, Options
from kdissect.present.records import record_rows
from kdissect.record.records import Record
from kdissect.record.write import write_batch
from tests.analysis.produced import START_MS, produce

ORDER = """{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"},
    {"name": "customer", "type": ["null", {"type": "record", "name": "C", "fields":
        [{"name": "zip_code", "type": "string"}]}]},
    {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "L", "fields":
        [{"name": "n", "type": "int"}]}}}]}"""
VALUE = (
    b'{"id": 7, "customer": {"zip_code": "0815", "vip": true}, "lines": [{"n": 1}, {"n": 5}], "cost": 2.5}'
)


def sent(*values: bytes) -> Exchange:
    return produce(
        0, write_batch([Record(at, START_MS, b'{"k": 1}', each) for at, each in enumerate(values)])
    )


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("record.value.id == 7", True),
        ("record.value.id == 8", False),
        ("record.value.id in {5..9}", True),
        ("record.value.id > 7", False),
        ('record.value.id == "7"', True),
        ("record.value.customer.zip_code == 0815", False),
        ('record.value.customer.zip_code == "0815"', True),
        ("record.value.customer.ZipCode contains 08", True),
        ("record.value.customer.vip == true", True),
        ("record.value.customer.vip == false", False),
        ("record.value.lines.n == 5", True),
        ("all record.value.lines.n > 0", True),
        ("all record.value.lines.n > 1", False),
        ("record.value.cost == 2.5", True),
        ("record.value.cost < 3", True),
        ("record.value.cost", True),
        ("record.value.nothing", False),
        ("not record.value.nothing", True),
        ("record.key.k == 1", True),
        ("record.value.customer", False),
    ],
)
def test_fields_inside_json_can_be_asked(text: str, answer: bool) -> None:
    assert compile_filter(text).matches(sent(VALUE)) is answer


def test_a_schema_tells_what_bytes_mean() -> None:
    decoder = PayloadDecoder(Schemas([RegistrySchema("AVRO", ORDER, "7")]))
    options = Options(payloads=decoder)
    exchange = sent(b"\0\0\0\0\x07\x0e\x02\x080815\x04\x02\x0a\0", b"{}")
    first, second = record_rows(exchange, options)
    asked = compile_filter("record.value.customer.zipcode matches 8.5 and record.value.lines.n == 5", options)
    assert asked.matches(exchange)
    assert asked.matches_record(exchange, first)
    assert not asked.matches_record(exchange, second)
    assert not compile_filter(asked.text, PLAIN).matches(exchange)


@pytest.mark.parametrize("text", ["record.value. == 5", "record.value.a > true", "record.valu.a == 5"])
def test_what_cannot_be_asked_is_refused(text: str) -> None:
    with pytest.raises(FilterError):
        compile_filter(text)


def test_names_of_schemas_are_offered() -> None:
    paths = Schemas([RegistrySchema("AVRO", ORDER, "7")]).paths()
    assert list(paths) == ["id", "customer", "customer.zip_code", "lines", "lines.n"]
    offered = [each.text for each in complete("record.value.cu", inside=paths)]
    assert offered == ["record.value.customer", "record.value.customer.zip_code"]
    assert "record.value." in [each.text for each in complete("record.val")]
