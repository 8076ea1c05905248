"""The captures that were opened last: a list in the user's state folder that only the user can read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

MOST = 20
"""The most captures in the list."""


def state_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder for what is kept from run to run (XDG Base Directory Specification)."""
    home = environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "kdissect"


def recent_files(environment: Mapping[str, str] = os.environ) -> list[str]:
    """The captures, the last one first. Empty if the file cannot be read."""
    try:
        found = json.loads((state_folder(environment) / "recent.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return []
    return [path for path in found if isinstance(path, str)][:MOST] if isinstance(found, list) else []


def remember(paths: Iterable[str], environment: Mapping[str, str] = os.environ) -> None:
    """Put captures at the head of the list. If it cannot be written, nothing is remembered."""
    known = [os.path.abspath(path) for path in paths]
    listed = list(dict.fromkeys([*known, *recent_files(environment)]))[:MOST]
    folder = state_folder(environment)
    part = folder / f"recent.json.{os.getpid()}"
    with suppress(OSError, UnicodeEncodeError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(json.dumps(listed).encode("ascii"))
        os.replace(part, folder / "recent.json")
