from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from kdissect.protocol import apis
from kdissect.protocol.library import Library, library, package_folder


def test_names_and_keys() -> None:
    assert apis.api_name(1) == "Fetch"
    assert apis.api_name(4711) == "Unknown(4711)"
    assert len(apis.api_keys()) == 95
    assert all(apis.api_key(apis.api_name(key)) == key for key in apis.api_keys())


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("api_versions", 18),
        ("FETCH", 1),
        ("ListClientMetricsResources", 74),
        ("alter_isr", 56),
        ("ListOffset", 2),
    ],
)
def test_case_underscores_and_age_of_a_name_do_not_count(name: str, key: int) -> None:
    assert apis.api_key(name) == key


def test_an_unknown_name_is_a_lookup_error() -> None:
    with pytest.raises(LookupError, match="NoSuchApi"):
        apis.api_key("NoSuchApi")


def test_versions_are_those_of_all_releases() -> None:
    assert apis.versions(0) == range(0, 14)
    assert apis.versions(1) == range(0, 19)
    assert apis.versions(7) == range(0, 4)
    assert sum(len(apis.versions(key)) for key in apis.api_keys()) == 368
    with pytest.raises(LookupError):
        apis.versions(4711)


def test_flexible_versions_and_headers() -> None:
    assert not apis.flexible(1, 11, "request")
    assert apis.flexible(1, 12, "response")
    assert apis.request_header_version(1, 12) == 2
    assert apis.response_header_version(1, 12) == 1
    assert apis.request_header_version(7, 0) == 0
    assert apis.request_header_version(7, 1) == 1
    assert [apis.response_header_version(18, version) for version in (0, 3, 4)] == [0, 0, 0]
    assert apis.request_header_version(17, 1) == 1


def test_a_version_newer_than_any_is_taken_to_be_like_them() -> None:
    assert apis.request_header_version(1, 99) == 2
    assert apis.request_header_version(17, 99) == 1


def test_other_classes() -> None:
    assert "RequestHeader" in apis.data_names()
    assert "SubscriptionInfoData" in apis.data_names()
    assert apis.data_versions("ConsumerProtocolAssignment") == range(0, 4)
    assert apis.data_group("TopicRecord") == "metadata"
    assert apis.data_record_type("GroupMetadataKey") == 2
    assert apis.data_record_type("TopicRecord") == 2
    assert apis.data_record_type("RequestHeader") is None
    with pytest.raises(LookupError):
        apis.data_group("NoSuchRecord")


def test_a_row_of_the_matrix() -> None:
    row = apis.api_summary(78)
    assert (row.key, row.name, row.versions, row.flexible_from) == (78, "ShareFetch", range(0, 3), 0)
    assert row.unstable == (0,)
    assert apis.api_summary(17).flexible_from is None
    assert apis.api_summary(74).also == ("ListClientMetricsResources",)
    assert apis.api_summary(0).releases == ("4.4.0", "3.9")


def test_versions_that_captured_bytes_name_are_not_kept() -> None:
    tracemalloc.start()
    try:
        for version in range(-10_000, 10_000):
            apis.request_header_version(1, version)
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()


def test_the_keys_are_those_of_the_definitions_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert apis.api_keys() is apis.api_keys()
    folder = tmp_path / "definitions" / "apis"
    folder.mkdir(parents=True)
    (folder / "4711-New.txt").write_text("request 0 of 9.9\n\nresponse 0 of 9.9\n")
    monkeypatch.setenv("KDISSECT_DATA_HOME", str(tmp_path))
    library.cache_clear()
    try:
        assert apis.api_keys() == (*Library(package_folder()).keys, 4711)
        assert apis.is_api(4711)
    finally:
        monkeypatch.undo()
        library.cache_clear()
    assert 4711 not in apis.api_keys()
    assert [apis.is_api(key) for key in (0, 4711, None)] == [True, False, False]


def test_what_was_removed_and_when() -> None:
    # KIP-896's table: the baselines of some APIs; and requests that only brokers with ZooKeeper had.
    for key, oldest in ((0, 3), (1, 4), (2, 1), (8, 2), (9, 1), (3, 0), (18, 0)):
        gone = [version for version in apis.versions(key) if apis.removed_in(key, version)]
        assert gone == list(range(oldest)), key
    assert {apis.removed_in(key, 0) for key in (4, 5, 6, 7)} == {"4.0"}
    assert apis.removed_in(apis.api_key("ShareFetch"), 0) == "4.1"  # the early access of 4.0
    assert apis.removed_in(0, 999) is None
    assert apis.removed_in(4711, 0) is None
