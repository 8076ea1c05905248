from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from kdissect import read
from kdissect.feed import records as record_lines
from kdissect.feed.batches import Ended
from kdissect.feed.records import (
    HAS_TIME,
    IS_CONTROL,
    IS_RELATIVE,
    KEY_BYTES,
    KEY_IS_WORDS,
    LINE_BYTES,
    SPAN,
    VALUE_FRAMED,
    VALUE_IS_WORDS,
    AskRecords,
    FoundRecords,
    ListedRecords,
    RecordLine,
    RecordLines,
    read_lines,
    records_of,
)
from kdissect.feed.side_process import Process
from kdissect.filter.compiled import compile_filter
from kdissect.limits import DEFAULTS
from kdissect.present.options import Options
from kdissect.present.records import Address, addressed_rows, record_rows
from kdissect.record.records import Record
from tests.cli.run import CAPTURES
from tests.feed.feeds import decoded, index_of
from tests.kafka import Talk
from tests.present.captures import SECRET, secret_talks, write_capture
from tests.tui.producing import produced

OPTIONS = Options(embedded=True)
BASIC = CAPTURES / "basic-kafka43.pcapng"


def listed(path: Path, chosen: str | None = None, options: Options = OPTIONS) -> list[RecordLine]:
    """The lines of all records of a capture."""
    with tempfile.TemporaryFile() as file:
        lines = RecordLines(
            cast(BinaryIO, file), compile_filter(chosen, options) if chosen else None, options
        )
        for place, exchange in enumerate(read(path)):
            for _ in lines.add(place, exchange):
                pass
        file.flush()
        return read_lines(file.fileno(), 0, lines.count + 5)


def test_every_record_has_a_line_that_leads_back_to_it() -> None:
    exchanges = list(read(BASIC))
    rows = [row for exchange in exchanges for row in record_rows(exchange, OPTIONS)]
    lines = listed(BASIC)
    assert len(lines) == len(rows) > 900
    for line, row in list(zip(lines, rows, strict=True))[::17]:
        ((address, again),) = addressed_rows(exchanges[line.place], OPTIONS, line.address)
        assert address == line.address
        assert again == row
        assert line.partition == row["partition"]
        assert line.offset == (row["offset"] if row["assigned_offset"] is None else row["assigned_offset"])
        assert line.key == (row["key"] or b"")[:KEY_BYTES]
        assert line.key_size == (-1 if row["key"] is None else len(row["key"]))
        assert line.timestamp == row["timestamp"]
        assert line.headers == len(row["headers"])


def test_what_a_line_tells(tmp_path: Path) -> None:
    records = [
        Record(5, 7, None, None),
        Record(6, -1, b"", b"v" * 500, (("__value_schema_id", b"\x01" + bytes(16)),)),
    ]
    first, second = listed(write_capture(tmp_path / "c.pcapng", Talk().ask(produced(records)).close()))
    assert (first.key_size, first.value_size, first.timestamp) == (-1, -1, 7)
    assert (first.flags, second.flags) == (IS_RELATIVE | HAS_TIME, IS_RELATIVE | VALUE_FRAMED)
    assert (second.key_size, second.value_size, second.headers) == (0, 500, 1)
    assert second.value == b"v" * len(second.value)
    assert second.address == Address(0, 0, 1)


def test_internal_and_control_records_have_words() -> None:
    lines = listed(CAPTURES / "transactions-kafka39.pcapng")
    controls = [line for line in lines if line.flags & IS_CONTROL]
    assert controls
    assert all(line.flags & VALUE_IS_WORDS and b'"type":"' in line.value for line in controls)


def test_secrets_are_in_no_line(tmp_path: Path) -> None:
    path = write_capture(tmp_path / "c.pcapng", *secret_talks())
    lines = listed(path)
    assert any(line.flags & VALUE_IS_WORDS for line in lines)
    assert [line for line in lines if SECRET.encode() in line.value + line.key] == []
    shown = listed(path, options=OPTIONS._replace(show_secrets=True, embedded=False))
    assert any(SECRET.encode()[:8] in line.value for line in shown)


def test_a_filter_chooses_records_only_where_it_asks_about_them() -> None:
    rows = [row for exchange in read(BASIC) for row in record_rows(exchange)]
    some = [row for row in rows if row["key"] == b"key-3"]
    assert 0 < len(listed(BASIC, 'record.key == "key-3"')) == len(some)
    assert len(listed(BASIC, "number > 0")) == len(rows)
    assert {line.key for line in listed(BASIC, 'record.key == "key-3"')} == {b"key-3"}


def test_there_are_no_more_lines_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_lines, "MOST_RECORDS", 10)
    assert len(listed(BASIC)) == 10


