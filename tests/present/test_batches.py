"""Record sets as JSON inside messages."""

from __future__ import annotations

import json

import pytest

from kdissect.embedded.internal import encode_internal
from kdissect.present.batch_columns import BATCH_COLUMNS
from kdissect.present.batches import batch_objects, shown
from kdissect.present.options import Options
from kdissect.present.plain_records import plain_columns
from kdissect.present.record_text import bytes_form
from kdissect.present.secret_names import REDACTED
from kdissect.record.records import Record
from kdissect.record.sets import read_record_set
from kdissect.record.write import write_batch
from tests.record.build import RECORDS

SCRAM = {
    "name": "alice",
    "mechanism": 1,
    "salt": "c2FsdA==",
    "storedKey": "c3RvcmVk",
    "serverKey": "c2VydmVy",
    "iterations": 4096,
}


def scram_record() -> bytes:
    _, value = encode_internal("metadata", "UserScramCredentialRecord", 0, None, SCRAM)
    assert value is not None
    return value


def test_a_set_has_the_columns_of_its_batches_and_all_records() -> None:
    (one,) = batch_objects(write_batch(RECORDS))
    assert set(one) == {*(name for name, _, _ in BATCH_COLUMNS), "records"}
    assert [each["offset"] for each in one["records"]] == [record.offset for record in RECORDS]
    assert [each["value_size"] for each in one["records"]] == [9, 0, None, 9_000]
    assert one["records"][1]["headers"] == [{"key": "näme", "value": {"base64": "/w=="}}]
    json.dumps(one)


@pytest.mark.parametrize("is_metadata", [True, None])
def test_a_credential_is_hidden_in_the_metadata_log_and_where_the_topic_is_not_known(
    is_metadata: bool | None,
) -> None:
    value = scram_record()
    record = Record(0, 1, None, value)
    assert shown(record, Options(), is_metadata).value == REDACTED.encode()
    assert shown(record, Options(show_secrets=True), is_metadata) is record


def test_in_a_topic_of_a_user_the_same_bytes_are_shown() -> None:
    record = Record(0, 1, None, scram_record())
    assert shown(record, Options(), False) is record
    tombstone = Record(0, 1, b"k", None)
    assert shown(tombstone, Options(), True) is tombstone


SCRAM_RECORD = scram_record()


@pytest.mark.parametrize(
    ("value", "is_control", "show_secrets", "is_metadata", "expected"),
    [
        (b"x", False, False, False, True),
        (b"x", False, False, None, True),
        (b"x", False, False, True, True),
        (b"x", True, False, False, False),
        (b"x", True, True, False, False),
        (SCRAM_RECORD, False, False, False, True),
        (SCRAM_RECORD, False, False, None, False),  # what is not known may be secret
        (SCRAM_RECORD, False, False, True, False),
        (SCRAM_RECORD, False, True, True, True),
        (SCRAM_RECORD[:1], False, False, True, False),
        (b"\x81\0" + SCRAM_RECORD[1:], False, False, True, False),  # the same frame version in two bytes
        (SCRAM_RECORD[:1] + b"\x8b\0" + SCRAM_RECORD[2:], False, False, True, False),
        (b"\1\3" + SCRAM_RECORD[2:], False, False, True, True),  # of another type
        (b"", False, False, True, True),
        (None, False, False, True, True),
    ],
)
def test_records_are_plain_only_where_they_are_known_to_be(
    value: bytes | None, is_control: bool, show_secrets: bool, is_metadata: bool | None, expected: bool
) -> None:
    records = [Record(0, 1, None, b"x"), Record(1, 1, None, value)]
    (batch,) = read_record_set(write_batch(records, control=is_control)).batches
    assert (plain_columns(batch, show_secrets, is_metadata) is not None) is expected


def test_a_hidden_value_keeps_its_size() -> None:
    value = scram_record()
    (one,) = batch_objects(write_batch([Record(0, 1, None, value)]), is_metadata=True)
    (record,) = one["records"]
    assert (record["value"], record["value_size"]) == (REDACTED, len(value))


@pytest.mark.parametrize("form", ["text", "hex", "base64"])
def test_null_is_null_in_every_form(form: str) -> None:
    assert bytes_form(None, form) is None
