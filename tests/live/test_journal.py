"""What one process says, and others hear, whenever they look."""

from __future__ import annotations

from pathlib import Path

from kdissect.live.journal import LONGEST_NOTE, MOST_NOTES, Journal, JournalWriter, Status, status_of


def test_files_are_told_in_order_to_who_comes_late_too(tmp_path: Path) -> None:
    writer = JournalWriter(str(tmp_path))
    early = Journal(str(tmp_path))
    assert early.next_file() is None
    writer.began("a\nb.pcapng")
    assert early.next_file() == ("a\nb.pcapng", 0)
    assert early.next_file() is None
    writer.began("ü.pcapng", 7)
    late = Journal(str(tmp_path))
    assert [late.next_file(), late.next_file(), late.next_file()] == [
        ("a\nb.pcapng", 0),
        ("ü.pcapng", 7),
        None,
    ]
    assert early.next_file() == ("ü.pcapng", 7)
    writer.close()
    early.close()
    late.close()


def test_a_line_that_is_half_written_waits(tmp_path: Path) -> None:
    (tmp_path / "journal").write_bytes(b'["one.pca')
    journal = Journal(str(tmp_path))
    assert journal.next_file() is None
    with (tmp_path / "journal").open("ab") as file:
        file.write(b'png", 3]\n')
    assert journal.next_file() == ("one.pcapng", 3)
    journal.close()


def test_the_end_is_seen_by_everybody_and_only_then(tmp_path: Path) -> None:
    writer = JournalWriter(str(tmp_path))
    one, other = Journal(str(tmp_path)), Journal(str(tmp_path))
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
