from __future__ import annotations

import re
from pathlib import Path

import pytest

from kdissect import Exchange, read
from kdissect.message import Message
from kdissect.present.hexdump import hexdump
from kdissect.present.options import Options
from kdissect.present.tree import exchange_tree, message_tree
from tests.cli.run import CAPTURES

CASES = sorted(CAPTURES.glob("*.pcap*"))

SHOWN = Options(show_secrets=True)
_RANGE = re.compile(r"\[(\d+):(\d+)\]$")
_DUMP = re.compile(r"^ *([0-9a-f]{8})  ((?:[0-9a-f]{2} ){1,16}) *\|")


def messages(path: Path) -> list[Message]:
    return [message for exchange in read(path) for message in exchange.messages]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
@pytest.mark.parametrize("embedded", [False, True])
def test_the_bytes_below_the_values_are_the_message(path: Path, embedded: bool) -> None:
    for message in messages(path)[:60]:
        lines = list(message_tree(message, SHOWN._replace(embedded=embedded), dump=True))
        if any("unpacked: " in line for line in lines):
            continue  # ranges there count in other bytes
        dumped = {}
        for line in lines:
            if found := _DUMP.match(line):
                data = bytes.fromhex(found[2])
                dumped.update({int(found[1], 16) + at: byte for at, byte in enumerate(data)})
        assert bytes(dumped[at] for at in sorted(dumped)) == message.frame.payload
        assert sorted(dumped) == list(range(len(message.frame.payload)))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_ranges_never_leave_what_they_count_in(path: Path) -> None:
    for exchange in list(read(path))[:60]:
        for line in exchange_tree(exchange, SHOWN):
            if found := _RANGE.search(line):
                assert int(found[1]) <= int(found[2])


def test_records_show_what_was_unpacked() -> None:
    exchanges = [each for each in read(CAPTURES / "basic-kafka43.pcapng") if each.api == "Produce"]
    text = ["\n".join(exchange_tree(each)) for each in exchanges]
    assert any("unpacked: " in tree for tree in text)
    assert any('key: "key-' in tree for tree in text)


def test_error_codes_and_apis_have_their_names() -> None:
    failed: Exchange = next(each for each in read(CAPTURES / "errors.pcapng") if each.error)
    text = "\n".join(exchange_tree(failed))
    assert f"({failed.error})" in text
    assert f"requestApiKey: {failed.api_key} ({failed.api})" in text


def test_hex_dumps() -> None:
    assert list(hexdump(bytes(range(0x41, 0x53)), 0x10, "  ")) == [
        "  00000010  41 42 43 44 45 46 47 48 49 4a 4b 4c 4d 4e 4f 50  |ABCDEFGHIJKLMNOP|",
        "  00000020  51 52                                            |QR|",
    ]
    assert list(hexdump(b"\x00secret", masked=True)) == [
        "00000000  ** ** ** ** ** ** **                             |*******|"
    ]
