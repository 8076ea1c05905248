"""States that older releases left, as they really wrote them, and how this release goes on.

Each was left after the first 63,920 bytes of ``loss.pcapng``: two requests wait for their responses, bytes
wait behind gaps on three connections, and a response is there in part.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import pickle
import pickletools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kdissect.dissect import Event
from kdissect.model import Fault
from kdissect.present.arrow import RowBatches
from kdissect.present.options import PLAIN
from kdissect.present.sources import sources_of
from kdissect.spark.micro_batch import events_at_end, events_of_batch, events_of_drain
from kdissect.spark.old_states import OldStateError, old_ending
from kdissect.spark.progress import Note
from kdissect.spark.settings import TableSettings
from kdissect.spark.spool import FileSpan
from kdissect.spark.states import StateError, States
from kdissect.spark.tables import full_table
from tests.lab import DATA
from tests.spark.cuts import packets_of
from tests.spark.same import CAPTURES, in_order, read_rows

FORMAT_4 = ["174a0558", "174a0558-compiled"]
"""The commit that could not drain, with and without compiled modules."""
FORMAT_7 = "1f7a0a59"
BYTES, PACKETS, EXCHANGES = 63_920, 248, 54
OF_RESPONSES = {
    *("response_packet", "response_start_ns", "response_time_ns", "latency_ns", "behind_ns", "error"),
    *("behind_correlation_id", "network_ns", "throttle_ns", "served_ns", "wait_ns", "broker_ns"),
    *("response_transfer_ns", "response_size", "missing", "faults", "response", "request_transfer_ns"),
}
"""Columns that a request without its response lacks."""
GAPS = (2, 3, 14)
"""The connections with gaps."""
SIZES = ("bytes_to_broker", "bytes_from_broker")
OF_GAPS = {*SIZES, "gaps", "gap_bytes", "exchanges"}
"""Columns that bytes behind gaps count in."""
WAITING = {2: 26, 3: 150, 13: 74, 14: 255}
"""By connection, the bytes that waited for others."""


@pytest.fixture
def capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The capture, in the working directory: the states have its path without a folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "loss.pcapng"
    path.write_bytes((CAPTURES / path.name).read_bytes())
    return path


def kept(tmp_path: Path, name: str, *, ends_others: bool = True) -> States:
    states = States(str(tmp_path / "state"), ends_others=ends_others)
    states.prepare()
    path = tmp_path / "state" / "0" / f"{hashlib.sha256().hexdigest()[:24]}.state"
    path.parent.mkdir()
    path.touch(mode=0o600)
    path.write_bytes(data_of(name))
    return states


def data_of(name: str) -> bytes:
    return gzip.decompress((DATA / "spark" / f"{name}.state.gz").read_bytes())


def whole(path: Path) -> FileSpan:
    return FileSpan("", path.name, path.stat().st_size, True, packets_of(path)[0].timestamp_ns, False)


def drained_now(path: Path) -> tuple[list[Event], States]:
    """The events of the part that older releases had read, and those of its end, by this release; and its
    states."""
    states, settings = States(str(path.parent / "now")), TableSettings()
    states.prepare()
    span = whole(path)._replace(size=BYTES, is_final=False)
    found = list(events_of_batch(states, 0, "", [span], settings, Note(None, "")))
    found += events_of_drain(states, 1, "", settings, 0)
    states.end_drain(0)
    return found, states


def rest(path: Path, states: States) -> list[Event]:
    """The events of the next batch, and of what it leaves open."""
    settings = TableSettings()
    found = list(events_of_batch(states, 1, "", [whole(path)], settings, Note(None, "")))
    return [*found, *events_at_end(states, 2, "", settings)]


def rows(events: Sequence[Event], table: str) -> dict[int, dict[str, Any]]:
    """Rows by their number."""
    made = RowBatches(full_table(table, False, False), PLAIN)
    batches = [made.add(each) for event in events for each in sources_of(table, event, PLAIN)]
    found = [row for batch in [*batches, made.take()] if batch is not None for row in batch.to_pylist()]
    return {row["number" if table == "exchanges" else "connection"]: row for row in found}


@pytest.mark.parametrize("name", FORMAT_4)
def test_what_a_release_without_drain_left_open_has_rows(capture: Path, name: str) -> None:
    states = kept(capture.parent, name)
    found = list(events_of_drain(states, 1, "", TableSettings(), 0))
    one_run, _ = drained_now(capture)

    ours, theirs = rows(found, "exchanges"), rows(one_run, "exchanges")
    assert list(ours) == [13, 54]
    assert [ours[each]["missing"] for each in ours] == ["connection closed", "capture ended"]
    for number, row in ours.items():
        of_request = {name: row[name] for name in row if name not in OF_RESPONSES}
        assert of_request == {name: theirs[number][name] for name in of_request}

    ours, theirs = rows(found, "connections"), rows(one_run, "connections")
    assert list(ours) == list(range(15))
    for number, row in ours.items():
        same = {name: row[name] for name in row if number not in GAPS or name not in OF_GAPS}
        assert same == {name: theirs[number][name] for name in same}

    (upgrade,) = (each for each in found if isinstance(each, Fault) and each.kind == "upgraded")
    assert "another build of kdissect 0.1.0" in upgrade.message
    assert "2 requests and 15 connections" in upgrade.message
    told = {each.connection: each.message for each in found if isinstance(each, Fault)}
    del told[None]
    words = "kdissect was upgraded here, and left out {} bytes that waited for others"
    assert told == {number: words.format(size) for number, size in WAITING.items()}
    for number in GAPS:
        read = [sum(each[number][name] for name in SIZES) for each in (ours, theirs)]
        assert read[0] + WAITING[number] == read[1]


@pytest.mark.parametrize("name", FORMAT_4)
def test_the_next_batch_goes_on_as_after_a_drain(capture: Path, name: str) -> None:
    events = rest(capture, kept(capture.parent, name))
    _, now = drained_now(capture)
    expected = rest(capture, now)
    ours = rows(events, "exchanges")
    assert list(ours)[:2] == [13, 54]
    assert sorted(ours)[2:] == list(range(EXCHANGES + 1, EXCHANGES + len(ours) - 1))
    ended = {json.dumps(ours.pop(each), default=str) for each in (13, 54)}
    assert len(ended) == 2
    found = [{**row, "number": 0} for row in ours.values()]
    assert found == [{**row, "number": 0} for row in rows(expected, "exchanges").values()]
    assert len(found) > 10
    connections = {number: row for number, row in rows(events, "connections").items() if number >= 15}
    assert connections == rows(expected, "connections")


@pytest.mark.parametrize("name", FORMAT_4)
def test_without_drain_it_is_refused(capture: Path, name: str) -> None:
    states = kept(capture.parent, name, ends_others=False)
    assert (states.points(), states.of_others(1)) == ([""], [""])
    with pytest.raises(StateError, match="give the same command once with --drain"):
        list(events_of_batch(states, 1, "", [whole(capture)], TableSettings(), Note(None, "")))


def test_no_code_of_it_runs(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickle, "loads", None)
    data = data_of(FORMAT_4[0]).partition(b"\n")[2]
    assert old_ending(data)
    for bad in (os.system, print, json.loads):
        with pytest.raises(OldStateError, match="it names"):
            old_ending(pickle.dumps(bad))


@pytest.mark.parametrize("cut", [0, 1, 1_000, 20_000])
def test_a_damaged_one_is_refused(cut: int) -> None:
    data = data_of(FORMAT_4[0]).partition(b"\n")[2]
    with pytest.raises(OldStateError):
        old_ending(data[:cut])
    with pytest.raises(OldStateError):
        old_ending(pickletools.optimize(pickle.dumps({"dissector": 1})))


def test_a_state_of_format_7_is_made_again(capture: Path) -> None:
    found = rest(capture, kept(capture.parent, FORMAT_7, ends_others=False))
    before, _ = drained_now(capture)
    written = [row for number, row in rows(before[:52], "exchanges").items() if number not in (13, 54)]
    assert in_order([*written, *rows(found, "exchanges").values()]) == read_rows("exchanges", [capture])
    assert in_order(rows(found, "connections").values()) == read_rows("connections", [capture])


def test_without_its_files_a_state_of_format_7_needs_its_own_release(capture: Path) -> None:
    states, span = kept(capture.parent, FORMAT_7), whole(capture)
    capture.unlink()
    told = r"loss\.pcapng is missing: run the build that wrote it once with --drain"
    with pytest.raises(StateError, match=told):
        list(events_of_batch(states, 1, "", [span], TableSettings(), Note(None, "")))
