"""Events that one task keeps and others make rows of: the rows are those of one task, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS
from kdissect.model import Packet
from kdissect.names import TopicNames
from kdissect.spark.event_files import FOLDER, Keeper, KeptError, KeptFile, kept_names, kept_pieces
from kdissect.spark.job import TaskOutcome, rows_of
from kdissect.spark.progress import Note
from kdissect.spark.replay import all_events
from kdissect.spark.settings import TableSettings
from tests.amount import patient, some, times
from tests.lab import CLEAR_CASES, LAB, TLS_CASES, Case
from tests.parts.compositions import composed
from tests.spark.cuts import cut, packets_of, pcap
from tests.spark.passes import begun, do, job_of, pass_over, rest_of
from tests.spark.same import CAPTURES, TABLES

EVERY = (*TABLES, "packets")
LOSS = CAPTURES / "loss.pcapng"
BASIC = CAPTURES / "basic-kafka43.pcapng"


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file has several pieces, and a small capture several files."""
    for name, most in (("PIECE_BYTES", 3_000), ("PIECE_EVENTS", 7), ("PIECE_PACKETS", 31)):
        monkeypatch.setattr(f"kdissect.spark.event_files.{name}", most)


def table_of(folder: Path, name: str) -> pa.Table:
    """All rows of a table, in the order of the tasks that wrote them."""
    return pa.concat_tables([pq.read_table(file) for file in sorted((folder / name).iterdir())])


def check(
    paths: Sequence[Path], folder: Path, tasks: int, settings: TableSettings | None = None
) -> list[TaskOutcome]:
    """Hold several tasks against one."""
    alone = pass_over(paths, folder / "alone", EVERY, settings=settings, tallies=True)
    several = pass_over(paths, folder / "several", EVERY, tasks, settings=settings, tallies=True)
    for name in EVERY:
        assert table_of(folder / "several", name).equals(table_of(folder / "alone", name)), name
    assert sum(each.read for each in several) == alone[0].read
    assert [fault for each in several for fault in each.damage] == alone[0].damage
    assert any(each.tally.faults for each in several) is bool(alone[0].tally.faults)
    return several


EACH = [(path, (2, 5)[at % 2]) for at, path in enumerate(sorted(CAPTURES.glob("*.pcap*")))]
"""Every capture, half of them in 2 tasks and half of them in 5."""


@pytest.mark.parametrize(
    ("path", "tasks"),
    some([(path, tasks) for path, _ in EACH for tasks in (2, 5)], len(EACH), *EACH),
    ids=lambda each: getattr(each, "stem", str(each)),
)
def test_rows_are_those_of_one_task(tmp_path: Path, path: Path, tasks: int) -> None:
    outcomes = check([path], tmp_path, tasks)
    assert len(outcomes) > 1


