"""What is one capture, and how its work is shared; where the files are."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdissect.model import CaptureError
from kdissect.spark.plan import BYTES_A_TASK, Plan, capture_points, plan, tasks_for
from kdissect.spark.settings import TableSettings
from kdissect.spark.storage import InputFile, list_files, open_file

FILES = [InputFile("/c/b1/x.pcap", 5), InputFile("/c/b2/x.pcap", 7), InputFile("/c/b1/y.pcap", 1)]


def test_all_files_are_one_capture() -> None:
    (point,) = capture_points(FILES, None)
    assert (point.name, point.paths, point.size) == ("", tuple(file.path for file in FILES), 13)


@pytest.mark.parametrize(("rule", "names"), [(r"/b(\d)/", ["1", "2"]), ("directory", ["/c/b1", "/c/b2"])])
def test_capture_points_are_told_apart(rule: str, names: list[str]) -> None:
    points = capture_points(FILES, rule)
    assert [point.name for point in points] == names
    assert [point.paths for point in points] == [("/c/b1/x.pcap", "/c/b1/y.pcap"), ("/c/b2/x.pcap",)]


def test_a_small_capture_is_one_task_and_a_large_one_is_as_many_as_run() -> None:
    assert tasks_for(1, 16) == 1
    assert tasks_for(100 * BYTES_A_TASK, 16) == 16
    assert tasks_for(3 * BYTES_A_TASK, 16) == 3
    assert tasks_for(3 * BYTES_A_TASK + 1, 16) == 4


def test_each_byte_is_read_once_however_many_make_rows(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(bytes(1_000))
    for settings, expected in (
        (TableSettings(), (1, 1_000)),
        (TableSettings(two_pass=True), (1, 2_000)),
        (TableSettings(tasks=3), (3, 1_000)),
    ):
        made = plan([str(tmp_path)], settings)
        assert (made.tasks[0], made.bytes_to_read, made.size) == (*expected, 1_000)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(bytes(1_000_000))
    names = [str(tmp_path / name) for name in ("a.pcap", "b.pcap")]
    *_, first, second = plan(names, TableSettings()).lines()
    assert (first, second) == (
        f"  {names[0]} (1.0 MiB)",
        f"  {names[1]} (cannot be read: No such file or directory)",
    )


@pytest.mark.parametrize(
    ("cores", "sizes", "tasks"),
    [
        (8, (100,), (8,)),
        (8, (1, 1), (1, 1)),
        (8, (30, 10, 0.1), (6, 2, 1)),
        (2, (30, 30, 30), (1, 1, 1)),
        (800, (3,), (3,)),
    ],
)
def test_a_point_has_tasks_for_rows_by_its_size_and_the_cores(
    cores: int, sizes: tuple[float, ...], tasks: tuple[int, ...]
) -> None:
    files = [InputFile(f"/c/{at}/x.pcap", int(size * BYTES_A_TASK)) for at, size in enumerate(sizes)]
    points = capture_points(files, "directory")
    asked = Plan(points, (1,) * len(points), is_set_by_user=False)
    assert asked.on(cores).tasks == tasks
    told = Plan(points, (3,) * len(points))
    assert told.on(cores) is told


def test_names_of_captures_are_files_directories_and_globs(tmp_path: Path) -> None:
    for name in ("b.pcap", "a.pcap", ".hidden", "_temporary"):
        (tmp_path / name).write_bytes(b"1234")
    both = [InputFile(str(tmp_path / name), 4) for name in ("a.pcap", "b.pcap")]
    assert list_files([str(tmp_path)]) == both
    assert list_files([str(tmp_path / "*.pcap"), str(tmp_path / "a.pcap")]) == both
    assert list_files([f"file://{tmp_path}"]) == both
    assert list_files(["nowhere.pcap"]) == [InputFile("nowhere.pcap", 0)]


def test_a_folder_of_folders_only_tells_what_to_give(tmp_path: Path) -> None:
    for name in ("a", "b", "lost+found", "_own"):
        (tmp_path / name).mkdir()
    with pytest.raises(CaptureError, match="not searched; give ") as refused:
        list_files([str(tmp_path)])
    given = str(refused.value).partition("; give ")[2]
    assert given == f"{tmp_path}/*/"
    with pytest.raises(CaptureError, match="no file has such a name"):
        list_files([given])
    for name in ("a/2.pcap", "a/1.pcap", "a/_3.pcap", "b/1.pcap", "lost+found/1.pcap"):
        (tmp_path / name).write_bytes(b"1234")
    names = [file.path.removeprefix(f"{tmp_path}/") for file in list_files([given])]
    assert names == ["a/1.pcap", "a/2.pcap", "b/1.pcap"]


def test_nothing_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="no file is in this directory"):
        list_files([str(tmp_path)])
    with pytest.raises(CaptureError, match="no file has such a name"):
        list_files([str(tmp_path / "*.pcap")])
    with pytest.raises(CaptureError, match="nowhere://"):
        list_files(["nowhere://x/y"])


def test_files_of_other_file_systems_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "a.pcap").write_bytes(b"1234")
    monkeypatch.setattr("kdissect.spark.storage.is_remote", lambda path: path.startswith("file://"))
    uri = f"file://{tmp_path}"
    (file,) = list_files([uri])
    assert file == InputFile(f"{uri}/a.pcap", 4)
    with open_file(file.path) as opened:
        assert opened.read1(10) == b"1234"
