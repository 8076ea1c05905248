"""Lines that are written straight from bytes are those of the values."""

from __future__ import annotations

from inspect import isfunction
from io import BytesIO
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kdissect.dissect import Dissector
from kdissect.exchange import Exchange
from kdissect.present import exchange_text
from kdissect.present.columns import EXCHANGES
from kdissect.present.exchange_text import ExchangeLines
from kdissect.present.message_text import SecretJudge
from kdissect.present.options import BYTES_FORMS, Options
from kdissect.present.tables import row_line
from kdissect.present.writers import table_writer
from kdissect.protocol import apis
from kdissect.protocol.schema import Field, Struct, message_struct
from kdissect.session.briefs import Brief, Interest
from tests.amount import fewer_again, some
from tests.damaged import packets_of
from tests.dissecting import dissect
from tests.kafka import Talk, request, response
from tests.lab import LAB
from tests.present.captures import SECRET, secret_talks, write_capture

CAPTURES = sorted((Path(__file__).resolve().parents[2] / "captures").glob("*.pcap*"))
OPTIONS = [
    Options(),
    Options(embedded=True),
    Options(show_secrets=True, records=True),
    *(Options(records=True, bytes_form=form) for form in BYTES_FORMS),
]
SEEDS = fewer_again((None, 1, 2), 2, None)
"""Of damages; the first is none."""


def exchanges(path: Path, seed: int | None = None) -> list[Exchange]:
    """Of a capture; with a seed, some of its bytes are changed."""
    return [event for event in dissect(packets_of(path, seed)) if isinstance(event, Exchange)]


@pytest.mark.parametrize(("path", "options"), some(product(CAPTURES, OPTIONS), 20))
def test_lines(path: Path, options: Options) -> None:
    for seed in SEEDS:
        out = BytesIO()
        writer = ExchangeLines(out, options)
        for each in exchanges(path, seed):
            writer.write(each)
        writer.close()
        assert out.getvalue() == b"".join(
            row_line(EXCHANGES, each, options) for each in exchanges(path, seed)
        )


@pytest.mark.parametrize(("path", "options"), some(product(CAPTURES, OPTIONS[2:]), 16))
def test_lines_of_exchanges_in_brief(path: Path, options: Options) -> None:
    for seed in SEEDS:
        out = BytesIO()
        writer = ExchangeLines(out, options)
        dissector = Dissector(briefs=Interest(records=False))
        for events in (*dissector.feed_all(packets_of(path, seed)), dissector.close()):
            for each in events:
                if isinstance(each, Exchange | Brief):
                    writer.write(each)
        lines = out.getvalue().splitlines(keepends=True)
        expected = [row_line(EXCHANGES, each, options) for each in exchanges(path, seed)]
        assert sorted(lines) == sorted(expected)


def test_rows_before_one_that_cannot_be_made_are_written() -> None:
    first, second = exchanges(CAPTURES[0])[:2]
    out = BytesIO()
    with pytest.raises((AttributeError, TypeError)):
        ExchangeLines(out, Options()).write_all([first, second, object()])  # type: ignore[list-item]
    assert out.getvalue() == b"".join(row_line(EXCHANGES, each, Options()) for each in (first, second))


@pytest.mark.skipif(not isfunction(ExchangeLines.write), reason="compiled: its inside cannot be watched")
def test_nearly_all_exchanges_in_brief_are_written_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    for path in CAPTURES:
        dissector = Dissector(briefs=Interest(records=False))
        for events in (*dissector.feed_all(packets_of(path)), dissector.close()):
            found += [each for each in events if isinstance(each, Brief)]
    whole: list[Exchange] = []
    line = ExchangeLines._line

    def made_whole(self: ExchangeLines, exchange: Exchange) -> bool:
        whole.append(exchange)
        return line(self, exchange)

    monkeypatch.setattr(ExchangeLines, "_line", made_whole)
    writer = ExchangeLines(BytesIO(), Options(records=True))
    for each in found:
        writer.write(each)
    assert found
    logins = ("SaslHandshake", "SaslAuthenticate")  # they may hold secrets
    assert len([each for each in whole if each.api not in logins]) < 0.02 * len(found)


def test_all_lines_but_of_what_is_wrong_are_written_from_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    over_values = []

    def side_object(exchange: Exchange, side: str, options: Options) -> None:
        over_values.append(exchange)

    for module in ("columns.body", "message_json"):
        monkeypatch.setattr(f"kdissect.present.{module}.side_object", side_object)
    found = [each for path in CAPTURES for each in exchanges(path)]
    for options in (Options(), Options(records=True), Options(show_secrets=True)):
        writer = ExchangeLines(BytesIO(), options)
        for each in found:
            writer.write(each)
        assert all(each.faults or each.missing or not each.api_version for each in over_values)
    assert len({id(each) for each in over_values}) < 0.01 * len(found)


