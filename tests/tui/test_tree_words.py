from __future__ import annotations

import pytest

from kdissect import read
from kdissect.present.options import Options
from kdissect.tui.detail import Detail
from kdissect.tui.searching import Pattern
from kdissect.tui.tree_words import TreeWords
from tests.cli.run import CAPTURES

WORDS = (
    *(
        "throttleTimeMs",
        "THROTTLE",
        "epoch",
        "baseSequence",
        "zstd",
        "CreateTime",
        "null",
        "9223372036854775807",
    ),
    *("rack", "Fetch", "NOT_LEADER", "UNKNOWN", "subscription", "userData", "500", "0", "true", "qqqq", "a"),
)


@pytest.mark.parametrize("capture", ["errors.pcapng", "basic-kafka43.pcapng", "sasl-scram.pcapng"])
def test_what_is_in_a_tree_is_never_said_not_to_be(capture: str) -> None:
    options = Options(embedded=True)
    exchanges = list(read(CAPTURES / capture))[:40]
    passed = 0
    for word in WORDS:
        pattern = Pattern(word, options)
        words = TreeWords(word, pattern.is_in)
        for exchange in exchanges:
            if any(map(words.may_be_in, exchange.messages)):
                passed += 1
            else:
                assert not pattern.line(Detail(exchange, options)), (word, exchange.number)
    assert passed < len(WORDS) * len(exchanges)


def test_what_is_no_word_may_be_anywhere() -> None:
    exchange = next(iter(read(CAPTURES / "errors.pcapng")))
    assert exchange.request is not None
    for text in ("/qqqq/", "qqqq: 1", '"qqqq"'):
        assert TreeWords(text, Pattern(text, Options()).is_in).may_be_in(exchange.request)
    assert not TreeWords("qqqq", Pattern("qqqq", Options()).is_in).may_be_in(exchange.request)
