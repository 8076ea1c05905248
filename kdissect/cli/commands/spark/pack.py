"""``kdissect spark pack``."""

from __future__ import annotations

import sys
from typing import Any

import click

from kdissect.cli.errors import Wrong, complain
from kdissect.cli.exit_codes import DONE


@click.command("pack")
@click.option(
    "-o",
    "--output",
    "path",
    default="kdissect.tar.gz",
    show_default=True,
    metavar="FILE",
    help="File of the archive.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print no closing lines.")
def command(**given: Any) -> int:
    """This kdissect and its packages → an archive that Spark hands to workers without them.

    Workers need Python of the same minor version, the same operating system and the same kind of processor.
    Spark itself provides PySpark. kdissect doctor spark says how a cluster uses the archive.
    """
    from kdissect.spark.archive import pack

    path = given["path"]
    try:
        packed = pack(path)
    except OSError as error:
        raise Wrong(f"{path}: cannot be written: {error.strerror or error}") from None
    if not given["quiet"]:
        version = "{}.{}".format(*sys.version_info)
        size = f"{packed.size / (1 << 20):,.1f} MiB"
        complain(f"{path}: {len(packed.packages)} packages, {size}, for workers with Python {version}")
        complain(
            f"--conf spark.archives={path}#environment --conf spark.pyspark.python=./environment/bin/python"
        )
    return DONE
