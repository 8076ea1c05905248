"""Batches of a stream, without Spark: what TLS needs from one to the next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import kdissect
from kdissect.capture.files import read_packets
from kdissect.capture.writer import PcapngWriter
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS
from kdissect.model import Packet
from kdissect.session.conversation import Connection
from kdissect.spark.micro_batch import events_at_end, events_of_batch, events_of_drain
from kdissect.spark.progress import Note
from kdissect.spark.questions import Judgement
from kdissect.spark.settings import TableSettings
from kdissect.spark.spool import FileSpan
from kdissect.spark.states import StateError, States
from kdissect.spark.stream_state import Carried
from tests.dissecting import dissect
from tests.lab import Case
from tests.spark.cuts import cut, packets_of, pcap
from tests.spark.same import CAPTURES, event_rows
from tests.spark.test_stream import in_time
from tests.tls.endpoints import certificate

TLS13 = Case("tls13")


def states(tmp_path: Path) -> States:
    made = States(str(tmp_path / "state"))
    made.prepare()
    return made


def capture(tmp_path: Path) -> Path:
    path = tmp_path / "capture.pcapng"
    with path.open("wb") as file:
        writer = PcapngWriter(file)
        for item in read_packets([TLS13.capture]):
            if isinstance(item, Packet):
                writer.write(item)
    return path


def test_a_key_log_that_grows_between_batches(tmp_path: Path) -> None:
    kept, path, keys = states(tmp_path), capture(tmp_path), tmp_path / "keys.log"
    lines = (TLS13.folder / "keys.log").read_bytes().splitlines(keepends=True)
    settings, size = TableSettings(keylog=(str(keys),)), path.stat().st_size
    found = []
    for batch, share in enumerate((0.3, 0.6, 0.8)):
        keys.write_bytes(b"".join(lines[: round(batch * len(lines) / 3)]))
        span = FileSpan("one", str(path), round(share * size), False, 1, False)
        found += list(events_of_batch(kept, batch, "one", [span], settings, Note(None, "")))
    keys.write_bytes(b"".join(lines))
    span = FileSpan("one", str(path), size, True, 1, False)
    found += list(events_of_batch(kept, 3, "one", [span], settings, Note(None, "")))
    found += list(events_at_end(kept, 4, "one", settings))
    assert sum(isinstance(event, Exchange) for event in found) == 55


def test_private_keys_are_in_no_state(tmp_path: Path) -> None:
    kept, path, key = states(tmp_path), capture(tmp_path), certificate("rsa")
    settings = TableSettings(rsa_key=(str(key.path),))
    span = FileSpan("one", str(path), path.stat().st_size, True, 1, False)
    list(events_of_batch(kept, 0, "one", [span], settings, Note(None, "")))
    (file,) = (tmp_path / "state").glob("*/*")
    assert key.key_pem[:200] not in file.read_bytes()
    again = kept.load("one", 1)
    assert isinstance(again, Carried)
    assert again.reading.secrets.rsa_keys == ()


def test_another_release_goes_on_where_one_was_drained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was open is there once, numbers go on, and what was read is not read again."""
    kept, path, settings = states(tmp_path), CAPTURES / "basic-kafka43.pcapng", TableSettings()
    size = path.stat().st_size
    half = FileSpan("one", str(path), round(0.6 * size), False, 1, False)
    found = list(events_of_batch(kept, 0, "one", [half], settings, Note(None, "")))
    found += list(events_of_drain(kept, 1, "one", settings, 0))
    kept.end_drain(0)
    assert list(events_of_drain(kept, 1, "one", settings, 0)) == []
    kept.end_drain(0)
    monkeypatch.setattr(kdissect, "__version__", "99.0")
    whole = half._replace(size=size, is_final=True)
    found += list(events_of_batch(kept, 1, "one", [whole], settings, Note(None, "")))
    found += list(events_at_end(kept, 2, "one", settings))
    numbers = sorted(event.number for event in found if isinstance(event, Exchange))
    assert numbers == list(range(1, len(numbers) + 1))
    connections = sorted(event.connection for event in found if isinstance(event, Connection))
    assert connections == list(range(len(connections)))
    left = kept.load("one", 2)
    assert isinstance(left, Carried)
    assert left.packets == sum(isinstance(item, Packet) for item in read_packets([path]))


