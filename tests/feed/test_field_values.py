"""The texts of columns that show fields of messages."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from kdissect import read
from kdissect.exchange import Exchange
from kdissect.feed import field_values as module
from kdissect.feed import frame_time
from kdissect.feed.field_values import FieldValues, text_of, values_of
from kdissect.feed.frame_time import FrameTime
from kdissect.filter.field import FilterField
from kdissect.filter.resolve import field_named
from kdissect.names import TopicNames
from kdissect.payload.decoder import PayloadDecoder
from kdissect.payload.schemas import AskedRegistry
from kdissect.present.options import Options
from kdissect.present.sanitise import CUT, LONGEST
from kdissect.present.secret_names import REDACTED
from tests.cli.run import CAPTURES
from tests.present.captures import SECRET, secret_talks, write_capture

BASIC = CAPTURES / "basic-kafka43.pcapng"
OFFSET = "produce.response.responses.partitionResponses.baseOffset"


class Given:
    """Exchanges of a capture by their place, and how often one was read."""

    def __init__(self, path: Path = BASIC) -> None:
        self.exchanges = sorted(read(path), key=lambda each: each.number)
        self.reads = 0

    def exchange(self, place: int) -> Exchange:
        self.reads += 1
        return self.exchanges[place]

    def values(self, *names: str, options: Options | None = None) -> FieldValues:
        values = FieldValues(self.exchange, options or Options(), FrameTime())
        values.choose([field_named(name) for name in names])
        return values


def a_field(name: str, *values: object) -> FilterField:
    """A field that has these values in every exchange."""
    return field_named(name)._replace(read=lambda _: list(values), many=True)


@pytest.fixture(autouse=True)
def _unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_time, "SPENT_SECONDS", 3_600)


def test_a_row_has_the_values_of_its_exchange() -> None:
    given = Given()
    values = given.values("produce.request.acks", OFFSET, "api")
    for place, exchange in enumerate(given.exchanges):
        found = values.texts(place)
        assert found is not None
        assert found[2] == exchange.api
        assert bool(found[0]) == (exchange.api == "Produce")
        assert found[1] == ",".join(map(str, values_of(field_named(OFFSET), exchange, Options())))


def test_an_exchange_is_read_once_for_all_its_columns() -> None:
    given = Given()
    values = given.values("produce.request.acks", OFFSET)
    for _ in range(3):
        for place in range(len(given.exchanges)):
            values.texts(place)
    assert given.reads == len(given.exchanges)


def test_only_some_rows_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 2)
    given = Given()
    values = given.values("api")
    for place in (0, 1, 2, 2, 1, 0):
        values.texts(place)
    assert given.reads == 4  # the first was forgotten


def test_a_row_waits_when_the_time_of_the_frame_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Given()
    values = given.values("api")
    monkeypatch.setattr(frame_time, "SPENT_SECONDS", -1)
    assert values.texts(0) is None
    assert given.reads == 0
    monkeypatch.setattr(frame_time, "SPENT_SECONDS", 3_600)
    assert values.texts(0) is not None


def test_an_exchange_that_cannot_be_read_says_so_by_an_ellipsis() -> None:
    values = FieldValues(lambda _: None, Options(), FrameTime())
    values.choose([field_named("api"), field_named("acks")])
    assert values.texts(7) == ("…", "…")


def test_one_that_could_not_be_read_is_tried_again() -> None:
    given, fails = Given(), [OSError("no"), OSError("no")]

    def exchange(place: int) -> Exchange:
        if fails:
            raise fails.pop()
        return given.exchange(place)

    values = FieldValues(exchange, Options(), FrameTime())
    values.choose([field_named("api")])
    assert [values.texts(0) for _ in range(3)] == [(CUT,), (CUT,), (given.exchanges[0].api,)]


def test_texts_are_made_anew_when_the_name_of_a_topic_becomes_known(monkeypatch: pytest.MonkeyPatch) -> None:
    exchanges = sorted(read(BASIC), key=lambda each: each.number)
    place = next(at for at, each in enumerate(exchanges) if each.api in ("Produce", "Fetch") and each.topics)
    exchange, names = exchanges[place], TopicNames()
    topic, known = exchange.topics[0], exchange.topic_names
    exchange.topic_names = names.up_to(0)
    told: list[int] = []

    def exchange_at(_: int) -> Exchange:
        (again,) = (each for each in read(BASIC) if each.number == exchange.number)
        again.topic_names = known if told else names.up_to(0)
        return again

    values = FieldValues(exchange_at, Options(), FrameTime(), lambda: len(told))
    values.choose([field_named("topic")])
    before = values.texts(place)
    assert before is not None
    assert topic not in before[0]
    told.append(1)
    monkeypatch.setattr(frame_time, "SPENT_SECONDS", -1)
    assert values.texts(place) == before  # which stays until there is time
    monkeypatch.setattr(frame_time, "SPENT_SECONDS", 3_600)
    assert topic in (values.texts(place) or ("",))[0]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("acks", -1, "-1"),
        ("latency", 1_500_000, "1.50 ms"),
        ("produce.response.responses.partitionResponses.errorCode", 3, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("record.timestamp", 0, "1970-01-01T00:00:00.000000Z"),
        ("record.timestamp", -1, "-1"),
        ("metadata.request.allowAutoTopicCreation", True, "true"),
        ("record.key", b"a\x1b", "61 1b"),
        ("groupId", "a\x1b[31m\u202e", "a\\x1b[31m\\u202e"),
        ("record.value", REDACTED.encode(), REDACTED),
    ],
)
def test_a_value_is_written_as_its_field_means_it(name: str, value: object, text: str) -> None:
    assert text_of(field_named(name), value) == text


def test_several_values_stand_with_commas_and_many_are_cut() -> None:
    values = FieldValues(lambda _: Given().exchanges[0], Options(), FrameTime())
    values.choose(
        [a_field("partition", 0, 1, 2), a_field("partition", *range(100)), a_field("groupId", "g" * 999)]
    )
    few, many, long = values.texts(0) or ()
    assert few == "0,1,2"
    assert many.endswith(f",31,{CUT}")
    assert long == "g" * LONGEST + CUT


def test_records_of_a_large_message_are_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Given()
    place = next(
        at for at, each in enumerate(given.exchanges) if values_of(field_named("record.key"), each, Options())
    )
    assert given.values("record.key").texts(place) != ("",)
    monkeypatch.setattr(module, "MOST_RECORD_BYTES", 1)
    assert given.values("record.key").texts(place) == ("",)


def test_secrets_are_redacted(tmp_path: Path) -> None:
    given = Given(write_capture(tmp_path / "c.pcapng", *secret_talks()))
    names = ("saslAuthenticate.request.authBytes", "configs.value", "record.value", "record.key")
    texts = [text for at in range(len(given.exchanges)) for text in given.values(*names).texts(at) or ()]
    assert any(REDACTED in text for text in texts)
    assert not any(SECRET in text for text in texts)
    shown = given.values(*names, options=Options(show_secrets=True))
    assert any(SECRET in text for at in range(len(given.exchanges)) for text in shown.texts(at) or ())


def test_no_row_waits_for_a_schema_registry() -> None:
    decoder = PayloadDecoder()
    assert Given().values("api", options=Options(payloads=decoder)).options.payloads is decoder
    decoder.schemas.registry = cast(AskedRegistry, object())
    assert Given().values("api", options=Options(payloads=decoder)).options.payloads is None
