from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from kdissect.feed.batches import Ended, FeedBatch
from kdissect.feed.decoder import Decoder
from kdissect.feed.piped import NAME, Piped, _kept
from tests.cli.run import CAPTURES
from tests.feed.feeds import source_of

CAPTURE = CAPTURES / "errors.pcapng"


def rows_until(decoder: Decoder, least: int, seconds: float = 30) -> tuple[int, list[Ended]]:
    """Poll until so many bytes of rows came, or the decoder ended."""
    end = time.monotonic() + seconds
    rows = 0
    ended: list[Ended] = []
    while rows < least and not ended:
        assert time.monotonic() < end
        for message in decoder.poll():
            if isinstance(message, FeedBatch):
                rows += len(message.rows)
            else:
                ended.append(message)
        time.sleep(0.02)
    return rows, ended


def test_what_comes_is_decoded_before_more_comes_and_kept() -> None:
    reader, writer = os.pipe()
    piped = Piped(reader)
    decoder = Decoder(source_of(piped.pipe, is_live=True))
    data = CAPTURE.read_bytes()
    try:
        os.write(writer, data[: len(data) // 2])
        rows, ended = rows_until(decoder, 1)
        assert rows
        assert not ended
        os.write(writer, data[len(data) // 2 :])
        os.close(writer)
        _, ended = rows_until(decoder, 1 << 40)
        assert [each.reason for each in ended] == [None]
        assert Path(piped.kept).read_bytes() == data
        assert os.path.basename(piped.kept) == os.path.basename(piped.pipe) == NAME
    finally:
        decoder.close()
        piped.close()
        os.close(reader)
    assert not os.path.exists(piped.kept)


def test_where_the_disk_is_full_what_comes_is_still_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdissect.feed.piped._kept", lambda descriptor, data: False)
    reader, writer = os.pipe()
    piped = Piped(reader)
    decoder = Decoder(source_of(piped.pipe, is_live=True))
    try:
        os.write(writer, CAPTURE.read_bytes())
        os.close(writer)
        rows, ended = rows_until(decoder, 1 << 40)
        assert rows
        assert [each.reason for each in ended] == [None]
    finally:
        decoder.close()
        piped.close()
        os.close(reader)


def test_a_file_that_cannot_be_written_is_told() -> None:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    assert not _kept(descriptor, b"packet")
    os.close(descriptor)
