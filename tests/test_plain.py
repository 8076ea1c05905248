from __future__ import annotations

import marshal
import pickle
from pathlib import Path

import pytest

from kdissect import read
from kdissect.exchange import Exchange
from kdissect.message import Message, Token
from kdissect.model import Fault
from kdissect.plain import exchange_of, plain_exchange
from kdissect.present.tree import exchange_tree
from tests.amount import fewer_again
from tests.cli.run import CAPTURES

CASES = sorted(CAPTURES.glob("*.pcap*"))


def again(exchange: Exchange) -> Exchange:
    return exchange_of(marshal.loads(marshal.dumps(plain_exchange(exchange))), exchange.topic_names)


def state(message: Message | None) -> dict[str, object] | None:
    """The values that a message was made from."""
    if message is None:
        return None
    slots = {name for kind in type(message).__mro__ for name in getattr(kind, "__slots__", ())}
    return {name: getattr(message, name) for name in slots - {"_body", "_layout", "_survey", "_is_surveyed"}}


def without_messages(exchange: Exchange) -> dict[str, object]:
    """The other values that an exchange was made from."""
    left_out = {"request", "response", "recognised", "_faults", "_base_offsets"}
    return {name: getattr(exchange, name) for name in set(Exchange.__slots__) - left_out}


@pytest.mark.parametrize("path", fewer_again(CASES, 4), ids=lambda path: path.stem)
def test_an_exchange_comes_back_as_it_was(path: Path) -> None:
    for exchange in read(path):
        found = again(exchange)
        for mine, theirs in ((exchange.request, found.request), (exchange.response, found.response)):
            assert type(mine) is type(theirs)
            assert state(mine) == state(theirs)
        assert without_messages(found) == without_messages(exchange)
        assert list(exchange_tree(found)) == list(exchange_tree(exchange))
        assert found.faults == exchange.faults


def test_what_is_wrong_with_a_header_comes_back() -> None:
    exchange = next(each for each in read(CASES[0]) if each.request is not None)
    assert exchange.request is not None
    exchange.request.header_faults = (Fault("message", "not-utf8", "a text that is none", 1, 8),)
    found = again(exchange)
    assert found.request is not None
    assert found.request.header_faults == exchange.request.header_faults


def test_a_token_comes_back_with_the_client_that_sent_it() -> None:
    exchange = next(iter(read(CASES[0])))
    exchange.request = Token(exchange.messages[0].frame, "request")
    exchange.request.client_id = "a client"
    assert again(exchange).client_id == "a client"


def test_that_it_was_encrypted_comes_back() -> None:
    exchange = next(iter(read(CASES[0])))
    assert not again(exchange).is_encrypted
    exchange.is_encrypted = True
    assert again(exchange).is_encrypted


def test_it_is_made_of_values_that_pickle_knows_without_a_class() -> None:
    plain = plain_exchange(next(iter(read(CASES[0]))))
    assert b"kdissect" not in pickle.dumps(plain)
