"""Folders that cannot be listed: what is in them is not left out in silence."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import pytest

from kdissect.cli import main
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS
from kdissect.model import CaptureError, Fault
from kdissect.spark import nightly, runs, spool, storage
from kdissect.spark.micro_batch import why_lost
from kdissect.spark.nightly import Inputs, NightlyOptions, add_new
from kdissect.spark.plan import capture_points
from kdissect.spark.settings import TableSettings
from kdissect.spark.spool import Position, SpoolFolder, spans_between
from kdissect.spark.storage import files_below, folders_in, list_files, open_file
from kdissect.spark.tailing import SpanReading
from tests.spark.same import CAPTURES
from tests.spark.simulated import Nightly

WHY = "the files in it cannot be listed (Permission denied)"


@pytest.fixture
def lock(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    return lock_in(monkeypatch)


def lock_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """What makes a folder one that cannot be listed, for root too. What is in it cannot be looked at."""
    locked: set[str] = set()
    usual, usual_stat = os.scandir, os.stat

    def scandir(path: Any = ".") -> Any:
        if os.fspath(path).rstrip("/") in locked:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return usual(path)

    def refusing_stat(path: Any, **given: Any) -> os.stat_result:
        if not isinstance(path, int) and os.path.dirname(os.fspath(path)) in locked:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return usual_stat(path, **given)

    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setattr(os, "stat", refusing_stat)
    return lambda folder: locked.add(str(folder))


@pytest.fixture
def bar(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """What makes a folder one whose names may be read, and nothing else (``chmod a-x``), for root too."""
    barred: set[str] = set()
    usual = os.stat

    def refusing_stat(path: Any, **given: Any) -> os.stat_result:
        if not isinstance(path, int) and os.path.dirname(os.fspath(path)) in barred:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return usual(path, **given)

    monkeypatch.setattr(os, "stat", refusing_stat)
    return lambda folder: barred.add(str(folder))


@pytest.fixture
def places(tmp_path: Path) -> list[Path]:
    """Two folders with a capture each."""
    out = [tmp_path / "in" / name for name in ("a", "b")]
    for place in out:
        place.mkdir(parents=True)
        shutil.copy(CAPTURES / "broker-0.9.pcap", place / f"{place.name}.pcap")
    return out


def paths(*patterns: object) -> list[str]:
    return [file.path for file in list_files(list(map(str, patterns)))]


def test_a_folder_or_a_glob_names_the_folder_itself(places: list[Path], lock: Callable[[Path], None]) -> None:
    first, second = places
    lock(second)
    whole = first.parent
    assert paths(second) == [str(second)]
    assert paths(f"{whole}/*/*.pcap") == [f"{first}/a.pcap", str(second)]
    assert paths(f"{second}/*.pcap") == [str(second)]
    assert paths(f"{whole}/*/a.pcap") == [f"{first}/a.pcap"]  # looks into no folder
    lock(whole)
    assert paths(f"{whole}/*/*.pcap", f"{whole}/*/b.pcap") == [str(whole)]


def test_a_glob_of_names_in_this_folder(
    places: list[Path], lock: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(places[0])
    assert paths("*.pcap") == ["a.pcap"]
    with pytest.raises(CaptureError, match="no file has such a name"):
        list_files(["*.zip"])


def test_opening_it_tells_why(places: list[Path], lock: Callable[[Path], None]) -> None:
    lock(places[1])
    with pytest.raises(PermissionError) as caught:
        open_file(str(places[1]))
    assert caught.value.strerror == WHY


def test_a_folder_that_cannot_be_entered_is_told_too(places: list[Path], bar: Callable[[Path], None]) -> None:
    first, second = places
    whole = first.parent
    bar(second)
    assert paths(second) == [str(second)]
    assert paths(f"{whole}/*/*.pcap") == [f"{first}/a.pcap", str(second)]
    assert sorted(files_below(str(whole))) == [f"{first}/a.pcap", str(second)]
    with pytest.raises(CaptureError, match="b: cannot be listed: Permission denied: the folder cannot"):
        files_below(str(second))
    with pytest.raises(PermissionError, match="cannot be entered"):
        open_file(str(second))
    bar(whole)
    with pytest.raises(CaptureError, match=f"{whole}: cannot be listed: .* the folder cannot be entered"):
        files_below(str(whole))


def test_batch_tells_it_in_one_line(
    places: list[Path], lock: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock(places[1])
    assert main(["spark", "batch", str(places[1]), "--out", str(tmp_path / "out")]) == 3
    assert capsys.readouterr().err == f"kdissect: {places[1]}: cannot be read: {WHY}\n"


@pytest.mark.parametrize("command", [("report",), ("stream", "--out", "tables")], ids=lambda each: each[0])
def test_a_folder_that_is_all_there_is_to_read_has_to_be_listed(
    places: list[Path],
    lock: Callable[[Path], None],
    capsys: pytest.CaptureFixture[str],
    command: tuple[str, ...],
) -> None:
    lock(places[1])
    assert main(["spark", command[0], str(places[1]), *command[1:]]) == 3
    assert capsys.readouterr().err == f"kdissect: {places[1]}: cannot be listed: Permission denied\n"


def test_a_stream_reads_the_other_files_and_tells_it_once(
    places: list[Path], lock: Callable[[Path], None]
) -> None:
    first, second = places
    lock(second)
    folder = SpoolFolder(str(first.parent))
    position = folder.next({})
    assert set(position) == {f"{first}/a.pcap", str(second)}
    (span,) = [span for span in spans_between({}, position, None) if span.path == str(second)]
    (told,) = SpanReading(span, DEFAULTS, None).items()
    assert isinstance(told, Fault)
    assert (told.kind, told.message) == (
        "unreadable",
        f"{second}: cannot be read: {WHY}; the other files are read",
    )
    assert folder.next(position) == position


def test_a_stream_reads_a_folder_once_it_can_be_listed(
    places: list[Path], lock: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = SpoolFolder(str(places[0].parent))
    lock(places[1])
    position = folder.next({})
    monkeypatch.undo()
    assert set(folder.next(position)) == {f"{place}/{place.name}.pcap" for place in places}


def test_the_folder_of_a_stream_has_to_be_listed(places: list[Path], lock: Callable[[Path], None]) -> None:
    whole = places[0].parent
    lock(whole)
    for listed in (files_below, folders_in):
        with pytest.raises(CaptureError, match="in: cannot be listed: Permission denied"):
            listed(str(whole))


def test_a_night_reads_the_other_files_and_tells_it(places: list[Path], lock: Callable[[Path], None]) -> None:
    first, second = places
    lock(second)
    inputs = Inputs([str(first), str(second)], {}, {})
    position = SpoolFolder("", there=inputs).next({})
    assert {path: read.is_final for path, read in position.items()} == {
        f"{first}/a.pcap": False,
        str(second): True,
    }
    assert inputs.doubles == {}


def test_a_night_reads_the_other_files_where_one_cannot_be_read(
    places: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = str(places[1] / "b.pcap")

    def refusing(path: str) -> BufferedIOBase:
        if path == closed:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return open_file(path)

    for module in (runs, spool):
        monkeypatch.setattr(module, "open_file", refusing)
    inputs = Inputs([str(place) for place in places], {}, {"digest of nothing": "/elsewhere.pcap"})
    assert set(inputs()) == {str(places[0] / "a.pcap"), closed}
    assert inputs.doubles == {}
    position = SpoolFolder("", there=inputs).next({})  # though nobody knows whether it is still written
    assert (position[closed].is_settled, position[closed].first_ns) == (True, None)


def test_a_night_tells_a_new_file_that_cannot_be_read(
    places: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refusing(path: str, at: int = 0) -> BufferedIOBase:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    nightly_runs = Nightly(tmp_path / "state")
    with monkeypatch.context() as tonight:
        for module in (runs, spool):
            tonight.setattr(module, "open_file", refusing)
        (event,) = [event for _, event in nightly_runs.add(places[1])]
    assert isinstance(event, Fault)
    why = "cannot be read: Permission denied; the other files are read"
    assert (event.kind, event.message) == ("unreadable", f"{places[1]}/b.pcap: {why}")
    assert any(isinstance(event, Exchange) for _, event in nightly_runs.add(places[1]))


def test_a_night_forgets_a_folder_once_it_can_be_listed(
    places: list[Path], lock: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    lock(places[1])
    named = [str(place) for place in places]
    position = SpoolFolder("", there=Inputs(named, {}, {})).next({})
    monkeypatch.undo()
    assert set(Inputs(named, position, {})()) == {f"{place}/{place.name}.pcap" for place in places}


@pytest.mark.parametrize("kind", ["stream", "night"])
def test_files_below_a_folder_that_is_locked_for_a_time_are_not_gone(
    places: list[Path], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    whole, second = places[0].parent, places[1]

    def following(start: Position) -> Position:
        inputs = Inputs([str(place) for place in places], start, {})
        return SpoolFolder(str(whole), there=inputs if kind == "night" else None).next(start)

    before = following({})
    with monkeypatch.context() as meanwhile:
        lock_in(meanwhile)(second)
        during = following(before)
    assert {path: during.get(path) for path in before} == before
    assert [span.path for span in spans_between(before, during, None)] == [str(second)]
    with (second / "b.pcap").open("ab") as file:
        file.write(b"more")
    after = following(during)
    (span,) = [span for span in spans_between(during, after, None) if not span.is_gone]
    assert (span.path, span.first_ns) == (f"{second}/b.pcap", before[f"{second}/b.pcap"].first_ns)


def test_a_file_that_was_removed_is_gone(places: list[Path]) -> None:
    folder = SpoolFolder(str(places[0].parent))
    before = folder.next({})
    (places[1] / "b.pcap").unlink()
    shutil.copy(CAPTURES / "basic-kafka43.pcapng", places[0] / "new.pcapng")
    assert f"{places[1]}/b.pcap" not in folder.next(before)


def test_a_folder_that_is_locked_a_second_time_is_no_copy_of_itself(
    places: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shutil.copy(CAPTURES / "errors.pcapng", places[1] / "b.pcap")  # no copy of the other one
    digests: list[list[str]] = []

    def run(_: Any, plan: runs.RunPlan, target: Any, kept: runs.Runs, *__: Any) -> dict[str, Any]:
        kept.begin(plan)
        digests.append(sorted(plan.digests))
        kept.end({"run": plan.number})
        return {}

    monkeypatch.setattr(nightly, "_run", run)
    (tmp_path / "runs").mkdir()
    kept = runs.Runs(str(tmp_path / "runs"))
    doubles: list[str] = []
    told: list[str] = []

    def night() -> None:
        nothing: Any = None  # neither a session nor a target is needed
        asked = NightlyOptions(("exchanges",), (), TableSettings())
        named = [str(place) for place in places]
        with kept.held():
            add_new(
                nothing,
                named,
                nothing,
                asked,
                kept,
                lambda faults: told.extend(each.message for each in faults),
                lambda path, _: doubles.append(path),
            )

    for is_locked in (True, False, True, True):
        with monkeypatch.context() as tonight:
            if is_locked:
                lock_in(tonight)(places[1])
            night()
    assert doubles == []
    assert str(places[1]) in kept.position(3)
    assert digests == [[f"{places[0]}/a.pcap"], [f"{places[1]}/b.pcap"], []]
    assert told == [
        f"{places[1]}: cannot be read: {WHY}; the other files are read"
    ]  # in the night without a run


@pytest.mark.parametrize(("rule", "names"), [(r"/([ab])\.pcap", "a"), ("directory", None)])
def test_a_folder_that_cannot_be_listed_is_a_capture_point_of_its_own(
    places: list[Path], lock: Callable[[Path], None], rule: str, names: str | None
) -> None:
    first, second = places
    lock(second)
    expected = {(names or str(first), f"{first}/a.pcap"), (str(second), str(second))}
    position = SpoolFolder(str(first.parent), rule).next({})
    assert {(span.point, span.path) for span in spans_between({}, position, rule)} == expected
    assert {(span.point, span.path) for span in spans_between(position, {}, rule)} == expected
    points = capture_points(list_files([f"{first.parent}/*/*.pcap"]), rule)
    assert {(point.name, path) for point in points for path in point.paths} == expected


def test_a_night_tells_a_known_file_that_has_grown_and_cannot_be_read(
    places: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(path: str, at: int = 0) -> BufferedIOBase:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    path = places[1] / "b.pcap"
    before = SpoolFolder("", there=Inputs([str(places[1])], {}, {})).next({})
    with path.open("ab") as file:
        file.write(b"more")
    with monkeypatch.context() as tonight:
        for module in (storage, runs, spool):
            tonight.setattr(module, "open_file", refusing)
        inputs = Inputs([str(places[1])], before, {})
        assert SpoolFolder("", there=inputs).next(before) == before
    why = "cannot be read: Permission denied; the other files are read"
    assert [each.message for each in inputs.refused] == [f"{path}: {why}"]
    inputs = Inputs([str(places[1])], before, {})
    assert SpoolFolder("", there=inputs).next(before)[str(path)].size == path.stat().st_size
    assert inputs.refused == []


def test_a_night_tells_a_named_file_in_a_folder_that_is_locked(
    places: list[Path], lock: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(path: str) -> BufferedIOBase:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    lock(places[1])
    monkeypatch.setattr(storage, "open_file", refusing)
    inputs = Inputs([f"{places[0]}/a.pcap", f"{places[1]}/b.pcap"], {}, {})
    assert list(inputs()) == [f"{places[0]}/a.pcap"]
    why = "cannot be read: Permission denied; the other files are read"
    assert [each.message for each in inputs.refused] == [f"{places[1]}/b.pcap: {why}"]


def test_a_night_tells_a_named_file_that_is_missing_unless_it_was_read(places: list[Path]) -> None:
    there, missing = f"{places[0]}/a.pcap", f"{places[1]}/none.pcap"
    inputs = Inputs([there, missing], {}, {})
    assert list(inputs()) == [there]
    why = "cannot be read: No such file or directory; the other files are read"
    assert [(each.kind, each.message) for each in inputs.refused] == [("unreadable", f"{missing}: {why}")]
    for first_ns, told in ((7, 0), (None, 1)):
        inputs = Inputs([there, missing], {missing: spool.SpoolRead(9, False, first_ns)}, {})
        assert list(inputs()) == [there]
        assert len(inputs.refused) == told


def test_a_state_is_not_made_again_without_a_file_that_is_locked(
    places: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(path: str, at: int = 0) -> BufferedIOBase:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    path = f"{places[0]}/a.pcap"
    size = os.path.getsize(path)
    span = spool.FileSpan("", path, size, False, 7, False)
    assert why_lost(span) is None
    assert why_lost(span._replace(size=size + 1)) == "is shorter now"
    assert why_lost(span._replace(path="/nowhere.pcap")) == "is missing"
    monkeypatch.setattr(storage, "open_file", refusing)
    assert why_lost(span) == "cannot be read: Permission denied"
    assert why_lost(span._replace(first_ns=None)) is None  # it could not be read before, either


def test_what_a_file_system_found_again_is_no_folder_of_captures(
    places: list[Path], lock: Callable[[Path], None]
) -> None:
    whole = places[0].parent
    (lost := whole / "lost+found").mkdir()
    lock(lost)
    expected = [f"{place}/{place.name}.pcap" for place in places]
    assert paths(f"{whole}/*/*.pcap") == sorted(files_below(str(whole))) == expected
    assert paths(f"{lost}/*.pcap") == [str(lost)]
