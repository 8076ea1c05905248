"""What is searched for, and where it is found."""

from __future__ import annotations

import pickle
from base64 import b64encode
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect import read
from kdissect.exchange import Exchange
from kdissect.feed.index import Places
from kdissect.feed.matching import Answers
from kdissect.feed.searching import ListSearch, Pattern, RecordPattern, TreeWords
from kdissect.present.detail import Detail
from kdissect.present.options import Options
from kdissect.present.records import addressed_rows, record_rows
from tests.cli.run import CAPTURES
from tests.feed.feeds import index_with
from tests.kafka import Talk, request
from tests.present.captures import OPEN, SECRET, secret_talks, write_capture

OPTIONS = Options(embedded=True)


def talk_with(tmp_path: Path, *clients: str) -> list[Exchange]:
    talk = Talk()
    for number, client in enumerate(clients, 1):
        talk.ask(request("Metadata", 1, number, client_id=client, topics=[]))
    return list(read(write_capture(tmp_path / "c.pcapng", talk.close())))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("orders", [True, True, False]),
        ("zähler", [False, False, True]),
        ("6f 72 64", [True, False, False]),  # "ord": bytes have no case
        ("0x4f5244", [False, True, False]),
        ("/o.ders$/", [False, True, False]),
        ("/^.{4,12}ord/", [True, False, False]),
        ("/z\\xc3\\xa4/", [False, False, True]),
        ("{(", [False, False, False]),
        ("correlationId: 2", [False, True, False]),
        ("CORRELATIONID", [True, True, True]),
        ("(Metadata)", [True, True, True]),
    ],
)
def test_text_hex_and_regular_expressions(text: str, found: list[bool], tmp_path: Path) -> None:
    exchanges = talk_with(tmp_path, "orders-1", "my-ORDERS", "Zähler")
    pattern = pickle.loads(pickle.dumps(Pattern(text, OPTIONS)))
    if text == "/o.ders$/":  # the frame goes on after the client id
        assert [pattern.is_in(each.client_id or "") for each in exchanges] == found
    else:
        assert [pattern.matches(each) for each in exchanges] == found


@pytest.mark.parametrize("text", ["", "  ", "/(/", "/[/", "x" * 1_001])
def test_what_cannot_be_searched_for_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"search|RE2|longer"):
        Pattern(text, OPTIONS)


def test_the_place_of_a_match_is_told(tmp_path: Path) -> None:
    (exchange,) = talk_with(tmp_path, "orders-1")
    spot = Pattern("orders", OPTIONS).spot(exchange)
    assert spot is not None
    assert exchange.request is not None
    assert spot.data is exchange.request.frame.payload
    assert spot.data[spot.start : spot.end] == b"orders"


def test_records_that_are_packed_are_searched_too() -> None:
    for exchange in read(CAPTURES / "basic-kafka43.pcapng"):
        for row in record_rows(exchange, OPTIONS):
            if row["codec"] not in (None, "none") and isinstance(row["value"], (bytes, str)) and row["value"]:
                value = row["value"] if isinstance(row["value"], bytes) else row["value"].encode()
                assert Pattern("0x" + value.hex()[:200], OPTIONS).matches(exchange)
                return
    raise AssertionError("there is no packed record in the capture")


def test_a_secret_cannot_be_searched_for(tmp_path: Path) -> None:
    secret = SECRET.encode()
    texts = [SECRET, secret.hex(" "), f"/{SECRET[:4]}.*/", b64encode(secret)[:-4].decode(), SECRET[:5]]
    exchanges = list(read(write_capture(tmp_path / "c.pcapng", *secret_talks())))
    for text in texts:
        assert [each.number for each in exchanges if Pattern(text, OPTIONS).matches(each)] == []
    shown = Options(embedded=True, show_secrets=True)
    assert any(Pattern(SECRET, shown).matches(each) for each in exchanges)
    assert any(Pattern(OPEN, OPTIONS).matches(each) for each in exchanges)


class Oracle:
    """Answers at once for the places it is given, a few at a time."""

    def __init__(self, hits: list[bool]) -> None:
        self.hits = np.array(hits, np.bool_)
        self.waiting: list[int] = []
        self.reason: str | None = None
        self.asked: list[int] = []

    def set_question(self, question: object) -> None:
        self.waiting = []

    forget = close = lambda self: None

    def add(self, places: Places) -> None:
        self.waiting += places.tolist()

    @property
    def progress(self) -> float | None:
        return 0.5 if self.waiting else None

    def poll(self) -> list[Answers]:
        now, self.waiting = self.waiting[:2], self.waiting[2:]
        self.asked += now
        places = np.array(now, np.uint32)
        return [Answers(places, self.hits[places])] if now else []


