"""What names of folders and files tell, and what they do not."""

from __future__ import annotations

import pytest

from kdissect.logdir.names import FileName, Folder, file, folder, segment_beside

ID = "6e86960db2a2495c87752fb57324b730"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("orders-0", Folder("orders", 0)),
        ("a-b.c_d-2147483647", Folder("a-b.c_d", 2147483647)),
        ("orders-1-2", Folder("orders-1", 2)),
        (f"cluster43-combined-r-1.{ID}-delete", Folder("cluster43-combined-r", 1, "delete")),
        (f"orders-7.{ID}-future", Folder("orders", 7, "future")),
        (f"orders-7.{ID}-stray", Folder("orders", 7, "stray")),
        ("__consumer_offsets-49", Folder("__consumer_offsets", 49)),
        ("orders", Folder()),
        ("orders-", Folder()),
        ("-1", Folder()),
        ("..-1", Folder()),
        ("orders-01", Folder()),
        ("orders-2147483648", Folder()),
        ("orders--1", Folder("orders-", 1)),
        ("or ders-1", Folder()),
        ("orders-1-delete", Folder()),
        (f"orders-1.{ID}-gone", Folder()),
        ("o" * 250 + "-1", Folder()),
        ("", Folder()),
    ],
)
def test_topic_and_partition_of_a_folder(name: str, wanted: Folder) -> None:
    assert folder(name) == wanted


def test_a_name_as_long_as_kafka_allows_may_have_lost_the_end_of_its_topic() -> None:
    suffix = f"-1.{ID}-delete"
    assert folder("t" * (255 - len(suffix)) + suffix) == Folder(None, 1, "delete")
    assert folder("t" * (254 - len(suffix)) + suffix).topic is not None


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("00000000000000000042.log", FileName("segment", 42)),
        ("00000000000000000042.log.deleted", FileName("segment", 42)),
        ("00000000000000000042.index.swap", FileName("offset-index", 42)),
        ("00000000000000000042.timeindex.cleaned", FileName("time-index", 42)),
        ("00000000000000000042.txnindex", FileName("transaction-index", 42)),
        ("00000000000000000042.snapshot", FileName("producer-snapshot", 42)),
        ("00000000000000000042-0000000003.checkpoint", FileName("metadata-snapshot", 42, 3)),
        ("00000000000000000042-0000000003.checkpoint.part", FileName("metadata-snapshot", 42, 3)),
        ("bootstrap.checkpoint", FileName("metadata-snapshot")),
        ("1234_m1BQci__SAOev-mYiJP3bA.timeindex", FileName("time-index", 1234)),
        ("leader-epoch-checkpoint", FileName("leader-epoch-checkpoint")),
        ("cleaner-offset-checkpoint", FileName("offset-checkpoint")),
        ("quorum-state", FileName("quorum-state")),
        ("server.log", None),
        ("42.log", None),
        ("dump.txt", None),
        ("00000000000000000042.log.gz", None),
        ("٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٤٢.log", None),
    ],
)
def test_kind_and_offset_of_a_file(name: str, wanted: FileName | None) -> None:
    assert file(name) == wanted


def test_a_file_that_the_user_names_needs_only_its_ending() -> None:
    assert file("copy.log", named_by_user=True) == FileName("segment")
    assert file("copy.snapshot", named_by_user=True) == FileName("producer-snapshot")
    assert file("copy.txt", named_by_user=True) is None


def test_an_index_belongs_to_the_segment_in_the_same_state() -> None:
    assert segment_beside("00000000000000000042.index") == "00000000000000000042.log"
    assert segment_beside("00000000000000000042.timeindex.deleted") == "00000000000000000042.log.deleted"
    assert segment_beside("copy.index") is None
