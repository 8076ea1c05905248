from __future__ import annotations

from typing import Any

from kdissect.protocol.definition import Document, write
from kdissect.protocol.importing import kafka_class
from kdissect.protocol.merging import merge


def said(
    release: str, versions: str, fields: list[dict[str, Any]], name: str = "FetchRequest", **more: object
) -> tuple[str, dict[str, Any]]:
    kafka: dict[str, Any] = {
        "apiKey": 1,
        "type": "request",
        "name": name,
        "validVersions": versions,
        "flexibleVersions": "3+",
        "fields": fields,
    }
    return release, kafka | more


def merged(*definitions: tuple[str, dict[str, Any]]) -> tuple[str, Document]:
    known = None
    for release, definition in definitions:
        new = kafka_class("clients", definition, release)
        assert new is not None
        known = merge(known, new)
    assert known is not None
    return known


def heads(document: Document) -> list[str]:
    return [line for line in write(document).split("\n") if line and not line.startswith(" ")]


NUMBER = {"name": "Number", "type": "int32", "versions": "0+"}
WIDE = {"name": "Number", "type": "int64", "versions": "0+"}
RENAMED = {"name": "Count", "type": "int32", "versions": "0+"}
TAGGED = {"name": "More", "type": "int8", "versions": "3+", "taggedVersions": "3+", "tag": 0}


def test_one_block_covers_the_versions_that_a_release_dropped_but_still_describes() -> None:
    old, new = said("3.9", "0-4", [NUMBER]), said("4.4.0", "2-5", [NUMBER])
    for order in ([old, new], [new, old], [new, old, new, old]):
        assert heads(merged(*order)[1]) == ["request 2-5 of 4.4.0, 0-1 of 3.9; flexible 3+"]


def test_other_names_in_dropped_versions_are_a_block_of_their_own_and_none_in_kept_ones() -> None:
    old, new = said("3.9", "0-4", [NUMBER]), said("4.4.0", "2-5", [RENAMED])
    for order in ([old, new], [new, old]):
        assert heads(merged(*order)[1]) == [
            "request 2-5 of 4.4.0; flexible 3+",
            "request 0-1 of 3.9; flexible 3+",
        ]


def test_another_layout_of_the_same_version_is_an_era() -> None:
    old, new = said("3.9", "0-4", [WIDE]), said("4.4.0", "2-5", [NUMBER])
    for order in ([old, new], [new, old], [new, old, new]):
        assert heads(merged(*order)[1]) == [
            "request 2-5 of 4.4.0; flexible 3+",
            "request 0-1 of 3.9; flexible 3+",
            "era request 2-4 of 3.9; flexible 3+",
        ]


def test_known_tags_and_the_word_for_bytes_make_no_era() -> None:
    one = {"name": "Data", "type": "bytes", "versions": "0+"}
    other = {"name": "Data", "type": "records", "versions": "0+"}
    document = merged(said("3.9", "3", [one]), said("4.4.0", "3", [other, TAGGED]))[1]
    assert heads(document) == ["request 3 of 4.4.0; flexible 3+"]


def test_an_older_release_only_adds_versions_that_nobody_has() -> None:
    document = merged(said("4.4.0", "2-5", [NUMBER]), said("4.0.0", "1-9", [NUMBER]))[1]
    assert heads(document) == ["request 2-5 of 4.4.0, 1 of 4.0.0, 6-9 of 4.0.0; flexible 3+"]


def test_the_newest_name_stays_and_the_old_one_is_remembered() -> None:
    old = said("3.9", "0", [NUMBER], "GetRequest")
    new = said("4.4.0", "0", [NUMBER], "FetchRequest")
    for order in ([old, new], [new, old]):
        name, document = merged(*order)
        assert (name, document.also) == ("Fetch", ("Get",))


def test_versions_are_unstable_where_their_release_says_so() -> None:
    old = said("4.1.1", "0-2", [NUMBER], latestVersionUnstable=True)
    assert heads(merged(old)[1]) == ["request 0-1 of 4.1.1, 2 of 4.1.1 unstable; flexible 3+"]
    assert heads(merged(old, said("4.4.0", "1-2", [NUMBER]))[1]) == [
        "request 1-2 of 4.4.0, 0 of 4.1.1; flexible 3+"
    ]


def test_requests_and_responses_share_a_document() -> None:
    answer = said("4.4.0", "0-1", [NUMBER], "FetchResponse", type="response")
    document = merged(answer, said("4.4.0", "0-1", [NUMBER]))[1]
    assert [block.kind for block in document.blocks] == ["request", "response"]


def test_releases_are_compared_by_number() -> None:
    document = merged(said("3.10.0", "0", [RENAMED]), said("3.9.2", "0", [NUMBER]))[1]
    assert document.blocks[0].fields[0].name == "count"


def test_a_key_that_counted_record_types_as_versions_adds_nothing() -> None:
    old = said("3.9", "2", [NUMBER], "GroupMetadataKey", type="data", apiKey=None)
    new = said("4.4.0", "0", [NUMBER], "GroupMetadataKey", type="coordinator-key", apiKey=2)
    for order in ([old, new], [new, old]):
        group, document = merged(*order)
        assert group == "clients"
        assert heads(document) == ["coordinator-key 0 of 4.4.0; record type 2; flexible 3+"]
