"""The captures that speed is measured on are what they are said to be, and every path goes through them."""

from __future__ import annotations

from pathlib import Path

import pytest

import kdissect
from benchmarks.captures import KINDS
from benchmarks.paths import PATHS
from benchmarks.speed import Figure, table
from benchmarks.traffic import REAL, lab_capture


@pytest.mark.parametrize("kind", KINDS)
def test_a_capture_is_whole(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "made.pcap"
    KINDS[kind](path, 2_000_000)
    exchanges = list(kdissect.read(path))
    assert exchanges
    if kind in REAL:
        single = list(kdissect.read(lab_capture(kind)))
        assert len(exchanges) >= 2 * len(single)
        half = len(single) // 2  # behind it, what one copy waits for comes with the next
        told = [(each.api, each.api_version, each.error, each.topics) for each in exchanges[:half]]
        assert told == [(each.api, each.api_version, each.error, each.topics) for each in single[:half]]
        assert len({each.client_endpoint for each in exchanges}) > 1
    elif kind != "modern":  # tshark 4.0 decodes what is made
        versions = {(exchange.api, exchange.api_version) for exchange in exchanges}
        assert versions <= {("Produce", 7), ("Fetch", 11), ("Metadata", 8)}
        assert not any(exchange.faults or exchange.missing for exchange in exchanges)


def test_all_paths_find_the_same(tmp_path: Path) -> None:
    path = tmp_path / "made.pcap"
    KINDS["bulk-lz4"](path, 200_000)
    exchanges = list(kdissect.read(path))
    assert PATHS["frames"](str(path)) == PATHS["whole"](str(path)) == len(exchanges)
    records = sum(1 for exchange in exchanges for message in exchange.messages for _ in message.records())
    assert PATHS["columns"](str(path)) == records > 0
    assert PATHS["packets"](str(path)) > len(exchanges)


def test_the_table_has_tsharks_time_divided_by_ours() -> None:
    text = [
        Figure("compiled", 0.5, 40_000_000),
        Figure("pure Python", 5, 50_000_000),
        Figure("tshark -Y kafka", 2, 4_000_000),
    ]
    ndjson = [
        Figure("compiled", 1, 30_000_000),
        Figure("tshark -T ek", 10, 90_000_000),
        Figure("tshark -T json", 15, 0),
    ]
    _, _, line = table({"kafkajs-on-39": {"text": text, "ndjson": ndjson}}, {"kafkajs-on-39": 0.25})
    assert line == "| KafkaJS | 4.0 | 10.0 · 15.0 | 40, 90 MB | 25% |"
