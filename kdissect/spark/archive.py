"""This kdissect and the Python packages that it needs → one archive for workers without them.

    bin/python   a script: the worker's own Python, of the same minor version, which finds ``lib`` first
    lib/         the packages; PySpark is not among them, since Spark brings it along

Spark unpacks it on each worker: ``spark.archives=kdissect.tar.gz#environment`` and
``spark.pyspark.python=./environment/bin/python``. An archive is only of use on similar machines: compiled
packages fit one operating system, one kind of processor, and one minor version of Python.
"""

from __future__ import annotations

import io
import os
import re
import sys
import tarfile
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

import kdissect

EXTRAS = ("arrow", "spark", "hdfs")
"""The extras that tasks use. The driver commits to targets, so their extras are not needed."""
COMPRESS_LEVEL = 3
"""How much gzip tries. More would take far longer and save little."""
_OF_SPARK = frozenset(("pyspark", "py4j"))
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")

_PYTHON = """\
#!/bin/sh
here=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
PYTHONPATH="$here/lib${{PYTHONPATH:+:$PYTHONPATH}}"
export PYTHONPATH
exec "${{KDISSECT_PYTHON:-python{version}}}" "$@"
"""


class Packed(NamedTuple):
    """The contents of an archive."""

    packages: tuple[str, ...]
    """The names and versions of the packages."""
    size: int
    """The size of the archive in bytes."""


def pack(path: str) -> Packed:
    """Write the archive. It replaces a file of that name after it is complete.

    :raises OSError: it cannot be written.
    """
    found = needed()
    partial = f"{path}.{os.getpid()}~"
    try:
        with tarfile.open(partial, "w:gz", compresslevel=COMPRESS_LEVEL) as archive:
            script = _PYTHON.format(version="{}.{}".format(*sys.version_info)).encode()
            info = tarfile.TarInfo("bin/python")
            info.size, info.mode = len(script), 0o755
            archive.addfile(info, io.BytesIO(script))
            for source, name in _files(found):
                archive.add(source, f"lib/{name}", recursive=False, filter=_plain)
        os.replace(partial, path)
    finally:
        Path(partial).unlink(missing_ok=True)
    packages = tuple(f"{each.name} {each.version}" for each in found)
    return Packed(packages, os.path.getsize(path))


def needed() -> list[Distribution]:
    """The distributions that tasks need: kdissect first, then its requirements with the extras that tasks
    use. Distributions that are not installed here are left out."""
    found: dict[str, Distribution] = {}
    waiting: list[tuple[str, tuple[str, ...]]] = [("kdissect", EXTRAS)]
    while waiting:
        name, extras = waiting.pop()
        key = _key(name)
        if key in _OF_SPARK or (key in found and not extras):
            continue
        try:
            each = distribution(name)
        except PackageNotFoundError:  # for another platform, or for an extra that is not used
            continue
        found.setdefault(key, each)
        waiting += [(wanted, ()) for wanted in _requirements(each, extras)]
    first = found.pop("kdissect")
    return [first, *(found[key] for key in sorted(found))]


def _requirements(each: Distribution, extras: Iterable[str]) -> Iterator[str]:
    for text in each.requires or ():
        name, _, marker = text.partition(";")
        extra = _EXTRA.search(marker)
        match = _NAME.match(name.strip())
        if match is not None and (extra is None or extra[1] in extras):
            yield match[0]


def _files(found: Iterable[Distribution]) -> Iterator[tuple[Path, str]]:
    """Each file, and its name below ``lib``."""
    taken = set()
    for each in found:
        files = list(each.files or ())
        pairs = [(Path(str(each.locate_file(file))), str(file)) for file in files]
        if each.name == "kdissect":
            # It may be a checkout, whose files are not listed anywhere.
            package = Path(kdissect.__file__).parent
            pairs = [pair for pair in pairs if ".dist-info" in pair[1]]
            pairs += [
                (path, str(path.relative_to(package.parent))) for path in package.rglob("*") if path.is_file()
            ]
        for source, name in sorted(pairs, key=lambda pair: pair[1]):
            parts = name.split("/")
            # Scripts are in another folder, and Python makes its caches again.
            is_ours = not {"..", "__pycache__"}.intersection(parts) and not os.path.isabs(name)
            if is_ours and name not in taken and source.is_file():
                taken.add(name)
                yield source, name


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """The entry of a file, without its owner."""
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
