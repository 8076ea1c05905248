from __future__ import annotations

from kdissect.protocol.errors import ERRORS, error_name


def test_codes_have_kafkas_names() -> None:
    assert error_name(-1) == "UNKNOWN_SERVER_ERROR"
    assert error_name(0) == "NONE"
    assert error_name(6) == "NOT_LEADER_OR_FOLLOWER"
    assert error_name(136) == "CONTROLLER_ID_NOT_REGISTERED"
    assert sorted(ERRORS) == list(range(-1, 137))


def test_the_list_is_open() -> None:
    assert error_name(4711) == "UNKNOWN(4711)"
