"""What is carried from batch to batch of a stream."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

import kdissect
from kdissect.limits import DEFAULTS
from kdissect.spark.replay import new_pass
from kdissect.spark.settings import TableSettings
from kdissect.spark.states import StateError, States
from kdissect.spark.stream_state import Carried, Drained


@pytest.fixture
def states(tmp_path: Path) -> States:
    made = States(str(tmp_path / "state"))
    made.prepare()
    return made


def only_file(tmp_path: Path) -> Path:
    (path,) = (tmp_path / "state").glob("*/*")
    return path


def test_a_batch_reads_what_batches_before_it_left(states: States) -> None:
    for batch in (0, 3, 4):
        states.save("one", batch, Carried(new_pass(TableSettings()), packets=batch))
    states.save("two", 1, Carried(new_pass(TableSettings()), packets=100))
    assert [c and c.packets for c in (states.load("one", n) for n in (0, 1, 3, 4, 5))] == [None, 0, 0, 3, 4]
    assert (states.points(), states.last_batch()) == (["one", "two"], 4)


def test_of_each_capture_point_the_latest_two_are_kept(states: States) -> None:
    for batch in range(5):
        states.save("one", batch, Carried(new_pass(TableSettings()), packets=batch))
    states.save("two", 0, Carried(new_pass(TableSettings()), packets=100))
    states.forget()
    kept = [states.load("one", batch) for batch in range(1, 6)]
    assert [carried and carried.packets for carried in kept] == [None, None, None, 3, 4]
    assert states.load("two", 9) is not None


def test_what_was_not_written_to_its_end_does_not_stay(
    states: States, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(os, "replace", lambda *_: None)
        states.save("one", 0, Carried(new_pass(TableSettings())))
    assert only_file(tmp_path).suffix != ".state"
    assert states.load("one", 1) is None
    states.save("one", 1, Carried(new_pass(TableSettings())))
    states.forget()
    assert only_file(tmp_path).parent.name == "1"
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["1"]


def test_a_damaged_state_is_not_loaded(states: States, tmp_path: Path) -> None:
    states.save("one", 0, Carried(new_pass(TableSettings())))
    path = only_file(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StateError, match="damaged"):
        states.load("one", 1)


@pytest.mark.parametrize(
    "data", [b"\x80\x05\x95", b"[]", b"{}", b'{"names": [1]}', b'{"names": [], "more": 1}']
)
def test_a_damaged_state_that_says_it_is_drained_is_not_loaded(
    states: States, tmp_path: Path, data: bytes
) -> None:
    states.save("one", 0, Carried(new_pass(TableSettings())))
    path = only_file(tmp_path)
    head = json.loads(path.read_bytes().partition(b"\n")[0])
    head |= {"drained": 1, "sha256": hashlib.sha256(data).hexdigest()}
    path.write_bytes(json.dumps(head).encode() + b"\n" + data)
    with pytest.raises(StateError, match="is damaged"):
        states.load("one", 1)


def test_the_state_of_another_version_is_not_loaded(states: States, monkeypatch: pytest.MonkeyPatch) -> None:
    states.save("one", 0, Carried(new_pass(TableSettings())))
    monkeypatch.setattr(kdissect, "__version__", "99.0")
    with pytest.raises(StateError, match=r"this is 99\.0"):
        states.load("one", 1)


def test_the_state_of_another_build_of_the_same_version_is_not_loaded(
    states: States, monkeypatch: pytest.MonkeyPatch
) -> None:
    states.save("one", 0, Carried(new_pass(TableSettings())))
    assert states.of_others(1) == []
    monkeypatch.setattr("kdissect.spark.states.build", lambda: "another")
    assert states.of_others(1) == ["one"]
    said = rf"another build of kdissect {kdissect.__version__}: to go on without it, give the same command"
    with pytest.raises(StateError, match=said):
        states.load("one", 1)


def test_a_damaged_state_of_another_build_is_not_to_be_drained(
    states: States, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states.save("one", 0, Carried(new_pass(TableSettings())))
    path = only_file(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    monkeypatch.setattr("kdissect.spark.states.build", lambda: "another")
    told = f"{path} is damaged, so no build can drain it. Begin new tables in another folder"
    assert states.what_to_do(["one"], 1) == told
    with pytest.raises(StateError, match="so no build can drain it"):
        states.load("one", 1)
    assert not States(states.folder, ends_others=True).can_end(["one"], 1)


@pytest.mark.parametrize("ending", [[], None, 1, [9, 10]])
def test_a_state_without_an_ending_of_this_form_cannot_be_ended(
    states: States, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: object
) -> None:
    states.save("one", 0, Carried(new_pass(TableSettings())))
    path = only_file(tmp_path)
    head, _, data = path.read_bytes().partition(b"\n")
    path.write_bytes(json.dumps({**json.loads(head), "ending": ending}).encode() + b"\n" + data)
    monkeypatch.setattr(kdissect, "__version__", "0.0.1")
    ending_states = States(str(tmp_path / "state"), ends_others=True)
    assert not ending_states.can_end(["one"], 1)
    assert ending_states.ending("one", 1, DEFAULTS) is None


@pytest.mark.parametrize("of", ["file", "folder"])
def test_what_others_may_write_to_is_not_loaded(states: States, tmp_path: Path, of: str) -> None:
    states.save("one", 0, Carried(new_pass(TableSettings())))
    path = only_file(tmp_path) if of == "file" else tmp_path / "state"
    os.chmod(path, 0o777)
    with pytest.raises(StateError, match="other users can write to"):
        states.load("one", 1)


def test_what_belongs_to_others_is_not_loaded(states: States, monkeypatch: pytest.MonkeyPatch) -> None:
    states.save("one", 0, Carried(new_pass(TableSettings())))
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(StateError, match="another user"):
        states.load("one", 1)


def test_what_is_no_state_is_told(states: States, tmp_path: Path) -> None:
    states.save("one", 0, Carried(new_pass(TableSettings())))
    for data in (b"\x80\x05something else\n", b"", b"[1]\n", b"7\n", b"{}\n"):
        only_file(tmp_path).write_bytes(data)
        with pytest.raises(StateError, match="is not the state"):
            states.load("one", 1)


def test_what_is_drained_any_release_reads(
    states: States, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried = Carried(new_pass(TableSettings()), 7, 99, {"a": 3}, {"a"}, {"a": 20}, {"a": 5})
    carried.reading.numbering.exchanges = 4
    carried.reading.names.learn("id", "name", 2)
    states.save("one", 1, carried)
    states.drain("one", 1, carried.drained())
    assert isinstance(states.load("one", 2), Carried)  # rows may not be there yet
    states.end_drain(1)
    assert states.is_drained(1)
    monkeypatch.setattr(kdissect, "__version__", "99.0")
    assert states.of_others(2) == []
    states.forget()
    found = states.load("one", 2)
    assert isinstance(found, Drained)
    again = found.begun(new_pass(TableSettings()))
    assert (again.packets, again.last_ns, again.final, again.bytes_read) == (7, 99, {"a"}, 20)
    assert again.reading.numbering.exchanges == 4
    assert again.reading.names.order == [("id", "name", 2)]
    states.save("one", 2, again)
    states.save("one", 3, again)
    states.forget()
    assert sorted(path.name for path in (tmp_path / "state").iterdir()) == ["2", "3"]


def test_a_drain_that_died_is_done_again(states: States) -> None:
    states.save("one", 1, Carried(new_pass(TableSettings())))
    states.drain("one", 1, Carried(new_pass(TableSettings()), packets=1).drained())
    assert states.is_draining(1)
    states.forget()
    assert not states.is_drained(1)
    assert not states.is_draining(1)
    for packets in (2, 3):  # it may also die behind its last step
        states.drain("one", 1, Carried(new_pass(TableSettings()), packets=packets).drained())
        states.end_drain(1)
    found = states.load("one", 2)
    assert found is not None
    assert found.packets == 3
