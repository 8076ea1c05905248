"""Wireshark's tshark, if it is installed: it reads kdissect's output, and kdissect reads its output."""

from __future__ import annotations

import shutil
import subprocess

import pytest

TSHARK = shutil.which("tshark")

requires_tshark = pytest.mark.skipif(TSHARK is None, reason="tshark is not installed")


def tshark(*arguments: object) -> str:
    """The output of tshark; the test fails if tshark fails."""
    assert TSHARK is not None
    command = [TSHARK, *map(str, arguments), "-n"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
