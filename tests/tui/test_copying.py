from __future__ import annotations

from base64 import b64decode, b64encode
from pathlib import Path

from kdissect import read
from kdissect.model import Node
from kdissect.present.branch import Branch, Place
from kdissect.present.options import Options
from kdissect.tui.copying import FORMS, copied, value_of
from kdissect.tui.detail import Detail, Spot
from tests.cli.run import CAPTURES
from tests.present.captures import SECRET, secret_talks, write_capture

OPTIONS = Options(embedded=True)


def lines(detail: Detail) -> list[list[Spot]]:
    """Every line, after those around it."""
    out, waiting = [], [[spot] for spot in detail.spots]
    while waiting:
        spots = waiting.pop()
        out.append(spots)
        waiting += [[*spots, below] for below in detail.open(spots[-1])]
    return out


def test_a_path_is_that_of_the_schema() -> None:
    exchanges = [each for each in read(CAPTURES / "errors.pcapng") if each.api == "CreateTopics"]
    detail = Detail(exchanges[0], OPTIONS)
    paths = [copied("path", detail, spots, OPTIONS) for spots in lines(detail)]
    assert "createtopics.request.topics[0].name" in paths
    assert "createtopics.response.header.correlationId" in paths


def test_values_are_copied_whole() -> None:
    for value in (b"\xff" * 1000, b"plain" * 100):
        node = Node("memberMetadata", "bytes", value, 0, len(value))
        spot = Spot("memberMetadata: …", "bytes", value, 0, len(value), Branch(node, value, Place(), OPTIONS))
        text = value_of(spot)
        assert (text.encode() if value.isascii() else b64decode(text)) == value


def test_no_secret_is_copied(tmp_path: Path) -> None:
    secret = SECRET.encode()
    coded = [SECRET, b64encode(secret)[:-4].decode(), secret.hex()]
    for exchange in read(write_capture(tmp_path / "c.pcapng", *secret_talks())):
        detail = Detail(exchange, OPTIONS)
        for spots in lines(detail):
            for form in FORMS:
                text = copied(form, detail, spots, OPTIONS, ["x.pcapng"]) or ""
                assert [each for each in coded if each in text] == [], (form, spots[-1].text)
