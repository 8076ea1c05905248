"""What is told of files that cannot be read while others write them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from kdissect.capture.following import FollowedFiles
from kdissect.cli.reading import Reading
from kdissect.live.journal import Begun, JournalWriter
from kdissect.live.spooled import Spooled
from kdissect.present.options import Options
from tests.capture.test_following import capture_of


def test_what_a_spool_gave_up_is_told_and_the_rest_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = JournalWriter(str(tmp_path))
    for number in (1, 2, 3):
        path = tmp_path / f"spool_{number}"
        journal.append(Begun(str(path), number - 1))
        if number != 2:
            path.write_bytes(capture_of(number))
    journal.close()
    with closing(Reading((), Options(), opener=lambda: Spooled(str(tmp_path)))) as reading:
        list(reading)
    assert (reading.packets, reading.is_damaged) == (2, True)
    error = capsys.readouterr().err
    assert (error.count("\n"), error.count("spool_2")) == (1, 1), error


def test_a_followed_file_is_named_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "growing"
    path.write_bytes(capture_of(1, 2)[:-3])
    following = FollowedFiles((str(path),))
    with closing(Reading((str(path),), Options(), opener=lambda: following)) as reading:
        following.stop()
        list(reading)
    error = capsys.readouterr().err
    assert (error.count("\n"), error.count(str(path))) == (1, 1), error
