"""Whole folders of real brokers, compared letter by letter with what Kafka's own tool prints."""

from __future__ import annotations

from pathlib import Path

from kdissect.logdir.files import read_logs
from tests.logdir.dump import Dump, kafka_dump
from tests.shared import requires_shared, shared

FOLDERS = 72


def assert_equal_to_dumps(root: Path) -> None:
    dumps = sorted(root.rglob("dump.txt"))
    assert len(dumps) == FOLDERS
    for path in dumps:
        wanted = kafka_dump(path)
        got = Dump(wanted).text(read_logs([str(path.parent)]))
        assert got == wanted, path.parent


def test_equals_kafkas_dump(logdirs: Path) -> None:
    assert_equal_to_dumps(logdirs)


@requires_shared
def test_equals_kafkas_dump_of_the_shared_folders() -> None:
    assert_equal_to_dumps(shared("testdata/captures/lab/logdirs"))