@pytest.mark.skipif(not isfunction(ExchangeLines.write), reason="compiled: its inside cannot be watched")
@pytest.mark.parametrize(
    ("case", "api"), [("librdkafka-api-0.10", "ApiVersions"), ("java43-admin", "DescribeConfigs")]
)
def test_known_tails_and_marked_secrets_need_no_values(
    case: str, api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    over_values = []

    def made_of_values(table: Any, source: Exchange, options: Options) -> bytes:
        over_values.append(source)
        return row_line(table, source, options)

    monkeypatch.setattr(exchange_text, "row_line", made_of_values)
    monkeypatch.setattr(SecretJudge, "begin", lambda _, exchange, *rest: over_values.append(exchange))
    path = next(iter(sorted((LAB / case).glob("capture.pcap*"))))
    found = [each for each in exchanges(path) if each.api == api]
    assert found
    assert any(message.decoded().quirk for each in found for message in each.messages) == (
        api == "ApiVersions"
    )
    out = BytesIO()
    ExchangeLines(out, Options()).write_all(found)
    assert not over_values
    assert out.getvalue() == b"".join(row_line(EXCHANGES, each, Options()) for each in found)


@pytest.mark.parametrize("seed", fewer_again(range(20), 8))
@pytest.mark.parametrize(
    ("api", "version"), [*(("DescribeConfigs", each) for each in range(5)), ("CreateTopics", 7)]
)
def test_lines_of_marked_secrets_in_damaged_answers(
    api: str, version: int, seed: int, tmp_path: Path
) -> None:
    random = Random(f"{api} {version} {seed}")
    key = apis.api_key(api)
    talk = Talk()
    for number in range(1, 6):
        asked, answered = (message_struct(key, version, kind) for kind in ("request", "response"))
        data = bytearray(response(api, version, number, **_made(answered, random)))
        for _ in range(random.randrange(3)):
            data[random.randrange(4, len(data))] = random.choice((0, 1, 2, 0x7F, 0xFF))
        if random.random() < 0.2:
            del data[random.randrange(4, len(data)) :]
        talk.ask(request(api, version, number, **_made(asked, random))).answer(bytes(data))
    path = write_capture(tmp_path / "marked.pcapng", talk)
    for options in (Options(), Options(show_secrets=True)):
        out = BytesIO()
        found = exchanges(path)
        assert len(found) == 5
        ExchangeLines(out, options).write_all(found)
        assert out.getvalue() == b"".join(row_line(EXCHANGES, each, options) for each in found)


def _made(struct: Struct, random: Random) -> dict[str, Any]:
    """Values of a struct, in Kafka's JSON form."""
    return {field.name: _value(field, random) for field in struct.fields}


def _value(field: Field, random: Random) -> Any:
    if field.is_array:
        one = field._replace(type=field.type.removeprefix("[]"), nullable=False)
        return [_value(one, random) for _ in range(random.randrange(4))]
    if field.struct is not None:
        return _made(field.struct, random)
    if field.type == "string":
        texts = (SECRET, "retention.ms", "", *([None] if field.nullable else []))
        return random.choice(texts)
    if field.type == "uuid":
        return "AAAAAAAAAAAAAAAAAAAAAA"
    return random.random() < 0.5 if field.type == "bool" else random.choice((-1, 0, 1, 4))


@pytest.mark.parametrize("options", OPTIONS, ids=lambda each: str(each[:4]))
def test_lines_of_messages_with_secrets(tmp_path: Path, options: Options) -> None:
    path = write_capture(tmp_path / "secrets.pcapng", *secret_talks())
    out = BytesIO()
    writer = ExchangeLines(out, options)
    for each in exchanges(path):
        writer.write(each)
    assert out.getvalue() == b"".join(row_line(EXCHANGES, each, options) for each in exchanges(path))
    assert (SECRET.encode() in out.getvalue()) == options.show_secrets


def test_the_table_of_all_columns_is_written_so() -> None:
    assert isinstance(table_writer("ndjson", EXCHANGES, BytesIO()), ExchangeLines)
    some = EXCHANGES.select(["number"])
    assert not isinstance(table_writer("ndjson", some, BytesIO()), ExchangeLines)
