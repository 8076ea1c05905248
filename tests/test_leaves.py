"""Compiled modules of a checkout run only if they are as new as their sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from kdissect.leaves import BUSY, LEAVES, LOOPS, OUTDATED, PURE, SELDOM, SHARED, is_outdated

TOP = Path(__file__).resolve().parents[1]
SUFFIX = EXTENSION_SUFFIXES[0]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose modules were all compiled one second after they were written."""
    (tmp_path / "pyproject.toml").touch()
    for leaf in LEAVES:
        source = tmp_path / (leaf.replace(".", "/") + ".py")
        source.parent.mkdir(parents=True, exist_ok=True)
        source.touch()
        os.utime(source, (1_000, 1_000))
        library = source.with_suffix(SUFFIX)
        library.touch()
        os.utime(library, (1_001, 1_001))
    return tmp_path


def test_what_was_compiled_after_its_last_edit_is_not_outdated(checkout: Path) -> None:
    assert not is_outdated(checkout)


@pytest.mark.parametrize("suffix", [".py", ".pxd", ".pyx"])
def test_one_edited_source_outdates_the_checkout(checkout: Path, suffix: str) -> None:
    edited = checkout / f"kdissect/tcp/reassembly{suffix}"
    edited.touch()
    os.utime(edited, (1_002, 1_002))
    assert is_outdated(checkout)


def test_a_module_that_was_not_compiled_outdates_the_checkout(checkout: Path) -> None:
    (checkout / f"kdissect/dissect{SUFFIX}").unlink()
    assert is_outdated(checkout)


@pytest.mark.parametrize("package", ["tcp", "settings", "insight/rules/groups", "new"])
def test_a_leftover_of_a_module_that_is_no_leaf_any_more_outdates_the_checkout(
    checkout: Path, package: str
) -> None:
    """This holds whether or not its package has leaves."""
    leftover = checkout / f"kdissect/{package}/troubles{SUFFIX}"
    leftover.parent.mkdir(parents=True, exist_ok=True)
    leftover.touch()
    assert is_outdated(checkout)
    for library in checkout.rglob(f"*{SUFFIX}"):
        library.unlink()
    leftover.touch()
    assert is_outdated(checkout)


def test_a_checkout_without_compiled_modules_is_not_outdated(checkout: Path) -> None:
    for library in checkout.rglob(f"*{SUFFIX}"):
        library.unlink()
    assert not is_outdated(checkout)


def test_a_folder_that_this_user_may_not_read_has_no_modules(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / "kdissect/.cache").mkdir()
    plain = os.scandir

    def scan(folder: str) -> object:
        if folder.endswith(".cache"):
            raise PermissionError(13, "Permission denied", folder)
        return plain(folder)

    monkeypatch.setattr("os.scandir", scan)
    assert not is_outdated(checkout)


def test_what_a_wheel_installed_is_never_outdated(checkout: Path) -> None:
    os.utime(checkout / "kdissect/dissect.py", (1_002, 1_002))
    (checkout / "pyproject.toml").unlink()
    assert not is_outdated(checkout)


@pytest.mark.parametrize("module", ["kdissect.dissect", "kdissect.settings.actions"])
def test_outdated_modules_are_passed_over_with_one_line(tmp_path: Path, module: str) -> None:
    """The second module is no leaf, and its package has none."""
    shutil.copytree(
        TOP / "kdissect", tmp_path / "kdissect", ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    (tmp_path / "pyproject.toml").touch()
    path = module.replace(".", "/")
    broken = tmp_path / f"{path}{SUFFIX}"
    broken.write_bytes(b"no library")
    os.utime(broken, (1_000, 1_000))
    code = f"import {module}; print({module}.__file__)"
    environment = {name: value for name, value in os.environ.items() if name != PURE}
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip().endswith(f"{path}.py")
    assert run.stderr == OUTDATED + "\n"


def test_each_leaf_is_optimised_to_one_level() -> None:
    assert set(LEAVES) > LOOPS | BUSY | SELDOM
    assert len(LOOPS | BUSY | SELDOM) == len(LOOPS) + len(BUSY) + len(SELDOM)


def test_what_all_compiled_modules_share_is_no_leftover(checkout: Path) -> None:
    (checkout / f"{SHARED.replace('.', '/')}{SUFFIX}").touch()
    assert not is_outdated(checkout)
