"""The offsets that the table ``records`` says the broker gave are those that clients and the log have."""

from __future__ import annotations

import tarfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from kdissect.logdir.events import SegmentBatch
from kdissect.logdir.files import read_logs
from kdissect.present.records import record_rows
from tests.acceptance.test_payloads import PAYLOAD_CASES, hexed
from tests.lab import DATA, Case, dissected_case

FORMS = {("broker-0.9", 0), ("java09-on-39", 0), ("zk39-ibp28", 0), ("zk39-ibp28", 1)}
"""Cases with compressed messages of a magic that leaves the inner offsets to the broker."""


def produced(name: str) -> list[dict[str, Any]]:
    """The rows of records whose offset is told."""
    return [
        row
        for exchange in dissected_case(name).exchanges
        if exchange.api == "Produce"
        for row in record_rows(exchange)
        if row["assigned_offset"] is not None
    ]


@pytest.mark.parametrize("name", PAYLOAD_CASES)
def test_an_assigned_offset_is_the_one_under_which_clients_know_the_record(name: str) -> None:
    known: defaultdict[tuple[Any, ...], set[int]] = defaultdict(set)
    for row in Case(name).payloads():
        known[row["topic"], row["partition"], row["key"], row["value"]].add(row["offset"] or 0)
    checked = set()
    for row in produced(name):
        offsets = known[row["topic"], row["partition"], hexed(row["key"]), hexed(row["value"])]
        # A client that was not told one says -1, and of an aborted transaction it says nothing.
        if offsets and -1 not in offsets and not row["transactional"]:
            assert row["assigned_offset"] in offsets, row
            checked.add((row["magic"], row["codec"] != "none"))
    for case, magic in FORMS:
        if case == name:
            assert {(magic, False), (magic, True)} <= checked


def test_the_log_of_an_old_broker_has_the_records_at_their_assigned_offsets(tmp_path: Path) -> None:
    with tarfile.open(DATA / "logdirs.tar.xz") as archive:
        members = [each for each in archive if each.name.startswith("logdirs/broker-0.9/")]
        archive.extractall(tmp_path, members, filter="data")
    log = {
        (event.file.topic, event.file.partition, record.offset): (record.key, record.value)
        for event in read_logs([str(tmp_path)])
        if isinstance(event, SegmentBatch)
        for record in event.records()
    }
    rows = produced("broker-0.9")
    assert len(rows) == 340
    for row in rows:
        at = row["topic"], row["partition"], row["assigned_offset"]
        assert log[at] == (row["key"], row["value"])