def cut_in_time(path: Path, count: int) -> list[FileSpan]:
    """A file that grows."""
    size = path.stat().st_size
    shares = [round(size * (at + 1) / count) for at in range(count)]
    return [FileSpan("one", str(path), share, share == size, 1, False) for share in shares]


def test_another_build_makes_the_state_again_from_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing begins anew: numbers go on, and a response finds the request that was open."""
    kept, path, settings = states(tmp_path), CAPTURES / "basic-kafka43.pcapng", TableSettings()
    judgement = Judgement(DEFAULTS, {}, ())
    found = []
    for batch, span in enumerate(cut_in_time(path, 5)):
        monkeypatch.setattr("kdissect.spark.states.build", lambda batch=batch: f"build {batch}")
        events = events_of_batch(kept, batch, "one", [span], settings, Note(None, ""), judgement)
        found += list(events)
    found += list(events_at_end(kept, 5, "one", settings))
    expected = list(dissect(read_packets([path])))
    for name in ("exchanges", "connections"):
        assert event_rows(found, name) == event_rows(expected, name)


def test_files_that_come_late_are_read_late_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, settings = states(tmp_path), TableSettings()
    (tmp_path / "cut").mkdir()
    pieces = in_time(cut(CAPTURES / "basic-kafka43.pcapng", tmp_path / "cut", 3))
    firsts = [int.from_bytes(piece.read_bytes()[24:28], "little") for piece in pieces]
    spans = [
        FileSpan("one", str(p), p.stat().st_size, True, at, False)
        for p, at in zip(pieces, firsts, strict=True)
    ]
    orders = [[spans[2]], [spans[0], spans[1]]]
    for batch, order in enumerate(orders):
        list(events_of_batch(kept, batch, "one", order, settings, Note(None, "")))
    same = events_at_end(kept, 2, "one", settings)
    expected = event_rows(same, "exchanges")
    monkeypatch.setattr("kdissect.spark.states.build", lambda: "another")
    assert event_rows(events_at_end(kept, 2, "one", settings), "exchanges") == expected


@pytest.mark.parametrize("what", ["gone", "shorter", "forgotten"])
def test_what_cannot_be_made_again_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    kept, settings, path = states(tmp_path), TableSettings(), tmp_path / "a.pcapng"
    path.write_bytes((CAPTURES / "basic-kafka43.pcapng").read_bytes())
    (span,) = cut_in_time(path, 1)
    list(events_of_batch(kept, 0, "one", [span], settings, Note(None, "")))
    if what == "gone":
        path.unlink()
    elif what == "shorter":
        path.write_bytes(path.read_bytes()[:1000])
    else:
        list(events_of_batch(kept, 1, "one", [span._replace(is_gone=True)], settings, Note(None, "")))
    monkeypatch.setattr("kdissect.spark.states.build", lambda: "another")
    with pytest.raises(StateError, match="another build of kdissect"):
        events_of_batch(kept, 2, "one", [span], settings, Note(None, ""))


def of_another_build(folder: Path, **change: Any) -> None:
    """States that this build cannot load."""
    for path in (folder / "state").rglob("*.state"):
        line, _, data = path.read_bytes().partition(b"\n")
        head = {**json.loads(line), "build": "another", **change}
        path.write_bytes(json.dumps(head).encode() + b"\n" + data)


def in_two_batches(folder: Path, secrets: tuple[bool, bool], change: dict[str, Any] | None) -> list[str]:
    """Exchanges of TLS that a stream finds.

    :param secrets: whether each batch is given the key log.
    :param change: what another build wrote into the state between them; None: it is the same build.
    """
    folder.mkdir()
    kept, path = states(folder), capture(folder)
    keys, size = (str(TLS13.folder / "keys.log"),), path.stat().st_size
    first, second = (TableSettings(keylog=keys if each else ()) for each in secrets)
    span = FileSpan("one", str(path), round(0.6 * size), False, 1, False)
    found = list(events_of_batch(kept, 0, "one", [span], first, Note(None, "")))
    if change is not None:
        of_another_build(folder, **change)
    span = span._replace(size=size, is_final=True)
    found += list(events_of_batch(kept, 1, "one", [span], second, Note(None, "")))
    found += list(events_at_end(kept, 2, "one", second))
    return event_rows(found, "exchanges")


BEFORE_FORMAT_7 = {"format": 6, "has_secrets": None}


@pytest.mark.parametrize(
    ("secrets", "change"),
    [
        ((True, True), {}),
        ((True, False), {}),
        ((False, True), BEFORE_FORMAT_7),
        ((False, False), BEFORE_FORMAT_7),
    ],
    ids=["key log", "key log before", "key log, and none knows of before", "none knows of before"],
)
def test_a_state_that_may_have_waited_for_secrets_is_not_made_again(
    tmp_path: Path, secrets: tuple[bool, bool], change: dict[str, Any]
) -> None:
    """With the key log of today, what waited then would be decrypted at once, and be lost."""
    with pytest.raises(StateError) as raised:
        in_two_batches(tmp_path / "stream", secrets, change)
    line = str(raised.value)
    assert line.startswith(f"{tmp_path}/stream/state/0/")
    assert "waited for TLS secrets" in line
    assert line.endswith("to go on without it, give the same command once with --drain")


@pytest.mark.parametrize("secrets", [(False, True), (False, False)])
def test_a_state_that_was_given_no_secrets_is_made_again(tmp_path: Path, secrets: tuple[bool, bool]) -> None:
    expected = in_two_batches(tmp_path / "same", secrets, None)
    assert len(expected) == (55 if secrets[1] else 0)
    assert in_two_batches(tmp_path / "another", secrets, {}) == expected


def test_without_tls_a_state_of_before_format_7_is_made_again(tmp_path: Path) -> None:
    kept, settings = states(tmp_path), TableSettings()
    first, second = cut_in_time(CAPTURES / "basic-kafka43.pcapng", 2)
    found = list(events_of_batch(kept, 0, "one", [first], settings, Note(None, "")))
    of_another_build(tmp_path, **BEFORE_FORMAT_7)
    found += list(events_of_batch(kept, 1, "one", [second], settings, Note(None, "")))
    found += list(events_at_end(kept, 2, "one", settings))
    expected = list(dissect(read_packets([CAPTURES / "basic-kafka43.pcapng"])))
    assert event_rows(found, "exchanges") == event_rows(expected, "exchanges")


def test_what_is_read_of_a_file_that_grows_is_noted_once(tmp_path: Path) -> None:
    kept, settings = states(tmp_path), TableSettings()
    for batch, span in enumerate(cut_in_time(CAPTURES / "basic-kafka43.pcapng", 6)):
        list(events_of_batch(kept, batch, "one", [span], settings, Note(None, "")))
    carried = kept.load("one", 6)
    assert isinstance(carried, Carried)
    assert carried.trail == [[list(span)]]


def test_of_a_file_that_was_written_anew_no_packet_behind_the_known_ones_is_lost(tmp_path: Path) -> None:
    """It has the same first packet, another second one, and is larger than what was read of it."""
    kept, settings, path = states(tmp_path), TableSettings(), tmp_path / "a.pcap"
    packets = packets_of(CAPTURES / "basic-kafka43.pcapng")
    path.write_bytes(pcap(packets[:20]))
    span = FileSpan("one", str(path), path.stat().st_size, False, packets[0].timestamp_ns, False)
    list(events_of_batch(kept, 0, "one", [span], settings, Note(None, "")))
    path.write_bytes(pcap([packets[0], *packets[2:]]))
    span = span._replace(size=path.stat().st_size, is_final=True)
    list(events_of_batch(kept, 1, "one", [span], settings, Note(None, "")))
    carried = kept.load("one", 2)
    assert isinstance(carried, Carried)
    assert carried.packets == len(packets) - 1