@pytest.mark.parametrize("name", some([*CLEAR_CASES, *TLS_CASES], 5, *TLS_CASES[:1], "java43-basic-loss"))
def test_so_they_are_of_real_clients_with_and_without_tls(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.pcap"
    packets = [each for each in Case(name).packets() if isinstance(each, Packet)][: times(1_500, 50_000)]
    path.write_bytes(pcap(packets))
    key_logs = tuple(str(each) for each in sorted((LAB / name).glob("keys*.log")))
    check([path], tmp_path, 3, TableSettings(keylog=key_logs))


@pytest.mark.parametrize(
    "settings",
    [
        TableSettings(two_pass=True),
        TableSettings(filter="api == Produce"),
        TableSettings(filter="latency > 1ms", records=True),
        TableSettings(embedded=True, records=True),
        TableSettings(payload="head:3", show_secrets=True),
        TableSettings(places=True, capture_point="(.)"),
        TableSettings(ports=frozenset((9092,))),
        TableSettings(topics={"AAAAAAAAAAAAAAAAAAAAZw": "told"}),
    ],
    ids=lambda settings: " ".join(settings.options()),
)
def test_no_setting_tells_them_apart(tmp_path: Path, settings: TableSettings) -> None:
    check([BASIC], tmp_path, 3, settings)


@patient
def test_random_compositions_in_rotated_files_with_loss_are_the_same(tmp_path: Path) -> None:
    kinds = [packets_of(path) for path in sorted(CAPTURES.glob("*.pcap*"))]
    for seed in range(times(5, 1_000)):
        chance, folder = Random(seed), tmp_path / str(seed)
        folder.mkdir()
        whole = folder / "whole.pcap"
        whole.write_bytes(pcap([each for each in composed(kinds, chance) if isinstance(each, Packet)]))
        check(cut(whole, folder, 4, seed), folder, chance.choice((2, 3, 9)))


def test_what_is_no_capture_is_told_once(tmp_path: Path) -> None:
    broken = tmp_path / "broken.pcap"
    broken.write_bytes(b"no capture at all, but long enough to be looked at")
    (first, second) = check([broken], tmp_path, 3)
    assert [fault.kind for fault in first.damage] == ["not-a-capture"]
    assert second.damage == []


def kept_of(path: Path, folder: Path, key: bytes = b"key") -> tuple[Keeper, KeptFile]:
    keeper = Keeper(str(folder), key, 20_000)
    for event in all_events([str(path)], TableSettings(), Note(None, "")):
        keeper.add(event)
    return keeper, keeper.close(TopicNames())


def test_a_file_that_was_changed_is_not_loaded(tmp_path: Path) -> None:
    keeper, _ = kept_of(LOSS, tmp_path)
    kept = keeper.files[0]
    path = Path(kept.path)
    whole, names = path.read_bytes(), TopicNames()
    assert kept.pieces > 1
    assert len(list(kept_pieces(kept, b"key", names, DEFAULTS))) == kept.pieces
    chance = Random(1)
    for place in (*range(24), *chance.sample(range(len(whole)), 40)):
        path.write_bytes(whole[:place] + bytes((whole[place] ^ 4,)) + whole[place + 1 :])
        with pytest.raises(KeptError, match="was changed after it was written"):
            list(kept_pieces(kept, b"key", names, DEFAULTS))
    path.write_bytes(whole[:-1])
    with pytest.raises(KeptError, match="was changed after it was written"):
        list(kept_pieces(kept, b"key", names, DEFAULTS))
    path.write_bytes(whole)
    with pytest.raises(KeptError, match="was changed after it was written"):
        list(kept_pieces(kept, b"another job's", names, DEFAULTS))


def test_files_are_for_their_owner(tmp_path: Path) -> None:
    keeper, names = kept_of(LOSS, tmp_path)
    assert {Path(each.path).stat().st_mode & 0o777 for each in (*keeper.files, names)} == {0o600}
    assert kept_names(names, b"key").order == []


def test_a_task_that_is_killed_or_done_twice_doubles_nothing(tmp_path: Path) -> None:
    job = job_of([LOSS], EVERY, 3)
    folder = tmp_path / "out"
    do(job, folder, 0)  # nobody heard of it
    outcome = do(job, folder, 0)
    rest = rest_of(job, [outcome])
    do(rest, folder, 1)
    outcomes = [outcome, *(do(rest, folder, number) for number in range(len(rest.units)))]
    assert len(rest.units) == 3
    pass_over([LOSS], tmp_path / "alone", EVERY)
    for name in EVERY:
        files = [each.path for one in outcomes for each in one.written if each.table == name]
        found = pa.concat_tables([pq.read_table(file) for file in files])
        assert found.equals(table_of(tmp_path / "alone", name)), name


def test_a_task_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Keeper, __: TopicNames) -> KeptFile:
        raise OSError("no space left on device")

    monkeypatch.setattr(Keeper, "close", fails)
    with pytest.raises(OSError, match="no space"):
        next(begun(job_of([LOSS], EVERY, 3), tmp_path, 0))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert (tmp_path / FOLDER).is_dir()  # it had begun


def test_tasks_have_files_that_follow_one_another_and_nearly_as_much() -> None:
    names = KeptFile("names", 1, 9)
    files = [KeptFile(str(number), 1, size) for number, size in enumerate((5, 5, 5, 1, 9, 5, 5, 5, 20))]
    for tasks in (1, 2, 3, 4, 20):
        shares = rows_of("here", files, names, tasks)
        assert [each for share in shares for each in share.files] == files
        assert len(shares) <= tasks
        assert max(sum(each.size for each in share.files) for share in shares) <= 60 / tasks + 20
    assert [share.files for share in rows_of("here", [], names, 3)] == [()]


def test_a_name_that_was_learned_later_does_not_count(tmp_path: Path) -> None:
    """Not even where an earlier packet told it: its message was complete only later."""
    events = all_events([str(LOSS)], TableSettings(), Note(None, ""))
    exchange = next(each for each in events if isinstance(each, Exchange))
    names = TopicNames()
    names.learn("one", "known", 3)
    exchange.topic_names = names.up_to(10)
    keeper = Keeper(str(tmp_path), b"key", 20_000)
    keeper.add(exchange)
    names.learn("other", "too late", 5)
    of_names = keeper.close(names)
    (file,) = keeper.files
    (piece,) = kept_pieces(file, b"key", kept_names(of_names, b"key"), DEFAULTS)
    (event,) = piece.events
    assert isinstance(event, Exchange)
    assert [event.topic_names.get(each) for each in ("one", "other")] == ["known", None]


def test_packets_that_bring_no_event_are_kept(tmp_path: Path) -> None:
    keeper = Keeper(str(tmp_path), b"key", 20_000)
    keeper.add_packets([{"packet": 1}])
    keeper.add_packets([{"packet": 2}])
    keeper.close(TopicNames())
    (file,) = keeper.files
    assert list(kept_pieces(file, b"key", TopicNames(), DEFAULTS)) == [([], [{"packet": 1}, {"packet": 2}])]