def test_extreme_numbers_have_lines(tmp_path: Path) -> None:
    edge = (1 << 63) - 1
    batch = [Record(edge, edge, b"k", b"v"), Record(edge, -edge, b"k", b"v")]
    talk = Talk().ask(produced(batch, base_offset=edge, base_timestamp=0))
    lines = listed(write_capture(tmp_path / "c.pcapng", talk.close()))
    assert [line.offset for line in lines] == [edge, edge]


# -- the process ----------------------------------------------------------------------------------------


def spans(path: Path) -> tuple[list[bytes], ListedRecords]:
    """Every exchange of a capture, and what lists the records here and now."""
    feed = decoded(path)
    index = index_of(feed)
    places = range(len(index))
    packed = [SPAN.pack(at, index.value("place", at), index.value("length", at)) for at in places]
    _KEPT.append(feed)
    return packed, records_of(feed, OPTIONS)


_KEPT: list[object] = []
"""Feeds whose spools are in use."""


@contextmanager
def process(path: Path) -> Iterator[tuple[list[bytes], ListedRecords]]:
    """The process over the spool of a capture."""
    feed = decoded(path)
    index = index_of(feed)
    packed = [SPAN.pack(at, index.value("place", at), index.value("length", at)) for at in range(len(index))]
    records = ListedRecords(feed.descriptor, DEFAULTS, OPTIONS)
    try:
        yield packed, records
    finally:
        records.close()
        feed.close()


def wait(records: ListedRecords, exchanges: int, generation: int) -> list[FoundRecords | Ended]:
    """What comes until so many exchanges are done, or it fails."""
    out: list[FoundRecords | Ended] = []
    until = time.monotonic() + 30
    while time.monotonic() < until:
        out += records.poll()
        done = sum(f.exchanges for f in out if isinstance(f, FoundRecords) and f.generation == generation)
        if done >= exchanges or any(isinstance(each, Ended) for each in out):
            return out
        time.sleep(0.01)
    raise AssertionError(f"only {out}")


def test_the_process_lists_what_is_listed_at_once() -> None:
    packed, at_once = spans(BASIC)
    at_once.request(AskRecords(1, None, b"".join(packed)))
    found = at_once.poll()[-1]  # on a busy machine there is more than one
    assert isinstance(found, FoundRecords)
    with process(BASIC) as (_, records):
        records.request(AskRecords(1, None, b"".join(packed[:30])))
        records.request(AskRecords(1, None, b"".join(packed[30:])))
        told = wait(records, len(packed), 1)
        last = told[-1]
        assert isinstance(last, FoundRecords)
        assert last.records == found.records
        assert records.lines(0, last.records) == at_once.lines(0, found.records)
        assert len(records.lines(last.records - 3, 10)) == 3
        chosen = compile_filter('record.key == "key-3"', OPTIONS)
        records.request(AskRecords(2, chosen, b"".join(packed)))
        last = wait(records, len(packed), 2)[-1]
        assert isinstance(last, FoundRecords)
        assert {line.key for line in records.lines(0, last.records)} == {b"key-3"}
    at_once.close()


def test_a_new_question_does_not_wait_for_the_old_one(tmp_path: Path) -> None:
    many = [Record(n, 1, b"k", b"v") for n in range(20_000)]
    talk = Talk()
    for number in range(1, 11):
        talk.ask(produced(many, correlation_id=number))
    with process(write_capture(tmp_path / "c.pcapng", talk.close())) as (packed, records):
        records.request(AskRecords(1, None, b"".join(packed)))
        while not records.poll():
            time.sleep(0.001)
        records.request(AskRecords(2, None, packed[0]))
        told = wait(records, 1, 2)
        assert (
            sum(each.exchanges for each in told if isinstance(each, FoundRecords) and each.generation == 1)
            < 10
        )
        last = told[-1]
        assert isinstance(last, FoundRecords)
        assert last.records == len(many)
        assert {line.place for line in records.lines(0, last.records)} == {0}


def test_that_the_process_died_is_told_once() -> None:
    with process(BASIC) as (packed, records):
        assert isinstance(records.worker, Process)
        assert records.worker.pid is not None
        os.kill(records.worker.pid, signal.SIGKILL)
        records.request(AskRecords(1, None, packed[0]))
        (failed,) = wait(records, 1, 1)
        assert isinstance(failed, Ended)
        assert "killed by signal 9" in (failed.reason or "")
        assert records.poll() == []
        records.request(AskRecords(2, None, packed[0]))  # which nobody hears


def test_a_spool_that_cannot_be_read_is_told() -> None:
    with process(BASIC) as (_, records):
        records.request(AskRecords(1, None, SPAN.pack(0, 1 << 40, 10)))
        (failed,) = wait(records, 1, 1)
        assert isinstance(failed, Ended)
        assert "lists records stopped: " in (failed.reason or "")


def test_lines_have_a_size_that_divides_a_page() -> None:
    assert 4096 % LINE_BYTES == 0
    assert KEY_IS_WORDS != VALUE_IS_WORDS
