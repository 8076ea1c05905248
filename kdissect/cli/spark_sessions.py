"""The parts that Spark commands share: options, settings, and the session of a run."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kdissect.cli.config import load_config
from kdissect.cli.errors import Complaints, Unreadable, Wrong
from kdissect.cli.exit_codes import DONE, UNREADABLE
from kdissect.cli.inputs import ports_of
from kdissect.cli.output import QUIET
from kdissect.cli.payloads import payload_options, refuse_registry, rules_of
from kdissect.cli.tls_keys import rsa_key_of
from kdissect.faults import leaves_out
from kdissect.model import CaptureError, Fault
from kdissect.present.form import plural
from kdissect.spark.spark_errors import is_of_spark, is_stopped, own_error, why, why_killed
from kdissect.spark.storage import is_remote, plain_path, refuse_no_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kdissect.spark.settings import TableSettings

USUAL_TABLES = ("exchanges", "connections", "faults")
"""The tables that are written by default."""
_TRIES = 3
"""How often to try to make a folder if the folder above it disappears meanwhile."""


def session_options(function: Any) -> Any:
    """The options that say where Spark is, and which of its messages are shown."""
    options = (
        click.option("--master", default="local[*]", show_default=True, help="Spark's master, or sc://HOST."),
        click.option("--conf", multiple=True, metavar="KEY=VALUE", help="Spark's configuration."),
        click.option(
            "--spark-log", metavar="FILE", help="File for Spark's own messages; - is stderr. Default: none."
        ),
        QUIET,
    )
    for each in reversed(options):
        function = each(function)
    return function


def reading_options(function: Any) -> Any:
    """The options on how captures are read."""
    options = (
        click.option("-d", "decode_as", multiple=True, metavar="tcp.port==N,kafka", help="As for read."),
        click.option("--keylog", multiple=True, metavar="FILE", help="TLS secrets. Workers read this file."),
        click.option(
            "--rsa-key",
            multiple=True,
            metavar="FILE",
            help="Private key of a broker. Workers read this file.",
        ),
        click.option(
            "--capture-point", metavar="REGEX", help="Which part of a path names the capture point."
        ),
    )
    for each in reversed(options):
        function = each(function)
    return function


def content_options(function: Any) -> Any:
    """The options on how captures are read and values are shown."""
    options = (
        click.option(
            "--payload",
            default="full",
            metavar="none|head:N|full",
            help="Which keys, values and bodies to keep: none, the first N bytes of each, all.",
        ),
        click.option(
            "--records", is_flag=True, help="Show decoded record batches inside requests and responses."
        ),
        click.option("--embedded", is_flag=True, help="Decode bytes inside messages and records too."),
        payload_options,
        click.option("--show-secrets", is_flag=True, help="Show passwords, tokens and keys."),
    )
    for each in reversed(options):
        function = each(function)
    return reading_options(function)


def settings_of(given: dict[str, Any]) -> TableSettings:
    """The settings of the options and the configuration.

    :raises Wrong: one of them is wrong.
    :raises Unreadable: a key log is missing, or a key cannot be used.
    """
    from kdissect.spark.row_filter import Choice
    from kdissect.spark.settings import TableSettings

    config = load_config()
    refuse_registry(given)
    names = ["payload", "capture_point", "records", "embedded", "show_secrets", "filter", "two_pass"]
    names += ["tasks", "keylog", "rsa_key"]
    options = {name: given[name] for name in names if given.get(name) is not None}
    options["ports"] = config.ports | ports_of(given["decode_as"])
    options["schemas"] = given.get("schemas") or config.schemas
    options["decode_as"] = rules_of(given, config)
    options |= {"topics": config.topics, "limits": config.limits, "shown_fields": config.shown_fields}
    for path in given["keylog"]:
        if "://" not in path and not os.path.exists(path):
            raise Unreadable(f"{path}: there is no such key log")
    for path in given["rsa_key"]:
        rsa_key_of(path)
    try:
        settings = TableSettings.of(options)
        Choice(settings)
    except (ValueError, LookupError) as error:
        raise Wrong(str(error.args[0])) from None
    return settings


class FaultPrinter:
    """Prints a line for each fault of a file, up to a limit for each call."""

    def __init__(self) -> None:
        self.exit_code = DONE
        """The exit code of a command that did everything else: 3 if anything of a file was left out, as for
        ``read``."""

    def print_faults(self, faults: Iterable[Fault]) -> None:
        """Print them."""
        complaints = Complaints()
        for each in faults:
            complaints.report_fault(None, each)
            if leaves_out(each):
                self.exit_code = UNREADABLE
        complaints.close()


class RunSummary(NamedTuple):
    """The result of a command, for its closing line."""

    tables: int
    rows: int | None
    """The rows of all tables; None if unknown."""
    read: int
    """The bytes of captures that all tasks read together."""
    size: int
    """The size of the captures in bytes."""
    damage: int
    """The number of faults of files."""
    faults: int | None = None
    """The number of all faults, if they were counted."""

    def line(self, seconds: float) -> str:
        """The closing line.

        :param seconds: how long the command took.
        """
        told = plural(self.tables, "table") + ("" if self.rows is None else f", {plural(self.rows, 'row')}")
        often = f", {self.read / self.size:.2f} times their size" if self.size else ""
        of_files = f"{plural(self.damage, 'fault') if self.damage else 'no faults'} of files"
        if self.faults:
            of_files = f"{plural(self.faults, 'fault')}, {self.damage or 'none'} of files"
        return f"{told}; {self.read:,} bytes of captures were read{often}, in {seconds:.1f} s; {of_files}"


def within_reach(path: str, master: str) -> str:
    """A path that others can use: processes outside of this machine have another working directory."""
    return path if "://" in path or master.startswith("local") else os.path.abspath(path)


def refuse_no_tables(folder: str, given: str) -> None:
    """Check that a folder with tables exists.

    :param given: the folder as the user named it.
    :raises Unreadable: it does not exist, is a file, or cannot be listed.
    """
    try:
        refuse_no_folder(folder, given)
    except (OSError, CaptureError) as error:
        raise Unreadable(str(error)) from None


def refuse_unwritable(folder: str, master: str, given: str | None = None) -> None:
    """Check, before Spark starts, that tables can be written to a folder.

    :param given: the option as the user gave it, such as ``--to delta:PLACE``; by default ``--out`` and the
        folder.
    :raises Wrong: it is a file, or in a file, or this machine cannot make it or write in it. If the workers
        are on other machines, the last two do not matter.
    """
    if is_remote(folder):
        return
    given = given or f"--out {folder}"
    is_named = given.endswith(folder)
    whole = os.path.abspath(plain_path(folder))
    path, missing = _nearest_folder(whole)
    name = "" if whole == path and is_named else f"{path} "
    if os.path.isfile(path):
        raise Wrong(f"{given}: {name}is a file; name a folder")
    if not master.startswith("local"):
        return
    if not os.path.isdir(path) and os.path.lexists(path):
        raise Wrong(f"{given}: {name}is no folder; name another one")
    error = _refused(whole)
    if error is not None:
        verb = "made" if missing is not None else "written to"
        what = "this folder" if is_named else folder
        raise Wrong(f"{given}: {what} cannot be {verb} ({error.strerror}); name another one")


def _nearest_folder(path: str) -> tuple[str, str | None]:
    """The folder, or the nearest existing one above it; and the first one that is missing."""
    missing = None
    while not os.path.lexists(path):
        missing, path = path, os.path.dirname(path)
    return path, missing


def _refused(folder: str) -> OSError | None:
    """Why this machine cannot make a folder or write in it; None if it can. Other processes may try the same
    at the same time."""
    error: OSError | None = None
    for _ in range(_TRIES):
        path, missing = _nearest_folder(folder)
        if missing is None:
            if os.access(path, os.W_OK | os.X_OK):
                return None
            return PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        try:
            os.mkdir(missing, 0o700)
        except FileExistsError:
            return None  # another process made it
        except FileNotFoundError as absent:
            error = absent  # another process removed the folder above, which it had made to try
        except OSError as refused:
            return refused
        else:
            with suppress(OSError):  # another process already uses it
                os.rmdir(missing)
            return None
    return error


class Running(NamedTuple):
    """A session, and a folder that its workers share with this process."""

    spark: SparkSession
    scratch: str | None
    log: str | None
    """The file of Spark's messages; None if they go to stderr."""


