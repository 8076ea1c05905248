"""How far tasks are."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from kdissect.spark import progress
from kdissect.spark.progress import Done, Meter, Note, done, is_notebook


def test_notes_of_all_tasks_add_up(tmp_path: Path) -> None:
    for name, size in (("a-0", 100), ("a-1", 50)):
        note = Note(str(tmp_path), name)
        note.packet(size)
        note.rows_of(7)
        note.write()
    assert done(str(tmp_path)) == Done(100 + 50 + 2 * 24, 14, 2, 0)


def test_without_a_folder_or_with_one_that_is_gone_work_goes_on(tmp_path: Path) -> None:
    for folder in (None, str(tmp_path / "gone")):
        note = Note(folder, "a")
        for _ in range(5_000):
            note.packet(76)
        note.write()
        note.write()
        assert note.read == 500_000
    assert list(tmp_path.iterdir()) == []


def test_the_tasks_of_a_worker_add_up(tmp_path: Path) -> None:
    for _ in range(3):  # as of three capture points, or of a task that is done again
        note = Note(str(tmp_path), "exchanges-0")
        note.packet(76)
        note.write()
        note.write()
    assert done(str(tmp_path)).read == 300


def test_the_line_tells_rate_and_time_left(tmp_path: Path) -> None:
    meter = Meter(str(tmp_path), 4_000_000, "exchanges")
    note = Note(str(tmp_path), "a")
    note.packet(1_000_000 - 24)
    note.rows_of(5)
    note.write()
    text = meter.text(2.0)
    assert text == "[█████░░░░░░░░░░░░░░░] exchanges: 976.6 KiB read, 488.3 KiB/s, 1 exchange, 25 %, 6 s left"


def test_no_time_left_is_told_from_the_first_bytes(tmp_path: Path) -> None:
    meter = Meter(str(tmp_path), 4_000_000, "exchanges")
    note = Note(str(tmp_path), "a")
    note.packet(400)
    note.write()
    assert meter.text(20.0).endswith(" 424 B read, 21 B/s, 0 exchanges, 0 %")


def test_of_what_is_larger_than_its_files_no_share_is_told(tmp_path: Path) -> None:
    meter = Meter(str(tmp_path), 10, "exchanges")
    note = Note(str(tmp_path), "a")
    note.packet(1_000_000)
    note.write()
    assert "%" not in meter.text(1.0)


def test_a_notebook_shows_it_in_its_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, str]] = []

    class Handle:
        def update(self, data: dict[str, str], *, raw: bool) -> None:
            told.append(("update", data["text/plain"]))

    def display(data: dict[str, str], *, raw: bool, display_id: bool) -> Handle:
        told.append(("display", data["text/plain"]))
        return Handle()

    shell = SimpleNamespace(kernel=object())
    package = SimpleNamespace(get_ipython=lambda: shell, display=SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", package.display)
    monkeypatch.setattr(progress, "SHOW_EVERY", 0.01)
    with Meter(str(tmp_path), 100, "tables"):
        while len(told) < 2:
            time.sleep(0.01)
        note = Note(str(tmp_path), "a")
        note.packet(76)
        note.write()
    assert [kind for kind, _ in told][:2] == ["display", "update"]
    assert "100 %" in told[-1][1]
    del shell.kernel  # IPython in a terminal
    assert not is_notebook()
