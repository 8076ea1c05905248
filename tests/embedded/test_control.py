"""Control records: the ``control`` column, and what the key does not say."""

from __future__ import annotations

import pytest

from kdissect.embedded.control import control_column, type_name
from kdissect.embedded.internal import decode_internal, encode_internal
from kdissect.limits import DEFAULTS
from tests.embedded.official import one


def test_the_column_has_the_type_by_name_and_the_fields() -> None:
    assert control_column(bytes.fromhex("00000001"), bytes.fromhex("000000000007")) == {
        "type": "COMMIT",
        "coordinatorEpoch": 7,
    }
    version = one("control", "KRaftVersionRecord", 0)
    assert control_column(version.key, version.value) == {"type": "KRAFT_VERSION", **version.json}


def test_the_column_is_empty_where_the_key_does_not_tell() -> None:
    assert control_column(None, b"") is None
    assert control_column(b"\0\0\0", b"") is None


def test_an_unknown_type_keeps_its_bytes() -> None:
    assert type_name(9) == "UNKNOWN(9)"
    found = decode_internal("control", b"\0\0\0\x09", b"abc")
    assert (found.name, found.key, found.body) == ("Unknown(9)", {"type": 9}, {"_remainder": "YWJj"})
    assert control_column(b"\0\0\0\x09", b"abc") == {"type": "UNKNOWN(9)", "_remainder": "YWJj"}


def test_a_newer_marker_and_a_newer_key_are_read_as_the_known_ones() -> None:
    found = decode_internal("control", bytes.fromhex("0001000001"), bytes.fromhex("000200000007ffff"))
    assert (found.name, found.version, found.body) == (
        "EndTxnMarker",
        2,
        {"coordinatorEpoch": 7, "_remainder": "//8="},
    )
    assert {fault.kind for fault in found.faults} == {"unknown-version"}


def test_the_form_of_an_older_release_is_read_and_said() -> None:
    # LeaderChangeMessage of 2.7: no version, the leader's id first.
    found = decode_internal("control", b"\0\0\0\x02", bytes.fromhex("00000005 02 00000005 00 01 00"))
    assert found.body == {"leaderId": 5, "voters": [{"voterId": 5}], "grantingVoters": []}
    assert found.faults == ()
    assert found.value_part is not None
    assert found.value_part.era


def test_a_key_alone_names_the_record() -> None:
    assert decode_internal("control", b"\0\0\0\0", None).name == "EndTxnMarker"


def test_a_marker_needs_a_key_to_be_written_and_others_do_not() -> None:
    version = one("control", "KRaftVersionRecord", 0)
    assert encode_internal("control", version.name, 0, None, version.json) == (version.key, version.value)
    for key in (None, {"type": 5}, {"type": "x"}):
        with pytest.raises(ValueError, match=r"type|an object"):
            encode_internal("control", "EndTxnMarker", 0, key, {"coordinatorEpoch": 1})
    with pytest.raises(ValueError, match=r"^name: "):
        encode_internal("control", "Unknown(9)", 0, {"type": 9}, {})


def test_the_limits_of_the_caller_hold_for_control_records() -> None:
    body = {"version": 0, "leaderId": 1, "voters": [{"voterId": 1}, {"voterId": 2}], "grantingVoters": []}
    key, value = encode_internal("control", "LeaderChangeMessage", 0, None, body)
    whole, part = control_column(key, value), control_column(key, value, DEFAULTS._replace(elements=1))
    assert whole is not None
    assert part is not None
    assert len(whole["voters"]) == 2
    assert "voters" not in part