@given(st.lists(st.booleans(), min_size=1, max_size=12), st.data())
def test_from_match_to_match_in_any_order_and_direction(hits: list[bool], data: st.DataObject) -> None:
    index = index_with({"number": n} for n in range(1, len(hits) + 1))
    view = np.array(data.draw(st.permutations(range(len(hits)))), np.uint32)
    oracle = Oracle(hits)
    search = ListSearch(Pattern("x", OPTIONS), index, oracle, lambda: view)  # type: ignore[arg-type]
    row = data.draw(st.integers(0, len(hits) - 1))
    for step in data.draw(st.lists(st.sampled_from((1, -1)), max_size=6)):
        found = search.next(row, step)
        while found is None and search.is_going_on:
            search.poll()
            found = search.next(row, step)
        rows = range(row + 1, len(hits)) if step > 0 else range(row - 1, -1, -1)
        assert found == next((each for each in rows if hits[view[each]]), None)
        row = row if found is None else found
    assert len(oracle.asked) == len(set(oracle.asked)) or not all(hits)


@given(st.lists(st.booleans(), min_size=1, max_size=12), st.data())
def test_which_match_it_is_of_how_many(hits: list[bool], data: st.DataObject) -> None:
    index = index_with({"number": n} for n in range(1, len(hits) + 1))
    view = np.array(data.draw(st.permutations(range(len(hits)))), np.uint32)
    search = ListSearch(Pattern("x", OPTIONS), index, Oracle(hits), lambda: view)  # type: ignore[arg-type]
    row, most = data.draw(st.integers(0, len(hits) - 1)), data.draw(st.integers(0, len(hits)))
    assert (search.count(row) is None) == (row > 0), "nothing was asked yet"
    search.ask_others(most)
    while search.is_going_on:
        search.poll()
    has_it, has_it_not = search.answers()
    assert has_it.tolist() == [hits[place] and at < most for at, place in enumerate(view)]
    assert has_it_not.tolist() == [not hits[place] and at < most for at, place in enumerate(view)]
    found = search.count(row)
    assert (found is None) == (most < row)
    if found is not None:
        asked = [hits[place] for place in view[:most]]
        assert found.number == sum(asked[: row + 1])
        assert found.known == sum(asked)
        assert found.is_all == (most == len(hits))
        assert found.text.endswith(f" of {sum(asked)}{'' if found.is_all else '+'}")


def test_texts_of_the_list_are_found_without_asking() -> None:
    index = index_with([{"error": 1}, {"error": 2}, {"api": 3}], ["NOT_COORDINATOR", "x", "Fetch"])
    oracle = Oracle([False] * 3)
    view = np.arange(3, dtype=np.uint32)
    search = ListSearch(Pattern("coord", OPTIONS), index, oracle, lambda: view)  # type: ignore[arg-type]
    assert search.next(-1, 1) == 0
    assert oracle.asked == []


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


@pytest.mark.parametrize(
    ("text", "found"), [("key-3", 45), ("KEY-", 675), ("6b 65 79 2d 33", 45), ("/y-[45]$/", 90)]
)
def test_records_are_found_by_what_is_in_them(text: str, found: int) -> None:
    pattern = pickle.loads(pickle.dumps(RecordPattern(text, OPTIONS)))
    total = 0
    for exchange in read(CAPTURES / "basic-kafka43.pcapng"):
        rows = dict(addressed_rows(exchange, OPTIONS))
        here = list(pattern.addresses(exchange))
        assert pattern.matches(exchange) is bool(here)
        assert here == [at for at, row in rows.items() if _has(row, pattern)]
        total += len(here)
    assert total == found


def _has(row: dict[str, object], pattern: Pattern) -> bool:
    headers = row["headers"]
    assert isinstance(headers, tuple)
    parts = [row["key"], row["value"], *(each for header in headers for each in header)]
    texts = (each.decode("latin-1") if isinstance(each, bytes) else each for each in parts)
    return any(isinstance(each, str) and pattern.is_in(each) for each in texts)


def test_secrets_in_records_are_not_found(tmp_path: Path) -> None:
    exchanges = list(read(write_capture(tmp_path / "c.pcapng", *secret_talks())))
    assert not any(RecordPattern(SECRET, OPTIONS).matches(each) for each in exchanges)
