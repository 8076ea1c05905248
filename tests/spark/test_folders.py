"""Folders of small files, here and elsewhere, and the states in them."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from pathlib import Path

import pytest
from pyarrow import fs

from kdissect.spark import folders
from kdissect.spark.folders import LocalFiles, SmallFiles, small_files
from kdissect.spark.replay import new_pass
from kdissect.spark.settings import TableSettings
from kdissect.spark.states import OtherBuildError, StateError, States, state_key
from kdissect.spark.stream_state import Carried, Drained

KEY = b"k" * 32


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder that only ``pyarrow.fs`` reaches."""

    def file_system(uri: str) -> tuple[fs.FileSystem, str]:
        return fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), uri.removeprefix("s3://")

    monkeypatch.setattr(folders, "file_system", file_system)
    return "s3://bucket/state"


@pytest.fixture(params=["here", "elsewhere"])
def files(request: pytest.FixtureRequest, tmp_path: Path, elsewhere: str) -> SmallFiles:
    made = small_files(str(tmp_path / "bucket" / "state") if request.param == "here" else elsewhere)
    assert isinstance(made, LocalFiles) is (request.param == "here")
    made.prepare()
    return made


def test_what_is_written_is_read(files: SmallFiles) -> None:
    assert files.names() == []
    files.write("7/a", b"first\nsecond")
    files.write("7/more/b", b"x" * 10_000)
    files.write("7/a", b"another\nline")
    assert sorted(files.names()) == ["7/a", "7/more/b"]
    assert (files.read("7/a"), files.first_line("7/a").strip()) == (b"another\nline", b"another")
    assert files.first_line("7/more/b") == b"x" * 10_000
    with pytest.raises(FileNotFoundError):
        files.read("8/a")


def test_folders_move_and_go(files: SmallFiles) -> None:
    files.write("7/half/a", b"1")
    files.write("7/whole/a", b"0")
    files.move("7/half", "7/whole")
    assert (files.names(), files.read("7/whole/a")) == (["7/whole/a"], b"1")
    files.write("8/a", b"2")
    for _ in range(2):
        files.remove("7/whole/a")
        files.tidy()
    assert files.names() == ["8/a"]
    files.remove("8")
    assert files.names() == []


def test_folders_without_a_file_go(files: SmallFiles, tmp_path: Path) -> None:
    files.write("7/drained/a", b"1")
    files.write("8/a", b"1")
    files.remove("7/drained/a")
    files.tidy()
    assert [each.name for each in (tmp_path / "bucket" / "state").iterdir()] == ["8"]


def states(folder: str, key: bytes | None = KEY) -> States:
    made = States(folder, key)
    made.prepare()
    return made


def test_states_elsewhere_go_on(elsewhere: str) -> None:
    kept = states(elsewhere)
    for batch in range(4):
        kept.save("one", batch, Carried(new_pass(TableSettings()), packets=batch))
    kept.forget()
    found = [kept.load("one", batch) for batch in range(5)]
    assert [each and each.packets for each in found] == [None, None, None, 2, 3]
    assert (kept.points(), kept.last_batch()) == (["one"], 3)


def test_a_drain_elsewhere_counts_when_all_of_it_is_there(elsewhere: str, tmp_path: Path) -> None:
    """An object store has no folders: files get their new names one by one."""
    kept = states(elsewhere)
    for point in ("one", "two"):
        kept.save(point, 3, Carried(new_pass(TableSettings()), packets=5))
        kept.drain(point, 3, Carried(new_pass(TableSettings()), packets=5).drained())
    folder = tmp_path / "bucket" / "state" / "3"
    (folder / "drained").mkdir()
    half = sorted((folder / "draining").iterdir())[0]
    os.rename(half, folder / "drained" / half.name)
    assert kept.is_draining(3)
    assert all(isinstance(kept.load(point, 4), Carried) for point in ("one", "two"))
    kept.end_drain(3)
    assert not kept.is_draining(3)
    assert all(isinstance(kept.load(point, 4), Drained) for point in ("one", "two"))


def test_a_state_that_another_key_signed_is_not_loaded(elsewhere: str, tmp_path: Path) -> None:
    states(elsewhere).save("one", 0, Carried(new_pass(TableSettings())))
    assert states(elsewhere).load("one", 1) is not None
    with pytest.raises(StateError, match="was not signed with this key"):
        states(elsewhere, b"another key" * 3).load("one", 1)
    (path,) = (tmp_path / "bucket" / "state").rglob("*.state")
    head, _, data = path.read_bytes().partition(b"\n")
    for change in ({"signed": None}, {"point": "two"}, {"sha256": "0" * 64}, {"drained": 1}, {"bytes": 7}):
        path.write_bytes(json.dumps({**json.loads(head), **change}).encode() + b"\n" + data)
        with pytest.raises(StateError, match=r"not signed|damaged"):
            states(elsewhere).load("one", 1)


