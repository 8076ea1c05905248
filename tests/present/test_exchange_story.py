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


def told(exchange: Exchange) -> list[str]:
    """The lines without bars, and with single spaces."""
    lines = exchange_lines(exchange, Beside(exchange), [], None, Options())
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


def test_an_answer_without_its_request_is_told() -> None:
    first = exchanges("midstream.pcapng")[0]
    assert told(first)[0].startswith(f"#1 an unknown request of {first.client} to broker {first.broker}, at ")
