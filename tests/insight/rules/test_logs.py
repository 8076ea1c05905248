"""Rules on log directories."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kdissect.insight.finding import CRITICAL, NOTICE, Finding
from kdissect.insight.judge import judge_logs
from kdissect.insight.logs import Logs
from kdissect.logdir.files import read_logs
from kdissect.record.records import Record
from kdissect.record.write import write_batch
from tests.cli.run import CAPTURES, Ran, run

START_MS = 1_700_000_000_000
COMMIT = b"\x00\x00\x00\x01"
Command = Callable[..., Ran]


def batch(
    offset: int,
    count: int = 1,
    *,
    at_s: float = 0,
    size: int = 10,
    producer: int = -1,
    transactional: bool = False,
    control: bool = False,
) -> bytes:
    ms = START_MS + round(at_s * 1_000)
    key, value = (COMMIT, b"\x00\x00\x00\x00\x00\x00") if control else (b"k", b"x" * size)
    records = [Record(offset + at, ms, key, value, ()) for at in range(count)]
    return write_batch(
        records,
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        transactional=transactional,
        control=control,
    )


def write(folder: Path, partition: str, *batches: bytes) -> Path:
    (folder / partition).mkdir(parents=True)
    (folder / partition / "00000000000000000000.log").write_bytes(b"".join(batches))
    return folder


def found(*paths: Path) -> dict[str, Finding]:
    logs = Logs()
    for event in read_logs(map(str, paths)):
        logs.take(event)
    return {each.id: each for each in judge_logs(logs).findings}


def test_whole_logs_show_nothing(tmp_path: Path) -> None:
    assert not found(CAPTURES / "logs")
    assert not found(write(tmp_path, "orders-0", batch(0, 5), batch(5, 3), batch(8)))


def test_a_transaction_without_an_end(tmp_path: Path) -> None:
    opened = batch(0, 3, producer=7, transactional=True)
    young = found(write(tmp_path / "young", "orders-0", opened, batch(3, at_s=10)))["log-transaction-open"]
    assert young.severity == NOTICE
    old = found(write(tmp_path / "old", "orders-0", opened, batch(3, at_s=900)))["log-transaction-open"]
    assert (old.severity, old.measure) == (CRITICAL, 900)
    assert old.message == (
        "A transaction of producer 7 in orders-0 was not ended for 900 s: readers of committed records "
        "get nothing from offset 0 on."
    )
    assert found(write(tmp_path / "edge", "orders-0", opened, batch(3, at_s=899.999)))[
        "log-transaction-open"
    ].severity == (NOTICE)


def test_a_transaction_that_ended(tmp_path: Path) -> None:
    opened = batch(0, 3, producer=7, transactional=True)
    ended = batch(3, producer=7, transactional=True, control=True)
    assert not found(write(tmp_path, "orders-0", opened, ended, batch(4, at_s=5_000)))


def test_missing_offsets(tmp_path: Path) -> None:
    gaps = found(write(tmp_path, "orders-0", batch(0, 5), batch(9), batch(10), batch(12)))["log-offset-gaps"]
    assert gaps.message == "orders-0 lacks 5 offsets in 2 places, the first at offset 5."
    assert not found(write(tmp_path / "own", "__consumer_offsets-0", batch(0), batch(9)))


def test_a_damaged_batch(tmp_path: Path) -> None:
    good, bad = batch(0), bytearray(batch(1))
    bad[-1] ^= 1
    damaged = found(write(tmp_path, "orders-0", good, bytes(bad)))["log-damaged"]
    assert damaged.message == "1 batch of orders-0 does not match the checksum, the first at offset 1."


@pytest.mark.parametrize(("others", "is_skewed"), [(1, True), (9_000, False)])
def test_one_partition_holds_most(others: int, is_skewed: bool, tmp_path: Path) -> None:
    write(tmp_path, "orders-0", batch(0, 10_000))
    for at in (1, 2, 3):
        write(tmp_path, f"orders-{at}", batch(0, others))
    assert ("log-skew" in found(tmp_path)) == is_skewed


def test_three_partitions_are_too_few_for_skew(tmp_path: Path) -> None:
    write(tmp_path, "orders-0", batch(0, 20_000))
    for at in (1, 2):
        write(tmp_path, f"orders-{at}", batch(0))
    assert not found(tmp_path)


def test_a_large_batch(tmp_path: Path) -> None:
    large = found(write(tmp_path / "large", "orders-0", batch(0, size=1_100_000)))["log-large-batch"]
    assert large.subject.topic == "orders"
    assert not found(write(tmp_path / "small", "orders-0", batch(0, size=1_000_000)))


@pytest.fixture
def explain(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return lambda *arguments: run(capsysbinary, "explain", *arguments)


def test_the_command_takes_log_directories(explain: Command, tmp_path: Path) -> None:
    ran = explain(CAPTURES / "logs")
    assert (ran.code, ran.err) == (0, "")
    assert ran.lines[0] == "nothing found: 5 rules looked at 24 files, 4 partitions, 516 records"
    write(tmp_path, "orders-0", batch(0, 5), batch(9))
    ran = explain(tmp_path, "--fail-on", "notice")
    assert ran.code == 1
    assert ran.lines[0].startswith("NOTICE   log-offset-gaps   topic orders, partition 0")
    assert explain(tmp_path, "--fail-on", "notice", "--id", "log-damaged").code == 0


def test_what_only_captures_have_is_refused(explain: Command) -> None:
    refused = (("--exchange", 1), ("--group", "g"), ("-Y", "error"), ("--deep",), ("--not-judged",))
    for arguments in (*refused, (CAPTURES / "loss.pcapng",)):
        ran = explain(CAPTURES / "logs", *arguments)
        assert (ran.code, len(ran.err.splitlines())) == (2, 1)
