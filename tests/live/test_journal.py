"""What one process says, and others hear, whenever they look."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from kdissect.live.journal import (
    LONGEST_NOTE,
    MOST_NOTES,
    Begun,
    Complete,
    DecodingProgress,
    Gone,
    JournalReader,
    JournalWriter,
    Lost,
    Status,
    status_of,
)


def test_files_are_told_in_order_to_who_comes_late_too(tmp_path: Path) -> None:
    writer = JournalWriter(str(tmp_path))
    early = JournalReader(str(tmp_path))
    assert early.next_entry() is None
    writer.append(Begun(f"{tmp_path}/a\nb.pcapng", 0))
    assert early.next_entry() == Begun(f"{tmp_path}/a\nb.pcapng", 0)
    assert early.next_entry() is None
    writer.append(Begun("/else/ü.pcapng", 7))
    late = JournalReader(str(tmp_path))
    assert [late.next_entry(), late.next_entry(), late.next_entry()] == [
        Begun(f"{tmp_path}/a\nb.pcapng", 0),
        Begun("/else/ü.pcapng", 7),
        None,
    ]
    assert early.next_entry() == Begun("/else/ü.pcapng", 7)
    writer.close()
    early.close()
    late.close()


def test_a_line_that_is_half_written_waits(tmp_path: Path) -> None:
    (tmp_path / "journal").write_bytes(b'["begun", "one.pca')
    journal = JournalReader(str(tmp_path))
    assert journal.next_entry() is None
    with (tmp_path / "journal").open("ab") as file:
        file.write(b'png", 3]\n')
    assert journal.next_entry() == Begun(f"{tmp_path}/one.pcapng", 3)
    journal.close()


def test_the_end_is_seen_by_everybody_and_only_then(tmp_path: Path) -> None:
    writer = JournalWriter(str(tmp_path))
    one, other = JournalReader(str(tmp_path)), JournalReader(str(tmp_path))
    assert not one.is_over()
    assert not other.is_over()
    writer.close()
    assert one.is_over()
    assert other.is_over()
    one.close()
    other.close()


def test_a_status_comes_back_and_has_a_bounded_size(tmp_path: Path) -> None:
    writer = JournalWriter(str(tmp_path))
    size = (tmp_path / "status").stat().st_size
    notes = tuple("ü" * 1_000 + str(number) for number in range(99))
    long = Status(1, 2, 3, 4, 5, 6, 0.5, 99, notes, "why")
    writer.status(long)
    found = status_of(str(tmp_path))
    assert found is not None
    assert found._replace(notes=()) == long._replace(notes=())
    assert (tmp_path / "status").stat().st_size == size
    assert len(found.notes) <= MOST_NOTES
    assert all(len(note) <= LONGEST_NOTE for note in found.notes)
    writer.status(Status(1))
    assert status_of(str(tmp_path)) == Status(1)
    writer.close()


def test_no_status_is_none(tmp_path: Path) -> None:
    assert status_of(str(tmp_path)) is None
    (tmp_path / "status").write_bytes(b"{")
    assert status_of(str(tmp_path)) is None


ENTRIES = (Complete(), Lost(5, 7, 1, 2, "ü: no room"), Gone("eth0", 7, 3))


def test_what_is_told_beside_files_comes_back(tmp_path: Path) -> None:
    writer = JournalWriter(str(tmp_path))
    for entry in ENTRIES:
        writer.append(entry)
    journal = JournalReader(str(tmp_path))
    assert tuple(journal.next_entry() for _ in ENTRIES) == ENTRIES
    assert journal.next_entry() is None
    writer.close()
    journal.close()


def test_a_full_disk_keeps_nothing_from_being_told_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = JournalWriter(str(tmp_path))
    path = tmp_path / "journal"
    size, write = path.stat().st_size, os.pwrite

    def within(descriptor: int, data: bytes, place: int) -> int:
        if place + len(data) > size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data, place)

    monkeypatch.setattr("kdissect.live.journal.write_at", within)
    told = 100
    for _ in range(told):
        writer.append(ENTRIES[1])
    with pytest.raises(OSError, match="No space"):
        writer.append(Lost(1, 1, 1, 1, "x" * size))
    monkeypatch.undo()
    writer.append(ENTRIES[2])
    journal = JournalReader(str(tmp_path))
    assert [journal.next_entry() for _ in range(told + 2)] == [*[ENTRIES[1]] * told, ENTRIES[2], None]
    writer.close()
    journal.close()


def test_who_writes_hears_how_much_was_decoded(tmp_path: Path) -> None:
    writer = JournalWriter(str(tmp_path))
    assert writer.decoded() == 0
    progress = DecodingProgress(str(tmp_path))
    for number in (0, 12, 3):
        progress.report(number)
        assert writer.decoded() == number
    progress.close()
    writer.close()
