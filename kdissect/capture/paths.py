"""The text typed for a path → the paths that complete it, and the captures of a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator

from kdissect.capture.compressed import SUFFIXES

ENDINGS = (".pcap", ".pcapng", ".cap", ".ntar")
MOST_ENTRIES = 10_000
"""The largest number of a folder's entries that are read."""


def is_capture_name(name: str) -> bool:
    """Whether a file may be a capture, by its name. A number may follow, as in rotated files."""
    name = name.lower()
    for packed in SUFFIXES:
        name = name.removesuffix(packed)
    stem, _, number = name.rpartition(".")
    return name.endswith(ENDINGS) or (stem.endswith(ENDINGS) and number.isdecimal()) or _is_numbered(name)


def _is_numbered(name: str) -> bool:
    """Whether a name has the form of tcpdump -C: ``x.pcap0``, ``x.pcap1``."""
    bare = name.rstrip("0123456789")
    return bare != name and bare.endswith(ENDINGS)


def captures_in(folder: str) -> list[str]:
    """The captures of a folder, then the folders in it with a separator at their end.

    :raises OSError: it cannot be read.
    """
    found = [each for each in _entries(folder) if not each.name.startswith(".")]
    folders = {each.name for each in found if _is_folder(each)}
    files = sorted({each.name for each in found if is_capture_name(each.name)} - folders)
    return [os.path.join(folder, name) for name in files] + [
        os.path.join(folder, name, "") for name in sorted(folders)
    ]


def completed(text: str) -> tuple[str, list[str]]:
    """The typed text, completed as long as there is only one continuation; and all possible paths.

    Captures and folders are offered. If the text begins none of these, any file is offered.
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
