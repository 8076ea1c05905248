"""How a state ends, in a form that any later release reads."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path

import pytest

from kdissect.dissect import Event
from kdissect.limits import DEFAULTS
from kdissect.spark.ending import ending_of, read
from kdissect.spark.micro_batch import events_of_spans
from kdissect.spark.progress import Note
from kdissect.spark.replay import new_pass
from kdissect.spark.settings import TableSettings
from kdissect.spark.spool import FileSpan
from kdissect.spark.stream_state import Carried
from tests.lab import DATA
from tests.spark.cuts import packets_of
from tests.spark.same import CAPTURES, event_rows

FORM_1 = DATA / "spark" / "ending-1.json.gz"
"""The first form: the ending of the first 63,920 bytes of ``loss.pcapng``."""
BYTES = 63_920


def read_in_part(path: Path, size: int) -> Carried:
    carried, settings = Carried(new_pass(TableSettings())), TableSettings()
    span = FileSpan("", str(path), size, False, packets_of(path)[0].timestamp_ns, False)
    for _ in events_of_spans(carried, [span], settings, Note(None, "")):
        pass
    return carried


def rows(events: list[Event]) -> list[list[str]]:
    return [event_rows(events, table) for table in ("exchanges", "connections", "faults", "records")]


@pytest.mark.parametrize("share", [0.4, 0.57, 0.9])
@pytest.mark.parametrize(
    "name", ["loss.pcapng", "sasl-scram.pcapng", "transactions-kafka39.pcapng", "midstream.pcapng"]
)
def test_it_has_the_rows_that_the_release_itself_would_write(name: str, share: float) -> None:
    path = CAPTURES / name
    carried = read_in_part(path, round(share * path.stat().st_size))
    found = read(ending_of(carried, pickle.dumps(carried)), DEFAULTS)
    expected = list(carried.reading.end())
    assert rows(found.events) == rows(expected)
    assert found.connections > 0
    assert found.drained == carried.drained()


def test_the_state_goes_on_as_before() -> None:
    path = CAPTURES / "basic-kafka43.pcapng"
    one, other = read_in_part(path, 40_000), read_in_part(path, 40_000)
    ending_of(one, pickle.dumps(one))
    assert rows(list(one.reading.end())) == rows(list(other.reading.end()))


def test_the_first_form_is_read() -> None:
    found = read(gzip.decompress(FORM_1.read_bytes()), DEFAULTS)
    carried = read_in_part(CAPTURES / "loss.pcapng", BYTES)
    assert rows(found.events) == rows(list(carried.reading.end()))
    assert found.drained.exchanges == 58
    assert list(found.drained.items.values()) == [248]


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"drained": {"names": []}, "events": []}'])
def test_a_damaged_one_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read(data, DEFAULTS)


def test_an_unknown_field_is_refused() -> None:
    value = json.loads(gzip.decompress(FORM_1.read_bytes()))
    value["events"][-1]["connection"]["more"] = 1
    with pytest.raises(ValueError, match="more"):
        read(json.dumps(value).encode(), DEFAULTS)
