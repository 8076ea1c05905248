from __future__ import annotations

from pathlib import Path

import pytest

from tests.amount import LONG
from tests.cli.run import CAPTURES
from tests.jobs.same import FORMS, differences, said, short_chapters, small_batches, small_parts

CASES = sorted(CAPTURES.glob("*.pcap*"))
SHORT = (0, 1, 3, 9, 10, 13)
"""Places of the forms that every change is held against, one a capture; :mod:`tests.jobs.long` takes all."""


@pytest.mark.parametrize(
    ("place", "path"), list(enumerate(CASES)), ids=lambda each: getattr(each, "stem", "")
)
def test_so_many_jobs_say_what_one_says(place: int, path: Path) -> None:
    events = 7 if LONG else max(7, path.stat().st_size // 2_500)  # each batch is a process: some 10 of them
    assert not differences([path], [FORMS[SHORT[place % len(SHORT)]]], (2, 3) if LONG else (3,), events)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: " ".join(form)[:40])
def test_so_do_they_in_every_form(form: tuple[str, ...]) -> None:
    assert not differences([CAPTURES / "errors.pcapng"], [form], (2,), 5 if LONG else 14)


_FULL = [form for form in FORMS if form[0] in ("explain", "stats")]


@pytest.mark.parametrize("limit", ["fact_bytes = 200_000", "rows = 2", "timeline_events = 9"])
@pytest.mark.parametrize("form", _FULL, ids=lambda form: f"{form[0]} {form[-1]}")
def test_so_do_they_if_tables_are_full(
    form: tuple[str, ...], limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, path = tmp_path / "config.toml", CAPTURES / "errors.pcapng"
    config.write_text(f"[limits]\n{limit}\n")
    monkeypatch.setenv("KDISSECT_CONFIG", str(config))
    with short_chapters():
        alone = said(*form, path, "--jobs", 1)
        if form[0] == "stats" or "bytes" in limit:  # explain tells only of full memory
            assert "limit" in alone.err
        assert not differences([path], [form], (2,), 5 if LONG else 14)
        with small_parts(40_000):
            assert said(*form, path, "--jobs", 2) == alone


def test_several_files_are_one_capture_for_all_of_them() -> None:
    assert not differences(CASES[:3], [("read", "-T", "ndjson")], (2,), 50)


def test_the_packets_of_what_is_shown_are_the_same(tmp_path: Path) -> None:
    for jobs in (1, 2):
        with small_batches(4):
            ran = said(
                *("read", CAPTURES / "basic-kafka43.pcapng", "-Y", "api == Fetch", "--jobs", jobs),
                *("-w", tmp_path / f"{jobs}.pcapng"),
            )
        assert ran.code == 0
    assert (tmp_path / "1.pcapng").read_bytes() == (tmp_path / "2.pcapng").read_bytes()


@pytest.mark.parametrize(
    "form",
    [
        *(("-T", "parquet"), ("-T", "arrow"), ("-T", "records.parquet"), ("-T", "records.arrow")),
        *(("-T", "connections.parquet"), ("-T", "parquet", "-Y", "api == Fetch", "--strict")),
        ("-T", "connections.arrow", "-Y", "latency > 5ms"),
    ],
    ids=" ".join,
)
def test_columns_that_several_make_are_those_that_one_makes(
    form: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    from kdissect.present import arrow, record_columns

    for module, rows in ((arrow, "ROWS_A_BATCH"), (record_columns, "ROWS_AT_ONCE")):
        monkeypatch.setattr(module, rows, 19)
    outputs = []
    for jobs in (1, 3):
        output = tmp_path / str(jobs)
        with small_batches(4 if LONG else 11):
            ran = said("read", CAPTURES / "basic-kafka43.pcapng", *form, "--jobs", jobs, "-o", output)
        outputs.append((ran, output.read_bytes()))
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("form", [("-c", "3"), ("-t", "d")])
def test_what_cannot_be_shared_is_done_by_one(form: tuple[str, ...], tmp_path: Path) -> None:
    outputs = []
    for jobs in (1, 3):
        output = tmp_path / str(jobs)
        with small_batches(4):
            ran = said("read", CAPTURES / "basic-kafka43.pcapng", *form, "--jobs", jobs, "-o", output)
        assert (ran.code, ran.err) == (0, "")
        outputs.append(output.read_bytes())
    assert outputs[0] == outputs[1] != b""


def test_faults_that_others_count_decide_the_exit_code() -> None:
    path = CAPTURES / "loss.pcapng"
    ran = [said("read", path, "--strict", "--jobs", jobs) for jobs in (1, 2)]
    assert ran[0] == ran[1]
    assert ran[0].code == 4
