"""``kdissect spark stream``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from kdissect.cli.errors import Unreadable, Wrong
from kdissect.cli.exit_codes import DONE
from kdissect.cli.spans import SpanOption
from kdissect.cli.spark_sessions import (
    USUAL_TABLES,
    content_options,
    refuse_file,
    running,
    session_options,
    settings_of,
    tell_damage,
    within_reach,
)
from kdissect.spark.asked import difference, first, told
from kdissect.spark.carried import StateError, States
from kdissect.spark.launch import is_connect
from kdissect.spark.progress import Meter
from kdissect.spark.spool import SETTLE_SECONDS, files_in
from kdissect.spark.storage import is_remote
from kdissect.spark.tables import TABLES

_ASKED = "asked.json"
"""In the checkpoint: what its first start asked for."""


@click.command("stream")
@click.argument("folder", metavar="DIR")
@click.option(
    "--out", required=True, metavar="DIR", help="Folder for the tables, each in a folder of its own."
)
@click.option(
    "--table",
    "tables",
    multiple=True,
    type=click.Choice([name for name in TABLES if name != "packets"]),
    help=f"Table to write. May be given often. Default: {', '.join(USUAL_TABLES)}.",
)
@click.option(
    "--checkpoint",
    metavar="DIR",
    help="Folder that keeps how far the stream has read. Default: OUT/_checkpoint.",
)
@click.option("--available-now", is_flag=True, help="Read what is there, then end.")
@click.option(
    "--close",
    "closes",
    is_flag=True,
    help="With --available-now: nothing more comes, so write what is still open.",
)
@click.option(
    "--drain",
    "drains",
    is_flag=True,
    help="With --available-now: write what is open, so that another release can go on.",
)
@click.option(
    "--trigger",
    type=SpanOption("s", 0),
    default=10.0,
    show_default=True,
    metavar="TIME",
    help="Time between two looks for files: 10, 500ms, 1m.",
)
@click.option(
    "--settle",
    type=SpanOption("s", 0),
    default=SETTLE_SECONDS,
    show_default=True,
    metavar="TIME",
    help="Report an incomplete file when nobody has written to it for this long.",
)
@click.option(
    "--max-bytes-per-batch",
    type=click.IntRange(1),
    metavar="N",
    help="Bytes of files in one batch; at least one file.",
)
@content_options
@session_options
def command(**given: Any) -> int:
    """A folder in which rotated captures appear → Parquet that grows, each row exactly once.

    If it is killed, start it again with the same folders: it goes on where it was.
    """
    for option in ("close", "drain"):
        if given[f"{option}s"] and not given["available_now"]:
            raise Wrong(f"--{option} needs --available-now")
    if given["closes"] and given["drains"]:
        raise Wrong("--close says that nothing more comes, --drain that more comes: give one of them")
    if not os.path.isdir(given["folder"]):
        why = "a stream reads a folder of this machine" if is_remote(given["folder"]) else "is no folder"
        raise Unreadable(f"{given['folder']}: {why}")
    if is_connect(given["master"]):
        raise Wrong(
            "a stream keeps its state beside its driver: give it a master, not a Spark Connect server"
        )
    folder = os.path.abspath(given["folder"])
    for option in ("out", "checkpoint"):
        _refuse_inside(folder, option, given[option])
    refuse_file(given["out"])
    settings = settings_of(given)
    names = tuple(dict.fromkeys(given["tables"])) or USUAL_TABLES
    checkpoint = _checkpoint(given, names)
    states = States(os.path.join(checkpoint, "state"))
    try:
        states.prepare()
        now = told(names, (), settings)
        change = difference(first(os.path.join(checkpoint, _ASKED), now), now)
    except (StateError, OSError) as error:
        raise Wrong(str(error)) from None
    if change is not None:
        raise Wrong(f"{change}, as in the batches before, or give another --out")
    with running(given) as (spark, scratch):
        from kdissect.spark.stream import Tables, start

        def shown(batch: int) -> Meter:
            waiting = sum(read.size for read in files_in(folder).values()) - states.bytes_read()
            return Meter(scratch or "", waiting, f"batch {batch}")

        talks = scratch is not None and sys.stderr.isatty() and not given["quiet"]
        settings = settings._replace(progress=scratch)
        tables = Tables(
            within_reach(given["out"], given["master"]),
            states.folder,
            names,
            settings,
            tell_damage,
            shown if talks else None,
        )
        trigger = (
            {"availableNow": True}
            if given["available_now"]
            else {"processingTime": f"{given['trigger']} seconds"}
        )
        at_most, settle = given["max_bytes_per_batch"], given["settle"]
        query = start(
            spark, folder, tables, os.path.join(checkpoint, "spark"), settings, at_most, settle, trigger
        )
        # Nothing stops the query on Ctrl-C: the JVM gets the same signal and may be gone.
        query.awaitTermination()
        if given["closes"]:
            tables.end(spark)
        if given["drains"]:
            tables.drain(spark)
    return DONE


def _refuse_inside(folder: str, option: str, path: str | None) -> None:
    """:raises Wrong: what is written there would be read."""
    if path is None or is_remote(path):
        return
    if os.path.commonpath((folder, os.path.abspath(path))) == folder:
        raise Wrong(f"--{option} {path}: is in {folder}, whose files are read; take another folder")


def _checkpoint(given: dict[str, Any], names: Sequence[str]) -> str:
    """The folder in which is kept how far the stream is.

    :raises Wrong: it is elsewhere; or it is new, and the tables are not: their rows would come again.
    """
    out, named = given["out"], given["checkpoint"]
    if is_remote(named or out):
        asks = "" if named else ": name a local folder with --checkpoint"
        raise Wrong(f"{named or out}: the checkpoint of a stream must be on this machine{asks}")
    path = os.path.abspath(named or os.path.join(out, "_checkpoint"))
    for table in () if is_remote(out) or os.path.isdir(os.path.join(path, "spark")) else names:
        if os.path.isdir(there := os.path.join(out, table)):
            raise Wrong(f"{there} exists already, but {path} does not mention it; give another --out")
    return path
