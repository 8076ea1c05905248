"""The captures that speed is measured on are what they are said to be, and every path goes through them."""

from __future__ import annotations

from pathlib import Path

import pytest

import kdissect
from benchmarks.captures import KINDS
from benchmarks.paths import PATHS


@pytest.mark.parametrize("kind", KINDS)
def test_a_capture_is_whole(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "made.pcap"
    KINDS[kind](path, 2_000_000)
    exchanges = list(kdissect.read(path))
    assert exchanges
    if kind not in ("clients", "modern"):  # tshark 4.0 decodes what is made
        versions = {(exchange.api, exchange.api_version) for exchange in exchanges}
        assert versions <= {("Produce", 7), ("Fetch", 11), ("Metadata", 8)}
        assert not any(exchange.faults or exchange.missing for exchange in exchanges)


def test_all_paths_find_the_same(tmp_path: Path) -> None:
    path = tmp_path / "made.pcap"
    KINDS["bulk-lz4"](path, 200_000)
    exchanges = list(kdissect.read(path))
    assert PATHS["frames"](str(path)) == len(exchanges)
    records = sum(1 for exchange in exchanges for message in exchange.messages for _ in message.records())
    assert PATHS["columns"](str(path)) == records > 0
    assert PATHS["packets"](str(path)) > len(exchanges)
