"""``kdissect spark stream``."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from kdissect.cli.errors import Unreadable, Wrong
from kdissect.cli.spans import SpanOption
from kdissect.cli.spark_sessions import (
    USUAL_TABLES,
    FaultPrinter,
    content_options,
    refuse_unwritable,
    running,
    session_options,
    settings_of,
    within_reach,
)
from kdissect.model import CaptureError
from kdissect.spark.changes import FINDING_CHANGES
from kdissect.spark.cleaning import KEEP, destination
from kdissect.spark.launch import STREAMS_SINCE, can_stream, is_connect
from kdissect.spark.progress import Meter
from kdissect.spark.provenance import KNOWN
from kdissect.spark.run_request import difference, first, stored_request
from kdissect.spark.spool import CHECKPOINT, SETTLE_SECONDS, files_in
from kdissect.spark.states import StateError, States, state_key
from kdissect.spark.storage import (
    is_folder,
    is_inside,
    is_remote,
    join,
    plain_path,
    refuse_no_folder,
    without_query,
)
from kdissect.spark.tables import TABLES
from kdissect.wording import how_to_install

if TYPE_CHECKING:
    from kdissect.spark.metrics import StreamMetrics
    from kdissect.spark.questions import Judgement
    from kdissect.spark.settings import TableSettings


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
    "--findings",
    "finds",
    is_flag=True,
    help="Judge each batch together with all earlier ones. The table findings lists what changes.",
)
@click.option(
    "--checkpoint",
    metavar="DIR",
    help="Folder that keeps how far the stream has read. Default: OUT/_checkpoint.",
)
@click.option(
    "--state-key",
    metavar="FILE",
    help="Key that signs the state in an object store. Default: ~/.local/state/kdissect/spark.key.",
)
@click.option(
    "--when-read",
    default=KEEP,
    show_default=True,
    metavar="keep|delete|move:DIR",
    help="What to do with a capture in DIR after all of it has been read.",
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
    help="With --available-now: write what is open, or end the state of another release.",
)
@click.option(
    "--trigger",
    type=SpanOption("s", 0),
    default=10.0,
    show_default=True,
    metavar="TIME",
    help="Time between two searches for new files: 10, 500ms, 1m.",
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
@click.option(
    "--prometheus",
    metavar="[ADDRESS]:PORT",
    help="Serve metrics at this address, without a password: batches, rows, faults. "
    "Without ADDRESS only this machine can read them. Needs kdissect[metrics].",
)
@content_options
@session_options
def command(**given: Any) -> int:
    """A folder in which rotated captures appear → Parquet that grows, each row exactly once.

    If it is killed, start it again with the same folders: it goes on where it stopped.
    """
    for option in ("close", "drain"):
        if given[f"{option}s"] and not given["available_now"]:
            raise Wrong(f"--{option} needs --available-now")
    if given["closes"] and given["drains"]:
        raise Wrong("--close says that nothing more comes, --drain that more comes: give one of them")
    folder = _folder(given["folder"])
    if is_connect(given["master"]):
        raise Wrong(
            "a stream keeps its state beside its driver: give it a master, not a Spark Connect server"
        )
    for option in ("out", "checkpoint"):
        _refuse_inside(folder, option, given[option])
    when_read = _when_read(given, folder)
    refuse_unwritable(given["out"], given["master"])
    if given["checkpoint"] is not None:
        refuse_unwritable(given["checkpoint"], given["master"], f"--checkpoint {given['checkpoint']}")
    settings = settings_of(given)
    names = tuple(dict.fromkeys(given["tables"])) or USUAL_TABLES
    written = (*names, FINDING_CHANGES.name) if given["finds"] else names
    checkpoint = _checkpoint(given)
    try:
        key = state_key(given["state_key"]) if given["state_key"] or is_remote(checkpoint) else None
        states = States(
            join(checkpoint, "state"),
            key,
            ends_others=given["drains"],
            how_to_end="give the same command once with --available-now --drain",
        )
        states.prepare()
        now = stored_request(written, (), settings)
        change = difference(first(checkpoint, now), now)
    except (StateError, CaptureError, OSError) as error:
        raise Wrong(str(error)) from None
    if change is not None:
        raise Wrong(f"{change}, as in the batches before, or give another --out")
    metrics = _metrics(given["prometheus"])
    with running(given) as (spark, scratch, *_):
        if not can_stream():
            raise Wrong(f"a stream needs Spark {STREAMS_SINCE} or newer; this is {spark.version}")
        from kdissect.spark.stream import Tables, start

        def shown(batch: int) -> Meter:
            waiting = sum(read.size for read in files_in(folder).values()) - states.bytes_read()
            return Meter(scratch or "", waiting, f"batch {batch}")

        told_faults = FaultPrinter()
        talks = scratch is not None and sys.stderr.isatty() and not given["quiet"]
        settings = settings._replace(progress=scratch)
        tables = Tables(
            within_reach(given["out"], given["master"]),
            states,
            names,
            settings,
            told_faults.print_faults,
            shown if talks else None,
            _judgement(settings) if given["finds"] else None,
            metrics,
        )
        trigger = (
            {"availableNow": True}
            if given["available_now"]
            else {"processingTime": f"{given['trigger']} seconds"}
        )
        at_most, settle = given["max_bytes_per_batch"], given["settle"]
        kept = without_query(join(checkpoint, "spark"))
        query = start(spark, folder, tables, kept, settings, at_most, settle, trigger, when_read)
        # Nothing here stops the query on Ctrl-C: the JVM gets the same signal and may be gone already.
        query.awaitTermination()
        if given["closes"]:
            tables.end(spark)
        if given["drains"]:
            tables.drain(spark)
    return told_faults.exit_code


def _folder(text: str) -> str:
    """The absolute path of the folder to read.

    :raises Unreadable: it does not exist, or cannot be listed.
    """
    try:
        refuse_no_folder(text, text, "the captures")
    except (OSError, CaptureError) as error:
        raise Unreadable(str(error)) from None
    return text if is_remote(text) else os.path.abspath(plain_path(text))


def _when_read(given: dict[str, Any], folder: str) -> str:
    """What happens to captures after they were read.

    :raises Wrong: it is not understood, or moved captures would be read again.
    """
    text = str(given["when_read"])
    try:
        place = destination(text)
    except ValueError as error:
        raise Wrong(f"--when-read {error}") from None
    if place is None:
        return text
    _refuse_inside(folder, "when-read", place)
    return text if is_remote(place) else f"move:{os.path.abspath(place)}"


def _metrics(text: str | None) -> StreamMetrics | None:
    """The metrics that are counted and served.

    :raises Wrong: they cannot be served.
    """
    if text is None:
        return None
    from kdissect.live.metrics import address_of
    from kdissect.spark.metrics import StreamMetrics

    try:
        metrics = StreamMetrics()
        metrics.serve(*address_of(text))
    except ValueError as error:
        raise Wrong(f"--prometheus {error}") from None
    except ImportError:
        raise Wrong(f"--prometheus needs prometheus-client: {how_to_install('metrics')}") from None
    except OSError as error:
        raise Wrong(f"--prometheus {text}: {error.strerror or error}") from None
    return metrics


def _judgement(settings: TableSettings) -> Judgement:
    """The settings for judging findings, as explain has them."""
    from kdissect.cli.config import load_config
    from kdissect.spark.questions import Judgement

    config = load_config()
    return Judgement(settings.limits, config.thresholds, tuple(config.ignored))


def _refuse_inside(folder: str, option: str, path: str | None) -> None:
    """:raises Wrong: the stream would read what is written there."""
    if path is not None and is_inside(path, folder):
        raise Wrong(f"--{option} {path}: is in {folder}, whose files are read; take another folder")


def _checkpoint(given: dict[str, Any]) -> str:
    """The folder that keeps how far the stream has read.

    :raises Wrong: it is new and the tables are not, so their rows would come again.
    """
    out, named = given["out"].rstrip("/"), given["checkpoint"]
    path = named.rstrip("/") if named else join(out, CHECKPOINT)
    if not is_remote(path):
        path = os.path.abspath(path)
    try:
        if not is_folder(join(path, "spark")):
            for table in KNOWN:
                if is_folder(there := join(out, table)):
                    raise Wrong(f"{there} exists already, but {path} does not mention it; give another --out")
    except CaptureError as error:
        raise Wrong(str(error)) from None
    return path
