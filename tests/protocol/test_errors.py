from __future__ import annotations

from kdissect.protocol import apis
from kdissect.protocol.errors import (
    CLASSES,
    FATAL,
    RETRIABLE,
    ROUTINE,
    SIGNS,
    error_class,
    error_name,
    error_names,
    errors,
    gravest,
)
from tests.amount import each_of


def test_codes_have_kafkas_names() -> None:
    assert error_name(-1) == "UNKNOWN_SERVER_ERROR"
    assert error_name(0) == "NONE"
    assert error_name(6) == "NOT_LEADER_OR_FOLLOWER"
    assert error_name(136) == "CONTROLLER_ID_NOT_REGISTERED"
    assert list(error_names()) == list(range(-1, 137))


def test_the_list_is_open() -> None:
    assert error_name(4711) == "UNKNOWN(4711)"
    assert error_class(4711) == FATAL  # as for Kafka's clients


@each_of(lambda: range(-1, 137))
def test_every_code_says_what_it_means_and_how_grave_it_is(code: int) -> None:
    error = errors()[code]
    assert error.code == code
    assert error.meaning.endswith(".")
    assert error.error_class in ((FATAL, RETRIABLE) if code else ("",))
    assert not error.is_retriable or error.error_class == RETRIABLE


def test_kafkas_own_word_is_kept_beside_what_its_clients_do() -> None:
    assert errors()[6].is_retriable
    assert not errors()[27].is_retriable  # RebalanceInProgressException is none; the member joins again
    assert error_class(27) == RETRIABLE
    assert error_class(30) == FATAL


def test_what_is_routine_has_a_bound() -> None:
    names = {error.name for error in errors().values() if error.bound is not None}
    assert names >= {
        *("MEMBER_ID_REQUIRED", "REBALANCE_IN_PROGRESS", "COORDINATOR_LOAD_IN_PROGRESS"),
        *("COORDINATOR_NOT_AVAILABLE", "UNSTABLE_OFFSET_COMMIT", "CONCURRENT_TRANSACTIONS"),
        *("UNSUPPORTED_VERSION", "NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH", "TOPIC_ALREADY_EXISTS"),
        "FETCH_SESSION_ID_NOT_FOUND",
    }
    for error in errors().values():
        bound = error.bound
        if bound is None:
            continue
        assert bound.within_ns or bound.times or bound.own_topics, error.name
        for api in bound.apis | ({bound.until} if bound.until else set()):
            assert apis.api_name(apis.api_key(api)) == api
    load = errors()[14].bound
    assert load is not None
    assert load.within_ns == 5_000_000_000


def test_the_gravest_counts() -> None:
    assert gravest([ROUTINE, FATAL, RETRIABLE]) == FATAL
    assert gravest([ROUTINE]) == ROUTINE
    assert gravest([]) is None
    assert len({SIGNS[each] for each in CLASSES}) == len(CLASSES)
