"""Records written many at a time are those of the rows, one by one."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pytest

import kdissect
from kdissect.cli.formats import columns_of
from kdissect.dissect import Dissector
from kdissect.exchange import Exchange
from kdissect.present import record_columns
from kdissect.present.arrow import ArrowWriter
from kdissect.present.catalogue import TABLES
from kdissect.present.columns import EXCHANGES
from kdissect.present.options import BYTES_FORMS, Options
from kdissect.present.record_columns import ColumnsWriter, RecordBatches
from kdissect.present.record_lines import LinesWriter
from kdissect.present.records import record_rows, record_set_sources
from kdissect.present.tables import row_line
from kdissect.record.records import Record
from kdissect.record.write import write_batch, write_message_set
from kdissect.session.briefs import Brief, Interest
from tests.amount import fewer_again
from tests.damaged import packets_of
from tests.present.test_records import produced
from tests.record.build import message, wrapper

TABLE = columns_of(TABLES["records"], [], embedded=False)
CAPTURES = sorted((Path(__file__).resolve().parents[2] / "captures").glob("*.pcap*"))
AWKWARD = [
    Record(0, -1, None, None),
    Record(1, 5, b"", b""),
    Record(2, 7, b"\xff\xfe", "ü\u2028\U0001f600".encode(), (("h", b"\0\xff"), ("", None))),
    Record(3, 2**62, b'"\\\n\x7f', b"1.5, NaN"),
]
"""Null and empty, not UTF-8, to be escaped, with headers."""
SECRETS = [
    Record(0, 1, b"connector-a", b'{"properties":{"password":"hunter2"}}'),
    Record(1, 2, None, b"v", (("authorization", b"hunter2"),)),
]
"""A secret value, and a secret header."""
HARMLESS = Record(0, 1, b"connector-b", b'{"properties":{"name":"b"}}')
"""Only a closer look tells that there is no secret in it."""
MIXED = [
    each._replace(offset=at)
    for at, each in enumerate(
        (SECRETS[0], *AWKWARD, *SECRETS, HARMLESS, AWKWARD[3], SECRETS[1], *AWKWARD, HARMLESS, SECRETS[0])
    )
]
"""Secrets at both ends and in the midst of records that have none."""


def sets() -> list[bytes]:
    plain, control = write_batch(AWKWARD, 4), write_batch(AWKWARD, control=True)
    idempotent = write_batch(AWKWARD, producer_id=5, producer_epoch=1, base_sequence=2**31 - 2)
    news = [
        write_batch(SECRETS),
        write_batch(MIXED, 2, producer_id=5, producer_epoch=1, base_sequence=2**31 - 2),
        write_message_set([each._replace(headers=()) for each in MIXED], 1, 1),
        write_message_set([each._replace(headers=(), offset=0) for each in MIXED], 1, 2),
        plain,
        plain + control + plain,
        idempotent,
        plain + write_message_set(AWKWARD[:2], 1),
        b"",
    ]
    return (
        news
        + [write_message_set(old, magic, 1) + plain for old in olds() for magic in (0, 1)]
        + [broken(at) for at in range(3)]
    )


def olds() -> list[list[Record]]:
    """What wrappers hold: offsets that count up, from 0 or not, that do not, and that are all the same."""
    named = [record._replace(headers=()) for record in AWKWARD]
    return [
        [record._replace(offset=offset) for record, offset in zip(named, offsets, strict=False)]
        for offsets in ((0, 1, 2), (7, 8, 9), (7, 9, 30), (0, 0, 0))
    ]


def broken(at: int) -> bytes:
    """A wrapper in which one of three messages cannot be read."""
    inner = [bytearray(message(1, 0, offset, b"v")) for offset in range(3)]
    inner[at][-5:-1] = (99).to_bytes(4, "big")  # the length of its value
    return wrapper(1, 1, 0, b"".join(inner))


@pytest.fixture(scope="module")
def exchanges(tmp_path_factory: pytest.TempPathFactory) -> list[Exchange]:
    folder = tmp_path_factory.mktemp("sets")
    made = [produced(folder / str(at), data, base_offset=2**63 - 2) for at, data in enumerate(sets())]
    return made + [exchange for path in CAPTURES for exchange in kdissect.read(path)]


@pytest.mark.parametrize("form", BYTES_FORMS)
def test_lines(exchanges: list[Exchange], form: str) -> None:
    options = Options(bytes_form=form)
    out = BytesIO()
    writer = LinesWriter(TABLE, out, options)
    counts = [sum(writer.write(exchange)) for exchange in exchanges]
    lines = [[row_line(TABLE, row, options) for row in record_rows(each, options)] for each in exchanges]
    assert out.getvalue() == b"".join(line for each in lines for line in each)
    assert counts == [len(each) for each in lines]
    assert sum(counts) > 1_000


@pytest.mark.parametrize("bodies", [False, True])
@pytest.mark.parametrize("seed", fewer_again([None, 1, 2], 2, None))
def test_lines_of_exchanges_in_brief(bodies: bool, seed: int | None) -> None:
    """Of damaged messages too."""
    briefs = 0
    for path in CAPTURES:
        dissector = Dissector(briefs=Interest(errors=False, records=False, bodies=bodies))
        out, expected = BytesIO(), b""
        writer = LinesWriter(TABLE, out, Options())
        for events in (*dissector.feed_all(packets_of(path, seed)), dissector.close()):
            for each in events:
                if isinstance(each, Brief):
                    briefs += 1
                elif not isinstance(each, Exchange):
                    continue
                count = writer.add(each)
                whole = each.exchange() if isinstance(each, Brief) else each
                rows = [row_line(TABLE, row, Options()) for row in record_rows(whole)]
                assert count == len(rows)
                expected += b"".join(rows)
        writer.flush()
        assert out.getvalue() == expected
    assert briefs > 100


def test_columns_of_exchanges_in_brief() -> None:
    for path in CAPTURES:
        dissector = Dissector(briefs=Interest(errors=False, records=False, bodies=False))
        for events in (*dissector.feed_all(packets_of(path)), dissector.close()):
            for each in events:
                if isinstance(each, Brief):
                    told = [list(record_set_sources(source)) for source in (each, each.exchange())]
                    assert told[0] == told[1]


@pytest.mark.parametrize("form", BYTES_FORMS)
def test_records_inside_messages(exchanges: list[Exchange], form: str) -> None:
    plain = Options(records=True, bytes_form=form)
    for exchange in exchanges:
        as_text = row_line(EXCHANGES, exchange, plain._replace(as_text=True))
        assert as_text == row_line(EXCHANGES, exchange, plain)


def test_columns(exchanges: list[Exchange]) -> None:
    one_by_one, at_once = BytesIO(), BytesIO()
    rows = ArrowWriter(TABLE, one_by_one, Options())
    columns = ColumnsWriter("arrow", TABLE, at_once, Options())
    for exchange in exchanges:
        count = sum(columns.write(exchange))
        for row in record_rows(exchange):
            rows.write(row)
            count -= 1
        assert not count
    rows.close()
    columns.close()
    assert read_table(at_once).equals(read_table(one_by_one))


def test_control_batches_between_others_begin_no_new_row_group(tmp_path: Path) -> None:
    data = (write_batch(AWKWARD) + write_batch(AWKWARD, control=True)) * 50
    out = BytesIO()
    writer = ColumnsWriter("arrow", TABLE, out, Options())
    assert sum(writer.write(produced(tmp_path / "x", data))) == 100 * len(AWKWARD)
    writer.close()
    assert read_table(out).column("offset").num_chunks == 1


def test_a_value_that_is_hidden_keeps_its_size(tmp_path: Path) -> None:
    batches = RecordBatches(TABLE, Options(), no_batch)
    assert batches.add(produced(tmp_path / "x", write_batch(SECRETS, producer_id=1, base_sequence=7))) == 2
    taken = batches.take()
    assert taken is not None
    first, second = taken.to_pylist()
    assert b"hunter2" not in first["value"]
    assert (first["value_size"], first["sequence"]) == (len(SECRETS[0].value or b""), 7)
    assert [each["value"] for each in second["headers"]] == [b"<redacted>"]


def no_batch(batch: pa.RecordBatch) -> None:
    raise AssertionError("that is no full batch")


def test_rows_have_more_where_it_is_given(tmp_path: Path) -> None:
    exchange = produced(tmp_path / "x", write_batch(AWKWARD) + write_batch(SECRETS))
    batches = RecordBatches(TABLE, Options(), no_batch)
    batches.add(exchange, {"topic_id": "more"})
    taken = batches.take()
    assert taken is not None
    assert set(taken.column("topic_id").to_pylist()) == {"more"}


def test_a_batch_is_given_out_when_it_is_full(
    exchanges: list[Exchange], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_columns, "ROWS_AT_ONCE", 7)
    found: list[pa.RecordBatch] = []
    batches = RecordBatches(TABLE, Options(), found.append)
    count = sum([batches.add(exchange) for exchange in exchanges])
    assert len(found) > 50
    assert all(batch.num_rows >= 7 for batch in found)
    last = batches.take()
    found += [] if last is None else [last]
    monkeypatch.undo()
    found_at_once: list[pa.RecordBatch] = []
    whole = RecordBatches(TABLE, Options(), found_at_once.append)
    assert sum([whole.add(exchange) for exchange in exchanges]) == count
    rest = whole.take()
    assert rest is not None
    assert pa.Table.from_batches(found).equals(pa.Table.from_batches([*found_at_once, rest]))


def test_a_batch_of_very_many_bytes_is_given_out_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [Record(at, at, b"k", bytes(1_000), (("h", bytes(500)),)) for at in range(100)]
    data = write_batch(records, 4, producer_id=5, producer_epoch=1, base_sequence=2**31 - 9)
    exchange = produced(tmp_path / "x", data + write_batch(AWKWARD))
    whole = RecordBatches(TABLE, Options(), no_batch)
    count = whole.add(exchange)
    monkeypatch.setattr(record_columns, "BYTES_AT_ONCE", 4_000)
    found: list[pa.RecordBatch] = []
    batches = RecordBatches(TABLE, Options(), found.append)
    assert batches.add(exchange) == count == 104
    rest = batches.take()
    assert rest is not None
    assert {each.num_rows for each in found} == {4}
    taken = whole.take()
    assert pa.Table.from_batches([*found, rest]).equals(pa.Table.from_batches([taken]))


def read_table(file: BytesIO) -> pa.Table:
    with pa.ipc.open_stream(file.getvalue()) as stream:
        return stream.read_all()
