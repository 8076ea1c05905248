"""What commands that use Spark share: options, settings, and a session while one runs."""

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
from kdissect.spark.complaint import is_of_spark, why
from kdissect.spark.storage import is_remote, plain_path, refuse_no_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kdissect.spark.settings import TableSettings

USUAL_TABLES = ("exchanges", "connections", "faults")
"""What is written where no table is named."""
_TRIES = 3
"""So often the making of a folder is tried, if the folder above it is gone then."""


def session_options(function: Any) -> Any:
    """What says where Spark is, and what is heard of it."""
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
    """What says how captures are read."""
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
    """What says how captures are read and values shown."""
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
    """What the options and the configuration ask for.

    :raises Wrong: one of them is wrong.
    :raises Unreadable: a key log is missing, or a key cannot be used.
    """
    from kdissect.spark.choice import Choice
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


class ToldFaults:
    """Prints a line for each fault of a file, up to a limit each time."""

    def __init__(self) -> None:
        self.exit_code = DONE
        """How a command ends that did all else: 3 if anything of a file was left out, as for ``read``."""

    def tell(self, faults: Iterable[Fault]) -> None:
        """Print them."""
        complaints = Complaints()
        for each in faults:
            complaints.tell(None, each)
            if leaves_out(each):
                self.exit_code = UNREADABLE
        complaints.close()


class RunSummary(NamedTuple):
    """What a command did, for its closing line."""

    tables: int
    rows: int | None
    """Of all tables; None if that is not known."""
    read: int
    """Bytes of captures that all tasks read together."""
    size: int
    """Bytes of the captures."""
    damage: int
    """Faults of files."""
    faults: int | None = None
    """All faults, if they were counted."""

    def line(self, seconds: float) -> str:
        """The line.

        :param seconds: how long it took.
        """
        told = plural(self.tables, "table") + ("" if self.rows is None else f", {plural(self.rows, 'row')}")
        often = f", {self.read / self.size:.2f} times their size" if self.size else ""
        of_files = f"{plural(self.damage, 'fault') if self.damage else 'no faults'} of files"
        if self.faults:
            of_files = f"{plural(self.faults, 'fault')}, {self.damage or 'none'} of files"
        return f"{told}; {self.read:,} bytes of captures were read{often}, in {seconds:.1f} s; {of_files}"


def within_reach(path: str, master: str) -> str:
    """A path as others find it: whoever is not on this machine's master has another working directory."""
    return path if "://" in path or master.startswith("local") else os.path.abspath(path)


def refuse_no_tables(folder: str, given: str) -> None:
    """See whether a folder with tables is there.

    :param given: how it was named.
    :raises Unreadable: it is not there, is a file, or cannot be listed.
    """
    try:
        refuse_no_folder(folder, given)
    except (OSError, CaptureError) as error:
        raise Unreadable(str(error)) from None


def refuse_unwritable(folder: str, master: str, given: str | None = None) -> None:
    """See before Spark starts whether tables can be written to a folder.

    :param given: how it was named, such as ``--to delta:PLACE``; ``--out`` and the folder unless it is told.
    :raises Wrong: it is a file, or in one, or this machine cannot make it or write in it. If the workers are
        on other machines, the last two are no matter here.
    """
    if is_remote(folder):
        return
    given = given or f"--out {folder}"
    is_named = given.endswith(folder)
    whole = os.path.abspath(plain_path(folder))
    path, missing = _there(whole)
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


def _there(path: str) -> tuple[str, str | None]:
    """The folder, or the next one above it that is there; and the first one that is missing."""
    missing = None
    while not os.path.lexists(path):
        missing, path = path, os.path.dirname(path)
    return path, missing


def _refused(folder: str) -> OSError | None:
    """Why this machine cannot make a folder or write in it; None where it can. Others may try the same."""
    error: OSError | None = None
    for _ in range(_TRIES):
        path, missing = _there(folder)
        if missing is None:
            if os.access(path, os.W_OK | os.X_OK):
                return None
            return PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        try:
            os.mkdir(missing, 0o700)
        except FileExistsError:
            return None  # somebody else made it
        except FileNotFoundError as absent:
            error = absent  # somebody else took the one above it away, which was made to try
        except OSError as refused:
            return refused
        else:
            with suppress(OSError):  # somebody else uses it by now
                os.rmdir(missing)
            return None
    return error


class Running(NamedTuple):
    """A session, and a folder that its workers share with us."""

    spark: SparkSession
    scratch: str | None


@contextmanager
def running(given: dict[str, Any]) -> Iterator[Running]:
    """A session for a command. It is not stopped: Spark ends with us, and sooner that way.

    :raises Wrong: it cannot be had, or what is done in it fails.
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
            yield Running(spark, folder if shared else None)
    except NoSparkError as error:
        if kept in str(error):  # who reads it is sent there
            kept = ""
        raise Wrong(str(error)) from None
    except (click.ClickException, KeyboardInterrupt):
        raise
    except Exception as error:
        if not is_of_spark(error):
            raise
        words, kept_log = why(error), kept
        kept = ""
        raise Wrong(
            f"Spark failed: {words}" + ("" if log is None else f" ({wanted or kept_log} says more)")
        ) from None
    finally:
        if kept:
            os.unlink(kept)


def conf_of(given: dict[str, Any]) -> dict[str, str]:
    """Spark's configuration.

    :raises Wrong: something in it is no pair.
    """
    return dict(_pair(each) for each in given["conf"])


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise Wrong(f"--conf {text}: the form is KEY=VALUE")
    return key, value
