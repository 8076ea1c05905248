"""The archive for workers that have nothing but Python."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import kdissect
from kdissect.cli import main
from kdissect.spark import archive
from kdissect.spark.archive import needed, pack
from kdissect.spark.build import build
from kdissect.spark.launch import NoSparkError, check
from tests.amount import LONG
from tests.spark.home import linked
from tests.spark.same import CAPTURES
from tests.spark.standalone import Cluster, compare_packed, standalone


def test_it_has_what_tasks_need_and_no_spark() -> None:
    names = [each.name.lower() for each in needed()]
    assert names[0] == "kdissect"
    assert {"numpy", "zstandard", "cryptography", "cffi"} < set(names)  # cffi is asked for by another one
    assert not {"pyspark", "py4j", "pytest", "deltalake"} & set(names)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only kdissect itself: the packages of others have a hundred megabytes."""
    (first, *_) = needed()
    monkeypatch.setattr("kdissect.spark.archive.needed", lambda: [first])


@pytest.mark.usefixtures("small")
def test_python_in_it_finds_this_kdissect(tmp_path: Path) -> None:
    path = tmp_path / "kdissect.tar.gz"
    packed = pack(str(path))
    assert packed.packages == (f"kdissect {kdissect.__version__}",)
    assert packed.size == path.stat().st_size
    with tarfile.open(path) as packages:
        members = packages.getmembers()
        packages.extractall(tmp_path / "unpacked", filter="data")
    assert {(each.uid, each.gid, each.uname) for each in members} == {(0, 0, "")}
    assert not [each.name for each in members if "__pycache__" in each.name]
    ask = "import kdissect; from kdissect.spark.build import build; print(kdissect.__file__, build())"
    done = subprocess.run(
        [str(tmp_path / "unpacked" / "bin" / "python"), "-c", ask],
        env={**os.environ, "KDISSECT_PYTHON": sys.executable},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    place, same = done.stdout.split()
    assert place == str(tmp_path / "unpacked" / "lib" / "kdissect" / "__init__.py")
    assert same == build()  # so states of a stream go on


@pytest.mark.usefixtures("small")
def test_the_command_says_how_it_is_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.tar.gz"
    assert main(["spark", "pack", "-o", str(path)]) == 0
    first, second = capsys.readouterr().err.splitlines()
    assert "for workers with Python {}.{}".format(*sys.version_info) in first
    assert f"--conf spark.archives={path}#environment" in second
    assert main(["spark", "pack", "-o", str(tmp_path / "nowhere" / "k.tar.gz")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "cannot be written: No such file or directory" in line
    assert [each.name for each in tmp_path.iterdir()] == ["k.tar.gz"]


def test_workers_of_a_cluster_that_have_only_python_make_equal_tables(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By default master and worker run in the JVM of the driver, which saves two.

    ``python -m tests.spark.long archive`` asks for all tables, of two workers.
    """
    try:
        check("local[1]")
    except NoSparkError as error:
        pytest.skip(str(error))
    capture, tables = CAPTURES / "errors.pcapng", ("exchanges", "records")
    if LONG:
        with standalone(1) as cluster:
            compare_packed(cluster, capture, tables)
        return
    # To compress all packages takes longer than the rest.
    monkeypatch.setattr(archive, "COMPRESS_LEVEL", 0)
    monkeypatch.setenv("SPARK_HOME", str(linked(tmp_path / "home")))  # the worker has its folder in it
    monkeypatch.setenv("KDISSECT_PYTHON", os.path.realpath(sys.executable))
    compare_packed(Cluster("local-cluster[1,1,1024]", tmp_path, ()), capture, tables)