@contextmanager
def running(given: dict[str, Any]) -> Iterator[Running]:
    """A session for a command. It is not stopped: Spark ends with this process, which is faster.

    :raises Wrong: it cannot be started, or something done in it fails.
    :raises Unreadable: a worker cannot read the input.
    """
    from kdissect.spark.launch import NoSparkError, logging_to, scratch_folder, session

    conf = conf_of(given)
    scratch = given.get("scratch")
    if scratch is not None and not os.path.isdir(scratch):
        raise Wrong(f"--scratch {scratch}: there is no such folder; name one that the workers share")
    wanted = given["spark_log"]
    descriptor, kept = tempfile.mkstemp(prefix="kdissect-spark-", suffix=".log")
    os.close(descriptor)
    log = None if wanted == "-" else wanted or kept
    try:
        with logging_to(log), scratch_folder(scratch) as folder:
            spark = session(given["master"], conf, log)
            shared = scratch or given["master"].startswith("local")
            yield Running(spark, folder if shared else None, log)
    except NoSparkError as error:
        if kept in str(error):  # the message refers to it
            kept = ""
        raise Wrong(str(error)) from None
    except (click.ClickException, KeyboardInterrupt):
        raise
    except Exception as error:
        if not is_of_spark(error):
            raise
        if (own := own_error(error)) is not None:
            kind = Unreadable if own.name == CaptureError.__name__ else Wrong
            raise kind(own.words) from None
        words, kept_log = why(error), kept
        kept = ""
        if is_stopped(words):
            reason = None if log is None else why_killed(log)
            ended = "its application has ended" + ("" if reason is None else f" ({reason.rstrip('.!')})")
            words = f"{ended}; kdissect doctor spark --cluster {given['master']} says more"
        raise Wrong(
            f"Spark failed: {words}" + ("" if log is None else f" ({wanted or kept_log} says more)")
        ) from None
    finally:
        if kept:
            os.unlink(kept)


def conf_of(given: dict[str, Any]) -> dict[str, str]:
    """Spark's configuration.

    :raises Wrong: an entry is not KEY=VALUE.
    """
    return dict(_pair(each) for each in given["conf"])


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise Wrong(f"--conf {text}: the form is KEY=VALUE")
    return key, value
