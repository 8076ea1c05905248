"""Can a frame begin at this position? What a connection's own messages say."""

from __future__ import annotations

from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.message import parse_request
from kdissect.session.pending import Pending
from kdissect.session.witness import SEARCH_EFFORT, UNSEEN_REQUESTS, FrameWitness
from tests.kafka import framed, request, response
from tests.session.runs import frame, metadata, metadata_answer
from tests.session.strangers import stranger, stranger_answer
from tests.tcp.segments import BROKER, CLIENT


def witness(*waiting: bytes, limits: Limits = DEFAULTS, correlation_id: int | None = None) -> FrameWitness:
    """One that has seen these requests, which wait."""
    pending = Pending()
    out = FrameWitness(pending, limits, correlation_id)
    for payload in waiting:
        exchange = Exchange(0, CLIENT, BROKER, request=parse_request(frame(payload)))
        pending.add(exchange, 0)
        assert exchange.request is not None
        out.learn(parse_request(frame(payload)))
    return out


def test_a_request_that_fits_begins_anywhere_and_one_that_is_cut_at_a_segment() -> None:
    data = b"xyz" + framed(metadata(1))
    for at_start in (True, False):
        assert witness().begins_request(data, 3, at_start) is True
        assert witness().begins_request(data[:-1], 3, at_start) is at_start
        assert witness().begins_request(data, 2, at_start) is False
    assert witness().begins_request(data[:12], 3, True) is None, "more bytes may tell"


def test_the_header_of_another_client_is_none_of_this_connection() -> None:
    cut = framed(metadata(2))[:-1]
    assert witness(metadata(1)).begins_request(cut, 0, True) is True
    assert witness(request("ListGroups", 0, 1, "other")).begins_request(cut, 0, True) is False


def test_a_request_that_nobody_knows_begins_where_a_segment_does_and_its_client_is_known() -> None:
    data = framed(stranger(7, client_id="test"))
    for cut in (len(data), len(data) - 1, 18):
        assert witness(metadata(1)).begins_request(data[:cut], 0, True) is True
        assert witness(metadata(1)).begins_request(data[:cut], 0, False) is False
        assert witness().begins_request(data[:cut], 0, True) is False
        assert witness(request("ListGroups", 0, 1, "other")).begins_request(data[:cut], 0, True) is False
        assert FrameWitness(Pending(), client_id="test").begins_request(data[:cut], 0, True) is True


def test_an_answer_to_a_request_that_nobody_knows_begins_only_where_a_segment_does() -> None:
    data = framed(stranger_answer(7))
    assert witness(stranger(7)).begins_response(data, 0, True) is True
    assert witness(stranger(7)).begins_response(data, 0, False) is False


def test_where_the_roles_turned_round_frames_of_either_kind_begin() -> None:
    asked, answered = witness(metadata(1)), witness(request("ListGroups", 0, 7, "link"))
    ask, answer = framed(metadata(2)), framed(response("ListGroups", 0, 7, errorCode=0, groups=[]))
    assert asked.begins_request(answer, 0, True) is False
    asked.turn(answered)
    answered.turn(asked)
    assert asked.begins_request(answer, 0, True) is True
    assert asked.begins_request(ask, 0, True) is True
    assert answered.begins_response(ask, 0, True) is True
    assert asked.begins_request(b"\xff" * 20, 0, True) is False


def test_a_response_begins_where_one_fits_whose_request_waits() -> None:
    data = framed(metadata_answer(1))
    assert witness(metadata(1)).begins_response(data, 0, False) is True
    assert witness(metadata(1)).begins_response(data[:-1], 0, False) is False
    assert witness(metadata(1)).begins_response(data[:-1], 0, True) is True
    broken = data[:8] + b"\x7f" + data[9:]
    assert witness(metadata(1)).begins_response(broken, 0, True) is False
    assert witness(metadata(1)).begins_response(data[:7], 0, True) is None


def test_a_response_to_what_was_not_captured_begins_only_where_a_segment_is_all_of_it() -> None:
    data = framed(metadata_answer(5))
    assert witness(metadata(9)).begins_response(data, 0, True) is True
    assert witness(correlation_id=9).begins_response(data, 0, True) is True, "a request that is to come"
    assert witness().begins_response(data, 0, True) is False
    assert witness(metadata(9)).begins_response(data, 0, False) is False
    assert witness(metadata(9)).begins_response(data + b"x", 0, True) is False
    assert witness(metadata(6 + UNSEEN_REQUESTS)).begins_response(data, 0, True) is False


def test_a_size_that_no_frame_has_begins_none() -> None:
    data = framed(metadata_answer(1))
    assert witness(metadata(1)).begins_response(b"\xff" + data[1:], 0, True) is False
    limits = DEFAULTS._replace(frame_bytes=8)
    assert witness(metadata(1), limits=limits).begins_response(data, 0, True) is False


def test_guesses_cost_effort_which_a_frame_that_is_found_gives_back() -> None:
    seen = witness(request("ListGroups", 0, 1, "other"))
    data = framed(request("ListGroups", 0, 1, "x" * 30_000) + b"more")  # fits but for its end
    guesses = 0
    while guesses < 1000 and seen.begins_request(framed(metadata(2)), 0, False):
        seen.begins_request(data, 0, False)
        guesses += 1
    assert SEARCH_EFFORT // 40_000 < guesses < SEARCH_EFFORT // 20_000
    assert seen.begins_request(framed(metadata(2)), 0, True) is True, "the start of a segment"
    seen.refresh()
    assert seen.begins_request(framed(metadata(2)), 0, False) is True