def test_a_signed_state_is_not_loaded_as_that_of_another_batch(elsewhere: str, tmp_path: Path) -> None:
    kept, folder = states(elsewhere), tmp_path / "bucket" / "state"
    for batch in (0, 1):
        kept.save("one", batch, Carried(new_pass(TableSettings()), packets=batch))
    (old,), (new,) = ((folder / str(batch)).glob("*.state") for batch in (0, 1))
    new.write_bytes(old.read_bytes())
    with pytest.raises(StateError, match=r"/1/.* was not signed with this key"):
        kept.load("one", 2)


def test_a_drained_state_that_nobody_signed_is_not_loaded(elsewhere: str, tmp_path: Path) -> None:
    """Loading it runs no code. But its numbers, and how far files were read, would be a stranger's."""
    kept = states(elsewhere)
    kept.drain("one", 0, Carried(new_pass(TableSettings()), packets=5).drained())
    kept.end_drain(0)
    assert isinstance(kept.load("one", 1), Drained)
    (path,) = (tmp_path / "bucket" / "state").rglob("*.state")
    head, _, data = path.read_bytes().partition(b"\n")
    data = data.replace(b'"packets": 5', b'"packets": 6')
    forged = {**json.loads(head), "sha256": hashlib.sha256(data).hexdigest()}
    path.write_bytes(json.dumps(forged).encode() + b"\n" + data)
    with pytest.raises(StateError, match="was not signed with this key"):
        kept.load("one", 1)


def test_a_signed_state_is_not_loaded_as_that_of_another_point(elsewhere: str, tmp_path: Path) -> None:
    kept, folder = states(elsewhere), tmp_path / "bucket" / "state" / "0"
    kept.save("one", 0, Carried(new_pass(TableSettings())))
    (one,) = folder.glob("*.state")
    kept.save("two", 0, Carried(new_pass(TableSettings())))
    (two,) = set(folder.glob("*.state")) - {one}
    two.write_bytes(one.read_bytes())
    assert kept.load("one", 1) is not None
    with pytest.raises(StateError, match="is damaged: it is the state of another capture point"):
        kept.load("two", 1)


@pytest.mark.parametrize("is_drained", [True, False])
def test_what_was_signed_before_format_7_counts_as_it_was_signed(
    elsewhere: str, tmp_path: Path, is_drained: bool
) -> None:
    kept = states(elsewhere)
    carried = Carried(new_pass(TableSettings()), packets=5)
    carried.reads([["one", "a.pcap", 9, True, 1, False, False]], ["a.pcap"], False)
    if is_drained:
        kept.drain("one", 0, carried.drained())
        kept.end_drain(0)
    else:
        kept.save("one", 0, carried)
    (path,) = (tmp_path / "bucket" / "state").rglob("*.state")
    line, _, data = path.read_bytes().partition(b"\n")
    head = {**json.loads(line), "format": 6}
    del head["has_secrets"]
    told = [head[name] for name in ("format", "kdissect", "build", "point", "sha256", "trail")]
    head["signed"] = hmac.digest(KEY, json.dumps(told).encode(), "sha256").hex()
    path.write_bytes(json.dumps(head).encode() + b"\n" + data)
    if is_drained:
        with pytest.raises(StateError, match="says that it is drained; its old form does not sign that"):
            kept.load("one", 1)
    else:
        with pytest.raises(OtherBuildError) as raised:
            kept.load("one", 1)
        assert (raised.value.trail, raised.value.has_secrets) == (carried.trail, None)
        for said in (True, False):  # nobody signed it
            path.write_bytes(json.dumps({**head, "has_secrets": said}).encode() + b"\n" + data)
            with pytest.raises(OtherBuildError) as raised:
                kept.load("one", 1)
            assert raised.value.has_secrets is None
        path.write_bytes(json.dumps({**head, "drained": 1}).encode() + b"\n" + data)
        with pytest.raises(StateError, match="says that it is drained; its old form does not sign that"):
            kept.load("one", 1)
    path.write_bytes(json.dumps({**head, "format": 7}).encode() + b"\n" + data)
    with pytest.raises(StateError, match="was not signed with this key"):
        kept.load("one", 1)


def test_the_key_is_made_once_and_is_nobody_elses(tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    key = state_key(None, environment)
    assert len(key) == 64
    assert state_key(None, environment) == key
    (path,) = (tmp_path / "kdissect").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert state_key(str(path)) == key
    path.chmod(0o644)
    with pytest.raises(StateError, match="others can read it"):
        state_key(str(path))
    path.chmod(0o600)
    path.write_bytes(b"short")
    with pytest.raises(StateError, match="32 bytes or more"):
        state_key(str(path))
    with pytest.raises(StateError, match="cannot be read"):
        state_key(str(tmp_path / "nowhere"))
