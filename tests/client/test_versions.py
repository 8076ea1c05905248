from __future__ import annotations

import pytest

from kdissect.client.errors import AskingError
from kdissect.client.versions import NOTHING, Advertised, advertised, api_versions_body, next_try
from kdissect.protocol import apis

METADATA, PRODUCE = apis.METADATA, apis.PRODUCE


def test_the_newest_version_that_both_sides_know_is_taken() -> None:
    newest = apis.versions(METADATA)[-1]
    assert Advertised({METADATA: range(1, 6)}).pick(METADATA) == 5
    assert Advertised({METADATA: range(0, 100)}).pick(METADATA) == newest
    assert Advertised({PRODUCE: range(0, 12)}).pick(PRODUCE, 0, 2) == 2
    assert Advertised({PRODUCE: range(3, 12)}).pick(PRODUCE, 7) == 11


def test_unstable_versions_are_not_taken_unasked() -> None:
    unstable = [key for key in apis.api_keys() if apis.api_summary(key).unstable]
    for key in unstable:
        known = apis.versions(key)
        if set(apis.api_summary(key).unstable) != set(known):
            assert Advertised({key: known}).pick(key) not in apis.api_summary(key).unstable


def test_a_forced_version_is_taken_as_it_is() -> None:
    assert NOTHING.pick(METADATA, forced=77) == 77


def test_where_there_is_no_version_both_sides_are_named() -> None:
    with pytest.raises(AskingError, match="kdissect wants versions 0 to 2, the broker advertises 3 to 11"):
        Advertised({PRODUCE: range(3, 12)}).pick(PRODUCE, 0, 2)
    with pytest.raises(AskingError, match="does not advertise Produce"):
        NOTHING.pick(PRODUCE)


def test_a_broker_that_does_not_know_the_version_is_asked_again_in_one_that_it_does() -> None:
    old = {"errorCode": 35, "apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 3}]}
    assert next_try(4, old) == 3
    assert next_try(4, {"errorCode": 35, "apiKeys": []}) == 0
    assert next_try(0, {"errorCode": 35, "apiKeys": []}) is None
    assert next_try(4, {"errorCode": 0, "apiKeys": old["apiKeys"]}) is None


def test_what_is_advertised_is_kept_as_ranges() -> None:
    body = {"apiKeys": [{"apiKey": 0, "minVersion": 3, "maxVersion": 11}]}
    assert advertised(body).ranges == {0: range(3, 12)}


def test_who_asks_is_said_from_version_3_on() -> None:
    assert api_versions_body(2) == {}
    assert api_versions_body(3)["clientSoftwareName"] == "kdissect"
