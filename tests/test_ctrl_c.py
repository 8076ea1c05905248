"""Ctrl-C while a command is still being imported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kdissect.ctrl_c import is_of_command
from tests.cli.run import ROOT

PRESSED = """
import sys


class Pressed:
    def find_spec(self, name, path=None, target=None):
        if name == "kdissect.leaves":
            raise KeyboardInterrupt


sys.meta_path.insert(0, Pressed())
"""


def said(tmp_path: Path, *arguments: str) -> tuple[int, str]:
    """The exit code and the output of a process in which Ctrl-C comes early."""
    (tmp_path / "sitecustomize.py").write_text(PRESSED)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, env=environment
    )
    return done.returncode, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="a process does not end by a signal there")
def test_a_command_ends_without_a_traceback(tmp_path: Path) -> None:
    assert said(tmp_path, "-m", "kdissect", "--version") == (-signal.SIGINT, "")


def test_a_program_that_imports_kdissect_decides_itself(tmp_path: Path) -> None:
    assert "Traceback" in said(tmp_path, "-c", "import kdissect")[1]


def test_a_module_that_imports_kdissect_decides_itself(tmp_path: Path) -> None:
    package = tmp_path / "program"
    package.mkdir()
    (package / "__init__.py").write_text("import kdissect")
    (package / "cli.py").touch()
    assert "Traceback" in said(tmp_path, "-m", "program.cli", "-m", "kdissect")[1]


def test_which_processes_are_commands() -> None:
    commands = (["/usr/bin/kdissect", "a.pcap"], ["C:\\Python\\kdissect.exe"])
    others: tuple[list[str], ...] = ([], [""], ["-c"], ["/usr/bin/pytest"], ["kdissect/conformance.py"])
    started = ["python", "-m", "kdissect"]
    assert all(is_of_command(each, ["python", *each]) for each in commands)
    assert not any(is_of_command(each, started) for each in others)


@pytest.mark.parametrize(
    ("options", "is_command"),
    [
        ("-m kdissect", True),
        ("-mkdissect", True),
        ("-Im kdissect", True),
        ("-X importtime -W error -Wdefault -m kdissect", True),
        ("--check-hash-based-pycs always -m kdissect", True),
        ("-m program", False),
        ("-mprogram -m kdissect", False),
        ("-X m -m program.kdissect", False),
        ("-m", False),
        ("", False),
    ],
)
def test_which_modules_are_the_command(options: str, is_command: bool) -> None:
    assert is_of_command(["-m", "show"], ["python", *options.split()]) == is_command
