"""What was typed of a path → the paths that it may become, and which captures a folder has."""

from __future__ import annotations

import os
from collections.abc import Iterator

from kdissect.capture.compressed import SUFFIXES

ENDINGS = (".pcap", ".pcapng", ".cap", ".ntar")
MOST_ENTRIES = 10_000
"""Of a folder, more are not looked at."""


def is_capture_name(name: str) -> bool:
    """Whether a file may be a capture, by its name, which may go on with a number as rotated ones do."""
    name = name.lower()
    for packed in SUFFIXES:
        name = name.removesuffix(packed)
    stem, _, number = name.rpartition(".")
    return name.endswith(ENDINGS) or (stem.endswith(ENDINGS) and number.isdecimal()) or _is_numbered(name)


def _is_numbered(name: str) -> bool:
    """Whether it is as tcpdump -C names them: ``x.pcap0``, ``x.pcap1``."""
    bare = name.rstrip("0123456789")
    return bare != name and bare.endswith(ENDINGS)


def captures_in(folder: str) -> list[str]:
    """The captures of a folder, then the folders in it, which end in a separator.

    :raises OSError: it cannot be read.
    """
    found = [each for each in _entries(folder) if not each.name.startswith(".")]
    folders = {each.name for each in found if _is_folder(each)}
    files = sorted({each.name for each in found if is_capture_name(each.name)} - folders)
    return [os.path.join(folder, name) for name in files] + [
        os.path.join(folder, name, "") for name in sorted(folders)
    ]


def completed(text: str) -> tuple[str, list[str]]:
    """What was typed, completed while there is only one way to go on; and all the ways.

    Captures and folders are offered; where the text begins nothing of that kind, any file.
    """
    head, begun = os.path.split(text)
    try:
        entries = [each for each in _entries(os.path.expanduser(head) or ".") if each.name.startswith(begun)]
    except OSError:
        return text, []
    if not begun:
        entries = [each for each in entries if not each.name.startswith(".")]
    likely = [each for each in entries if _is_folder(each) or is_capture_name(each.name)] or entries
    paths = sorted(os.path.join(head, each.name) + os.sep * _is_folder(each) for each in likely)
    common = os.path.commonprefix(paths)  # noqa: RUF071 - of characters, as they are typed
    return common or text, paths


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for _, entry in zip(range(MOST_ENTRIES), entries, strict=False):
            yield entry


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
