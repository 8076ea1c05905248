"""Record sets as JSON inside messages."""

from __future__ import annotations

import json

import pytest

from kdissect.embedded.internal import encode_internal
from kdissect.present.batches import BATCH_COLUMNS, batch_objects, is_plain, shown
from kdissect.present.options import Options
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


@pytest.mark.parametrize(
    ("is_control", "show_secrets", "is_metadata", "expected"),
    [
        (False, False, False, True),
        (False, False, None, False),  # what is not known may be secret
        (False, False, True, False),
        (False, True, None, True),
        (False, True, True, True),
        (True, False, False, False),
        (True, True, False, False),
    ],
)
def test_records_are_plain_only_where_they_are_known_to_be(
    is_control: bool, show_secrets: bool, is_metadata: bool | None, expected: bool
) -> None:
    (batch,) = read_record_set(write_batch([Record(0, 1, None, b"x")], control=is_control)).batches
    assert is_plain(batch, Options(show_secrets=show_secrets), is_metadata) is expected


def test_a_hidden_value_keeps_its_size() -> None:
    value = scram_record()
    (one,) = batch_objects(write_batch([Record(0, 1, None, value)]), is_metadata=True)
    (record,) = one["records"]
    assert (record["value"], record["value_size"]) == (REDACTED, len(value))


@pytest.mark.parametrize("form", ["text", "hex", "base64"])
def test_null_is_null_in_every_form(form: str) -> None:
    assert bytes_form(None, form) is None
