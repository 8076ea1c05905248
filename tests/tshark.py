"""Wireshark's tshark, where it is installed: it reads what kdissect writes, and kdissect what it reads."""

from __future__ import annotations

import shutil
import subprocess

import pytest

TSHARK = shutil.which("tshark")

requires_tshark = pytest.mark.skipif(TSHARK is None, reason="tshark is not installed")


def tshark(*arguments: object) -> str:
    """What it prints; a test fails where it does."""
    assert TSHARK is not None
    command = [TSHARK, "-n", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
