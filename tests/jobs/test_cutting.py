from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import kdissect.capture.compressed
import kdissect.cli.jobs
import kdissect.jobs.cutting
from benchmarks.traffic import FILE_HEAD, grow, multiply
from kdissect.analysis import chapters
from kdissect.capture.cuts import FilePart
from kdissect.capture.files import read_packets
from kdissect.capture.writer import PcapngWriter
from kdissect.cli.folding import FoldedChapter, FoldingWork
from kdissect.cli.reading import Reading
from kdissect.dissect import Event
from kdissect.jobs.batches import PartCounts
from kdissect.jobs.pending import PendingBatch
from kdissect.jobs.workers import Workers
from kdissect.model import TLS_KEY_LOG, Fault, Packet, Secrets
from tests.amount import LONG
from tests.capture.test_cuts import parts_of
from tests.cli.run import CAPTURES
from tests.jobs.same import FORMS, said, small_batches
from tests.lab import Case
from tests.parts.test_stitch import among

SHORT = (0, 2, 8, 9, 15)
"""Places of the forms that every change is held against."""

PLACES = range(len(FORMS)) if LONG else SHORT


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[PartCounts]]:
    """Small files are cut in small parts; gives how each run went."""
    monkeypatch.setattr(kdissect.cli.jobs, "CUT_BYTES", 1)
    monkeypatch.setattr(kdissect.jobs.cutting, "FIRST_BYTES", 4_000)
    monkeypatch.setattr(kdissect.jobs.cutting, "PART_BYTES", 30_000)
    monkeypatch.setattr(kdissect.jobs.cutting, "GROWTH", 2)
    monkeypatch.setattr(kdissect.capture.compressed, "PIECE_BYTES", 2_000)
    found: list[PartCounts] = []
    close = kdissect.cli.jobs._Sharing.close

    def noted(sharing: kdissect.cli.jobs._Sharing) -> None:
        found.append(sharing.counts)
        close(sharing)

    monkeypatch.setattr(kdissect.cli.jobs._Sharing, "close", noted)
    with small_batches(50):
        yield found


@pytest.mark.parametrize("place", PLACES)
def test_a_file_in_parts_says_what_one_process_says(place: int, counts: list[PartCounts]) -> None:
    names = ("basic-kafka43.pcapng", "loss.pcapng")
    for name in names if LONG else names[PLACES.index(place) % 2 :][:1]:
        command = (*FORMS[place], CAPTURES / name)
        alone = said(*command, "--jobs", 1)
        for jobs in (2, 3) if LONG else (2,) if name.startswith("basic") else (3,):
            assert said(*command, "--jobs", jobs) == alone
            assert counts[-1].seams >= 3
            assert counts[-1].given_up == 0


