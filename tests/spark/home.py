"""Homes of Spark."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path


def linked(folder: Path, without: Collection[str] = ()) -> Path:
    """Make a home whose content is that of the installed one, and to which Spark may add folders."""
    import pyspark

    folder.mkdir()
    for each in Path(pyspark.__file__).parent.iterdir():
        if each.name not in without:
            (folder / each.name).symlink_to(each)
    return folder


def unzipped(folder: Path) -> Path:
    """Make a home that has all but ``pyspark.zip``, so that workers start in half the time.

    Workers prefer the archive to the installed package, which is equal. But Python keeps no bytecode of an
    archive, so that each worker takes a second of processor time to compile it.
    """
    return linked(folder, without={"python"})
