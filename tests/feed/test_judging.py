"""What the screens are told of findings is what ``explain`` says."""

from __future__ import annotations

from array import array
from pathlib import Path

import pytest

from kdissect import explain
from kdissect.capture.files import read_packets
from kdissect.capture.writer import PcapngWriter
from kdissect.feed.counting import FINDINGS, LOOKED_AT, MARKS, AskTables, Begin, CountedRows, Counting, Grown
from kdissect.feed.statistics import CountedTables, Statistics
from kdissect.insight.finding import Finding
from kdissect.model import Packet
from kdissect.settings.screens import Rules
from tests.amount import some
from tests.cli.run import CAPTURES
from tests.feed.feeds import decoded, index_of

KILLED = CAPTURES / "incidents" / "member-killed.pcapng.gz"


def judged(path: Path, rules: Rules = Rules()) -> CountedTables:  # noqa: B008
    """What the screens get."""
    feed = decoded(path)
    statistics = Statistics(index_of(feed), feed, None, rules)
    statistics.request((FINDINGS,))
    while statistics.is_busy:
        statistics.poll()
    found = statistics.result((FINDINGS,))
    assert found is not None
    statistics.close()
    feed.close()
    return found


def findings(path: Path, rules: Rules = Rules()) -> list[Finding]:  # noqa: B008
    return [row["finding"] for row in judged(path, rules).tables[FINDINGS]]


@pytest.mark.parametrize(
    "name",
    some(
        [
            "errors.pcapng",
            "loss.pcapng",
            "midstream.pcapng",
            "incidents/member-killed.pcapng.gz",
            "incidents/poison-pill.pcapng.gz",
            "incidents/plaintext-client-on-tls-port.pcapng.gz",
            "incidents/healthy.pcapng.gz",
        ],
        *(3, "loss.pcapng", "incidents/poison-pill.pcapng.gz", "incidents/healthy.pcapng.gz"),
    ),
)
def test_findings_are_those_of_explain(name: str) -> None:
    assert findings(CAPTURES / name) == explain(CAPTURES / name).findings


def test_what_the_snap_length_cut_is_not_taken_for_loss(tmp_path: Path) -> None:
    path = tmp_path / "cut.pcapng"
    with path.open("wb") as file:
        writer = PcapngWriter(file)
        for packet in read_packets([CAPTURES / "errors.pcapng"]):
            assert isinstance(packet, Packet)
            writer.write(packet._replace(data=packet.data[:150]))
    found = findings(path)
    assert found == explain(path).findings
    assert "sampled-by-snaplen" in [each.id for each in found]


def test_an_effect_stands_deeper_than_its_cause_and_has_what_was_measured() -> None:
    rows = judged(KILLED).tables[FINDINGS]
    assert [(row["finding"].id, row["deep"], row["measure"]) for row in rows] == [
        ("session-timeout", 0, "6.01 s"),
        ("rebalance-long", 1, "6.28 s"),
        ("records-read-twice", 1, "251 records"),
    ]


def test_what_was_looked_at_is_told() -> None:
    counted = judged(CAPTURES / "incidents" / "healthy.pcapng.gz")
    assert counted.tables[FINDINGS] == []
    (looked_at,) = counted.tables[LOOKED_AT]
    assert looked_at["captured"].endswith("348 exchanges, 5 connections with Kafka")
    assert looked_at["judged"].startswith("judged ")


def test_what_is_configured_holds() -> None:
    left = ["rebalance-long", "records-read-twice"]
    assert [each.id for each in findings(KILLED, Rules(ignored=("session-*",)))] == left
    rules = Rules({"rebalance-long": {"stopped_s": 3600.0}})
    assert "rebalance-long" in [each.id for each in findings(KILLED)]
    assert findings(KILLED, rules) == explain(KILLED, thresholds=rules.thresholds).findings


def all_of(machine: Counting) -> list[CountedRows]:
    """The pieces of its last result; a busy machine has it tell others before."""
    pieces: list[CountedRows] = []
    while machine.wait is not None:
        for piece in machine.step():
            pieces = [*pieces, piece] if piece.number else [piece]
    return pieces


def test_it_is_judged_on_when_more_comes() -> None:
    feed = decoded(KILLED)
    index = index_of(feed)
    machine = Counting(feed.descriptor)
    machine.take(Begin(1))
    machine.take(AskTables((FINDINGS, "srt")))
    places = array("q", index.column("place").tolist()).tobytes()
    lengths = array("I", index.column("length").tolist()).tobytes()
    half = len(index) // 2
    machine.take(Grown(places[: 8 * half], lengths[: 4 * half], (), tuple(index.names)))
    first = all_of(machine)
    assert {piece.table for piece in first} == {FINDINGS, LOOKED_AT, MARKS, "srt"}
    machine.take(
        Grown(
            places[8 * half :],
            lengths[4 * half :],
            tuple(index.connections.packed(range(index.connections.rows))),
        )
    )
    tables = {piece.table: piece.rows for piece in all_of(machine)}
    assert [row["finding"] for row in tables[FINDINGS]] == explain(KILLED).findings
    marks = tables[MARKS]
    assert [mark["ns"] for mark in marks] == sorted(mark["ns"] for mark in marks)
    assert "group fraud-check: generation 3" in [mark["text"] for mark in marks]
    feed.close()