@pytest.mark.parametrize("jobs", [2, 3])
@pytest.mark.parametrize("chosen", [(), ("-Y", "api == Fetch")])
def test_chapters_that_ended_are_added_in_order(
    chosen: tuple[str, ...],
    jobs: int,
    counts: list[PartCounts],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """With full tables, the rows depend on the order."""
    monkeypatch.setattr(chapters, "EXCHANGES", 5)
    config = tmp_path / "config.toml"
    config.write_text("[limits]\nrows = 3\n")
    monkeypatch.setenv("KDISSECT_CONFIG", str(config))
    added: list[FoldedChapter] = []
    write = FoldingWork.write

    def noted(self: FoldingWork[Any], piece: Any) -> None:
        added.append(piece)
        write(self, piece)

    monkeypatch.setattr(FoldingWork, "write", noted)
    tables = ("-z", "positions", "-z", "connections", "-z", "delivery", "-z", "srt,client_id")
    command = ("stats", *tables, *chosen, "-T", "ndjson", CAPTURES / "basic-kafka43.pcapng")
    alone = said(*command, "--jobs", 1)
    assert "left out" in alone.err
    assert not added
    assert said(*command, "--jobs", jobs) == alone
    assert len(added) > 2
    assert all(isinstance(each, FoldedChapter) for each in added)


def test_the_first_part_is_done_before_any_process_begins(
    counts: list[PartCounts], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    many, fork = FoldingWork.many, Workers._fork

    def counted_here(self: FoldingWork[Any], events: Sequence[Event]) -> None:
        steps.append("here")
        many(self, events)

    def forked(self: Workers, *whose: Any) -> None:
        steps.append("forked")
        fork(self, *whose)

    monkeypatch.setattr(FoldingWork, "many", counted_here)
    monkeypatch.setattr(Workers, "_fork", forked)
    assert said("stats", "-z", "srt", CAPTURES / "basic-kafka43.pcapng", "--jobs", 2).code == 0
    assert counts[-1].seams
    assert steps == sorted(steps, key=["here", "forked"].index)
    assert len(set(steps)) == 2


@pytest.mark.parametrize("form", [("explain", "--all", "-T", "ndjson"), ("read", "-T", "ndjson")])
def test_no_process_begins_for_the_events_after_the_last_part(
    form: tuple[str, ...], counts: list[PartCounts], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    batches, fork = [0], Workers._fork

    def forked(self: Workers, part: Any, task: Any = None) -> None:
        batches[0] += task is None
        fork(self, part, task)

    monkeypatch.setattr(Workers, "_fork", forked)
    monkeypatch.setattr(kdissect.jobs.cutting, "FIRST_BYTES", 256 << 10)
    monkeypatch.setattr(kdissect.jobs.cutting, "PART_BYTES", 1 << 20)
    path = tmp_path / "traffic.pcap"
    multiply(path, 5_000)
    alone = said(*form, path, "--jobs", 1)
    for jobs in (2, 5):
        assert said(*form, path, "--jobs", jobs) == alone
        assert counts[-1].seams
        assert not counts[-1].given_up
        assert not counts[-1].is_poor
    assert batches == [0]


def test_a_process_has_parts_one_after_another(
    counts: list[PartCounts], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With few, one is extra, because the first process has parts, too."""
    begun, fork = [0], Workers._fork

    def forked(self: Workers, part: Any, task: Any = None) -> None:
        begun[0] += task is not None
        fork(self, part, task)

    monkeypatch.setattr(Workers, "_fork", forked)
    path = tmp_path / "traffic.pcap"
    multiply(path, 5_000)
    monkeypatch.setattr(kdissect.jobs.cutting, "PART_BYTES", 200_000)
    alone = said("read", "-T", "ndjson", path, "--jobs", 1)
    for jobs in (2, 5):
        begun[0] = 0
        assert said("read", "-T", "ndjson", path, "--jobs", jobs) == alone
        assert 1 <= begun[0] < counts[-1].seams
        assert begun[0] <= (jobs if jobs <= kdissect.jobs.cutting.MOST_WITH_OWN else jobs + 1)


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> list[FilePart]:
    """The parts of files that were cut."""
    found: list[FilePart] = []
    begin = kdissect.jobs.cutting._CutTask.__init__

    def noted(task: Any, part: Any, *rest: Any) -> None:
        found.append(part)
        begin(task, part, *rest)

    monkeypatch.setattr(kdissect.jobs.cutting._CutTask, "__init__", noted)
    return found


@pytest.mark.usefixtures("counts")
def test_parts_of_many_processes_are_larger_where_exchanges_may_be_brief(
    cut: list[FilePart], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = kdissect.jobs.cutting.MOST_WITH_OWN + 1
    path = tmp_path / "traffic.pcap"
    multiply(path, 3_000)
    monkeypatch.setattr(kdissect.jobs.cutting, "PART_BYTES", 100_000)

    monkeypatch.setattr(kdissect.jobs.cutting, "LAST_BYTES", 150_000)

    def largest(jobs: int, *words: str) -> int:
        cut.clear()
        said(*words, path, "--jobs", jobs)
        return max(part.end - part.start for part in cut if part.end is not None)

    for jobs in (2, many):
        assert 90_000 < largest(jobs, "stats", "-z", "groups") < 120_000
    assert 90_000 < largest(2, "stats", "-z", "srt") < 120_000
    assert 180_000 < largest(many, "stats", "-z", "srt") < 220_000


@pytest.mark.usefixtures("counts")
def test_a_part_has_a_bounded_number_of_packets(
    cut: list[FilePart], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "traffic.pcap"
    multiply(path, 3_000)
    monkeypatch.setattr(kdissect.jobs.cutting, "PART_BYTES", 100_000)
    monkeypatch.setattr(kdissect.jobs.cutting, "MOST_PACKETS", 100)
    alone = said("read", "-T", "text", path, "--jobs", 1)
    assert said("read", "-T", "text", path, "--jobs", 2) == alone
    assert max(part.packets for part in cut) == 100


def test_explain_does_too(counts: list[PartCounts]) -> None:
    command = ("explain", "--all", "-T", "ndjson", CAPTURES / "errors.pcapng")
    assert said(*command, "--jobs", 2) == said(*command, "--jobs", 1)
    assert counts[-1].seams


@pytest.mark.parametrize("place", [15, 16, 19])
def test_all_is_counted_once_where_one_process_counts_the_rest(
    place: int, counts: list[PartCounts], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is seen that nothing is lost, counted twice, or counted before its turn."""
    steps: list[str] = []
    readings: list[Reading] = []
    many, done, close = FoldingWork.many, FoldingWork.done, Reading.close

    def closed(self: Reading) -> None:
        readings.append(self)
        close(self)

    def counted_here(self: FoldingWork[Any], events: Sequence[Event]) -> None:
        steps.append("here")
        many(self, events)

    def counted_elsewhere(self: FoldingWork[Any], batched: Any) -> None:
        steps.append("elsewhere")
        done(self, batched)

    monkeypatch.setattr(FoldingWork, "many", counted_here)
    monkeypatch.setattr(Reading, "close", closed)
    monkeypatch.setattr(FoldingWork, "done", counted_elsewhere)
    monkeypatch.setattr(FoldingWork, "is_light", True)
    monkeypatch.setattr(kdissect.jobs.cutting, "MOST_POOR", 1)
    monkeypatch.setattr(kdissect.jobs.cutting, "PART_BYTES", 8_000)
    command = (*FORMS[place], CAPTURES / "loss.pcapng")
    alone = said(*command, "--jobs", 1)
    summary = readings[-1].summary()
    steps.clear()
    assert said(*command, "--jobs", 2) == alone
    assert readings[-1].summary() == summary
    assert " 0 faults" not in summary
    assert "elsewhere" in steps
    assert steps[-1] == "here"


def test_where_one_connection_has_nearly_all_one_process_dissects_the_rest(
    counts: list[PartCounts], tmp_path: Path
) -> None:
    path = tmp_path / "skewed.pcap"
    grow(path, 900_000, 0.97)
    for form in (("read",), ROWS, ("stats", "-z", "srt")) if LONG else (("read",), ("stats", "-z", "srt")):
        assert said(*form, path, "--jobs", 2) == said(*form, path, "--jobs", 1)
        assert counts[-1].is_poor
        assert counts[-1].seams < 15  # of 30


def test_columns_that_grow_are_as_wide_as_one_process_makes_them(
    counts: list[PartCounts], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kdissect.jobs.cutting, "PART_BYTES", 100_000)
    path = tmp_path / "traffic.pcap"
    multiply(path, 1_200)
    alone = said("read", path, "--jobs", 1)
    assert said("read", path, "--jobs", 3) == alone
    assert counts[-1].seams >= 6


def packets_of(name: str) -> list[Packet]:
    return [each for each in read_packets([CAPTURES / name]) if isinstance(each, Packet)]


def written(path: Path, packets: Iterable[Packet]) -> Path:
    """A capture file with these packets."""
    with open(path, "wb") as file:
        file.write(FILE_HEAD)
        for each in packets:
            seconds, ns = divmod(each.timestamp_ns, 1_000_000_000)
            file.write(struct.pack("<IIII", seconds, ns, len(each.data), each.wire_length) + each.data)
    return path


ROWS = ("read", "-T", "ndjson", "--records")


def test_files_that_follow_each_other_are_cut_whatever_their_order(
    counts: list[PartCounts], tmp_path: Path
) -> None:
    packets = packets_of("basic-kafka43.pcapng")
    step = len(packets) // 4
    files = [
        written(tmp_path / f"{name}.pcap", packets[at : at + step])
        for name, at in zip("dbeac", range(0, len(packets), step), strict=False)
    ]
    alone = said(*ROWS, *files, "--jobs", 1)
    for paths in (files, sorted(files)):
        assert said(*ROWS, *paths, "--jobs", 3) == alone
        assert counts[-1].seams >= 3
        assert counts[-1].given_up == 0


def test_files_that_overlap_are_cut_in_the_order_of_their_packets(
    counts: list[PartCounts], tmp_path: Path
) -> None:
    packets = packets_of("basic-kafka43.pcapng")
    files = [written(tmp_path / f"{at}.pcap", packets[at::3]) for at in range(3)]
    alone = said(*ROWS, *files, "--jobs", 1)
    assert said(*ROWS, *files, "--jobs", 2) == alone
    assert counts[-1].seams >= 3
    assert counts[-1].given_up == 0


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data)


def zstandard_of(data: bytes) -> bytes:
    return pytest.importorskip("zstandard").ZstdCompressor().compress(data)  # type: ignore[no-any-return]


def lz4_of(data: bytes) -> bytes:
    return pytest.importorskip("lz4.frame").compress(data)  # type: ignore[no-any-return]


def in_frames(compress: Callable[[bytes], bytes], data: bytes) -> bytes:
    """Many frames in a row: small pieces come of them, so that there is something to cut."""
    return b"".join(compress(data[at : at + 4_000]) for at in range(0, len(data), 4_000))


@pytest.mark.parametrize("compress", [gzipped, zstandard_of, lz4_of])
def test_compressed_files_are_cut_where_they_are_read(
    compress: Callable[[bytes], bytes], counts: list[PartCounts], tmp_path: Path
) -> None:
    path = tmp_path / "capture"
    path.write_bytes(in_frames(compress, (CAPTURES / "basic-kafka43.pcapng").read_bytes()))
    alone = said(*ROWS, path, "--jobs", 1)
    assert said(*ROWS, path, "--jobs", 2) == alone
    assert counts[-1].seams >= 2  # every other part is this process's own
    assert counts[-1].given_up == 0


def test_a_file_that_breaks_off_is_told_once(counts: list[PartCounts], tmp_path: Path) -> None:
    whole = in_frames(gzipped, (CAPTURES / "basic-kafka43.pcapng").read_bytes())
    other = written(tmp_path / "other.pcap", packets_of("errors.pcapng"))
    path = tmp_path / "short.gz"
    path.write_bytes(whole[: len(whole) // 2])
    for paths in ([path], [path, other]):
        alone = said(*ROWS, *paths, "--jobs", 1)
        assert said(*ROWS, *paths, "--jobs", 2) == alone
        assert alone.code == 3
        assert counts[-1].seams


def test_damage_is_told_in_its_place_and_parts_go_on_behind_it(
    counts: list[PartCounts], tmp_path: Path
) -> None:
    data = bytearray((CAPTURES / "broker-0.9.pcap").read_bytes())
    part = parts_of(CAPTURES / "broker-0.9.pcap", len(data) // 3)[1]
    data[part.start + 8 : part.start + 12] = b"\xff\xff\xff\x7f"
    path = tmp_path / "damaged.pcap"
    path.write_bytes(data)
    for form in (ROWS, ("read", "-T", "faults")):
        assert said(*form, path, "--jobs", 2) == said(*form, path, "--jobs", 1)
        assert counts[-1].seams >= 2


@pytest.mark.parametrize("inside", [False, True])
def test_clear_connections_beside_tls_are_dissected_in_parts(
    inside: bool, counts: list[PartCounts], tmp_path: Path
) -> None:
    case = Case("tls13")
    tls = [each for each in case.packets() if isinstance(each, Packet)]
    items = among(tls, packets_of("basic-kafka43.pcapng"))
    keys = case.folder / "keys.log"
    path = tmp_path / "mixed.pcapng"
    if inside:
        items[len(items) // 2 : len(items) // 2] = [Secrets(TLS_KEY_LOG, keys.read_bytes())]
    with open(path, "wb") as file:
        writer = PcapngWriter(file, [])
        for item in items:
            assert not isinstance(item, Fault)
            writer.write(item)
    command = (*ROWS, path, *(() if inside else ("--keylog", keys)))
    alone = said(*command, "--jobs", 1)
    assert alone.out.count(b"\n") > said(*ROWS, CAPTURES / "basic-kafka43.pcapng").out.count(b"\n") + 20
    # So many processes that the first has no parts of its own: how many it has with fewer depends on times.
    jobs = kdissect.jobs.cutting.MOST_WITH_OWN + 1
    assert said(*command, "--jobs", jobs) == alone
    assert counts[-1].seams >= 3
    assert counts[-1].given_up == 0


def test_the_packets_of_what_is_shown_are_the_same(counts: list[PartCounts], tmp_path: Path) -> None:
    for jobs in (1, 2):
        ran = said(
            *("read", CAPTURES / "basic-kafka43.pcapng", "-Y", "api == Fetch", "--jobs", jobs),
            *("-w", tmp_path / f"{jobs}.pcapng"),
        )
        assert ran.code == 0
    assert (tmp_path / "1.pcapng").read_bytes() == (tmp_path / "2.pcapng").read_bytes()


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize(("here", "there", "beside"), [(1, 1, 0), (1, 1, 0.3), (1, 2, 0.1), (2, 1, 0.1)])
def test_all_processes_are_busy_for_about_the_same_time(
    count: int, here: float, there: float, beside: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers are CPU seconds for a byte: in this process, in others, and here for a byte of others."""
    clock = [0.0]
    monkeypatch.setattr(kdissect.jobs.cutting, "process_time", lambda: clock[0])
    balance, others = kdissect.jobs.cutting._Balance(count), 0.0
    for _ in range(100):
        if balance.is_own(10):
            clock[0] += 10 * here
            balance.note_done(10 * here)
            continue
        part = PendingBatch(None, None)
        part.seconds = 10 * there
        others += part.seconds
        balance.note_given(10, part)
        balance.note_stitched(10)
        clock[0] += 10 * beside
    assert abs(clock[0] - others / (count - 1)) <= 10 * (here + there)


def test_a_part_that_was_given_up_is_no_work_of_others() -> None:
    balance = kdissect.jobs.cutting._Balance(2)
    assert balance.is_own(10)
    balance.note_done(1.0)
    balance.note_given(1_000, PendingBatch(None, None))  # it has no process and no result
    assert not balance.is_own(10)


def test_a_part_that_no_other_process_can_begin_is_done_here() -> None:
    balance = kdissect.jobs.cutting._Balance(2)
    assert balance.is_own(10)
    assert not balance.is_own(10)
    assert balance.is_own(10, may_give=False)
    assert not kdissect.jobs.cutting._Balance(9).is_own(10, may_give=False)
