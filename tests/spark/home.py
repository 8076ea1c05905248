"""A home of Spark whose workers start in half the time."""

from __future__ import annotations

from pathlib import Path


def unzipped(folder: Path) -> Path:
    """Make a home of Spark that has all but ``pyspark.zip``.

    Workers prefer the archive to the installed package, which is equal. But Python keeps no bytecode of an
    archive, so that each worker takes a second of processor time to compile it.
    """
    import pyspark

    folder.mkdir()
    for each in Path(pyspark.__file__).parent.iterdir():
        if each.name != "python":
            (folder / each.name).symlink_to(each)
    return folder
