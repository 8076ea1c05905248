"""The folders where Wireshark looks for the plug-ins and the extcap programs of one user.

If Wireshark is installed, its own answer counts (``tshark -G folders``). Otherwise its User's Guide does
("Plugin folders", "Files and Folders"): below ``%APPDATA%\\Wireshark`` on Windows, below
``~/.local/lib/wireshark`` on Linux and macOS. Before 4.2 extcap programs were beside the configuration.
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
"""The most seconds that Wireshark may take to answer."""

_ELSEWHERE = {
    "darwin": ("/Applications/Wireshark.app/Contents/MacOS",),
    "win32": (r"C:\Program Files\Wireshark",),
}
"""Folders of Wireshark that are not in the path."""


class Folders(NamedTuple):
    """The folders of one user."""

    plugins: Path
    """The folder for plug-ins in Lua."""
    extcap: Path


class Program(NamedTuple):
    """A tshark or a Wireshark."""

    path: str
    folders: Folders | None
    """The folders that it reports; None if it does not."""

    def version(self) -> str:
        """The version, such as ``4.6.9``; empty if unknown."""
        found = re.search(r"\b\d+\.\d+\.\d+\b", _output_of(self.path, "--version"))
        return "" if found is None else found[0]


def documented(platform: str, environ: Mapping[str, str], home: str) -> Folders:
    """The folders by the User's Guide.

    :param platform: as :data:`sys.platform`.
    :param home: the user's folder.
    """
    if platform == "win32":
        roaming = environ.get("APPDATA") or str(PureWindowsPath(home, "AppData", "Roaming"))
        base = Path(roaming, "Wireshark")
    else:
        base = Path(home, ".local", "lib", "wireshark")
    return Folders(base / "plugins", base / "extcap")


def parse_folders(text: str) -> Folders | None:
    """The folders in the output of ``tshark -G folders``; None if it has none."""
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
    """The installed tshark or Wireshark."""
    elsewhere = os.pathsep.join(_ELSEWHERE.get(sys.platform, ()))
    for name in ("tshark", "wireshark"):
        path = shutil.which(name) or shutil.which(name, path=elsewhere or os.devnull)
        if path is not None and (answer := _output_of(path, "-G", "folders")):
            return Program(path, parse_folders(answer))
    return None


def folders_of(program: Program | None) -> Folders:
    """The folders to install files in."""
    if program is not None and program.folders is not None:
        return program.folders
    return documented(sys.platform, os.environ, os.path.expanduser("~"))


def program_text(program: Program | None) -> str:
    """The name and version of the program, for people."""
    return "not found" if program is None else f"{program.path} {program.version()}".rstrip()


def _output_of(*command: str) -> str:
    """The output of a program; empty if it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "surrogateescape")
