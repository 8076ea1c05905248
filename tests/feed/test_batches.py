from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from kdissect import read
from kdissect.feed.batches import SpoolWriter, read_exchange
from kdissect.present.body import side_object
from kdissect.present.options import Options
from kdissect.present.tree import exchange_tree
from tests.cli.run import CAPTURES
from tests.lab import TLS_CASES, Case

CASES = [*sorted(CAPTURES.glob("*.pcap*")), *(Case(name).capture for name in TLS_CASES)]


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_an_exchange_comes_back_as_it_was(path: Path) -> None:
    options = Options(records=True)
    log = path.parent / "keys.log"
    with tempfile.TemporaryFile() as file:
        spool = SpoolWriter(file)
        for exchange in read(path, key_logs=[log] if log.exists() else []):
            place, length = spool.write(exchange)
            spool.flush()
            again = read_exchange(file.fileno(), place, length)
            again.topic_names = exchange.topic_names  # the index has them
            assert list(exchange_tree(again)) == list(exchange_tree(exchange))
            assert again.is_encrypted == exchange.is_encrypted == log.exists()
            assert again.topics == exchange.topics
            assert again.faults == exchange.faults
            for side in ("request", "response"):
                assert side_object(again, side, options) == side_object(exchange, side, options)


def test_a_spool_that_ends_early_is_an_error() -> None:
    with tempfile.TemporaryFile() as file:
        spool = SpoolWriter(file)
        place, length = spool.write(next(iter(read(CASES[0]))))
        spool.flush()
        file.truncate(length - 1)
        with pytest.raises(OSError, match="ends at byte"):
            read_exchange(file.fileno(), place, length)
