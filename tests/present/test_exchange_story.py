"""One exchange as text."""

from __future__ import annotations

from kdissect.analysis.fold import MILLISECOND
from kdissect.analysis.neighbours import Beside
from kdissect.exchange import Exchange
from kdissect.present.exchange_story import exchange_lines
from kdissect.present.options import Options
from tests.analysis.folds import made
from tests.analysis.test_sentences import exchanges

BEAT = {"groupId": "g", "generationId": 1, "memberId": "m"}


def told(exchange: Exchange, *resent: tuple[int, int]) -> list[str]:
    """The lines without bars, and with single spaces."""
    lines = exchange_lines(exchange, Beside(exchange), [], None, Options(), resent)
    return [" ".join(line.replace("█", "").split()) for line in lines]


def test_transfers_stand_apart_from_the_parts_of_the_time() -> None:
    exchange = made("Heartbeat", 0, BEAT, {"errorCode": 0}, (90 * MILLISECOND, 100 * MILLISECOND))
    exchange.behind_ns = exchange.throttle_ns = 0
    assert exchange.request is not None
    exchange.request.frame.first_ns -= 30 * MILLISECOND
    lines = told(exchange)
    at = lines.index("it took 10.0 ms, from the request's last byte to the answer's first")
    assert lines[at + 1 : at + 4] == [
        "10.0 ms the broker worked",
        "",
        "30.0 ms before that, the request came, first to last byte",
    ]


def test_a_broker_is_not_said_to_work_while_lost_bytes_are_sent_again() -> None:
    exchange = made("Heartbeat", 0, BEAT, {"errorCode": 0}, (0, 300 * MILLISECOND))
    exchange.behind_ns = exchange.throttle_ns = 0
    assert "300 ms the broker worked" in told(exchange)
    lines = told(exchange, (210 * MILLISECOND, 1_234))
    at = lines.index("300 ms the broker worked, or the network sent lost bytes again")
    assert lines[at + 1 : at + 4] == [
        "",
        "In this time bytes of the connection were lost and sent again: at 0.210",
        "(packet 1,234).",
    ]


def test_an_answer_without_its_request_is_told() -> None:
    first = exchanges("midstream.pcapng")[0]
    assert told(first)[0].startswith(f"#1 an unknown request of {first.client} to broker {first.broker}, at ")
