"""Where Wireshark looks for the plug-ins and the extcap programs of one user.

Wireshark's own answer counts, where it is installed (``tshark -G folders``). Else its User's Guide does
("Plugin folders", "Files and Folders"): below ``%APPDATA%\\Wireshark`` on Windows, below
``~/.local/lib/wireshark`` on Linux and macOS. Before 4.2 extcap programs stood beside the configuration.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path, PureWindowsPath
from typing import NamedTuple

_SECONDS = 20
"""How long Wireshark may take to answer."""

_ELSEWHERE = {
    "darwin": ("/Applications/Wireshark.app/Contents/MacOS",),
    "win32": (r"C:\Program Files\Wireshark",),
}
"""Where Wireshark is installed without being in the path."""


class Folders(NamedTuple):
    """The folders of one user."""

    plugins: Path
    """For plug-ins in Lua."""
    extcap: Path


class Program(NamedTuple):
    """A tshark or a Wireshark."""

    path: str
    folders: Folders | None
    """What it tells; None where it does not."""

    def version(self) -> str:
        """Such as ``4.6.9``; empty where it does not tell."""
        found = re.search(r"\b\d+\.\d+\.\d+\b", _said(self.path, "--version"))
        return "" if found is None else found[0]


def documented(platform: str, environ: Mapping[str, str], home: str) -> Folders:
    """The folders as the User's Guide has them.

    :param platform: as :data:`sys.platform`.
    :param home: the user's folder.
    """
    if platform == "win32":
        roaming = environ.get("APPDATA") or str(PureWindowsPath(home, "AppData", "Roaming"))
        base = Path(roaming, "Wireshark")
    else:
        base = Path(home, ".local", "lib", "wireshark")
    return Folders(base / "plugins", base / "extcap")


def told(text: str) -> Folders | None:
    """The folders in what ``tshark -G folders`` prints; None where it does not tell them."""
    lines = (re.match(r"([^:]+):\s+(.+)", line) for line in text.splitlines())
    known = {found[1].strip().casefold(): found[2].strip() for found in lines if found is not None}
    plugins = known.get("personal lua plugins") or known.get("personal plugins")
    extcap = known.get("personal extcap path")
    if extcap is None and "personal configuration" in known:
        extcap = os.path.join(known["personal configuration"], "extcap")  # before 4.2
    if plugins is None or extcap is None:
        return None
    return Folders(Path(plugins), Path(extcap))


def find_program() -> Program | None:
    """The tshark or the Wireshark that is installed."""
    elsewhere = os.pathsep.join(_ELSEWHERE.get(sys.platform, ()))
    for name in ("tshark", "wireshark"):
        path = shutil.which(name) or shutil.which(name, path=elsewhere or os.devnull)
        if path is not None and (answer := _said(path, "-G", "folders")):
            return Program(path, told(answer))
    return None


def folders_of(program: Program | None) -> Folders:
    """Where files are to be laid."""
    if program is not None and program.folders is not None:
        return program.folders
    return documented(sys.platform, os.environ, os.path.expanduser("~"))


def told_of(program: Program | None) -> str:
    """Which program it is, for people."""
    return "not found" if program is None else f"{program.path} {program.version()}".rstrip()


def _said(*command: str) -> str:
    """What a program prints; nothing where it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "surrogateescape")
