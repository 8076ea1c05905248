"""The pipeline on Spark: captures → DataFrames.

    import kdissect.spark
    frame = kdissect.spark.exchanges(spark, ["/captures/broker-1/*.pcap.zst"])
    frame.where("error is not null").groupBy("api", "error").count().show()

or, after :func:`register`, ``spark.read.format("kdissect").load(paths)``. The rows and their numbers are
those of ``kdissect read`` for the same files.

    kdissect.spark.stats(spark, paths, "srt,client_id").orderBy("p99_ns", ascending=False).show()
    kdissect.spark.findings(spark, paths).where("severity = 'critical'").show()

are the rows of ``kdissect stats`` and ``kdissect explain --all``.

The interface has only DataFrames, so it also works with Spark Connect. kdissect must be installed on the
workers.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from kdissect.model import CaptureError
from kdissect.spark.copies import merged
from kdissect.spark.settings import TableSettings
from kdissect.spark.storage import InputFile, list_files, refuse_password, refuse_unreadable, without_query
from kdissect.spark.stored import all_stored
from kdissect.spark.workers import warn_without_kdissect
from kdissect.wording import plural

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kdissect.spark.folds import CountedPoints

__all__ = [
    "exchanges",
    "findings",
    "merged",
    "progress_bar",
    "register",
    "statistics",
    "stats",
    "table",
    "views",
]

_MOST = 200
"""The most characters of paths in a plan."""

Paths = str | PathLike[str] | Iterable[str | PathLike[str]]


def register(spark: SparkSession) -> None:
    """Make ``spark.read.format("kdissect")`` known to a session.

    If a file is damaged, the driver warns when it is read, also by ``readStream``. Spark Connect returns
    rows only: look at the table ``faults`` there.
    """
    from kdissect.spark.fault_reports import fault_accumulator
    from kdissect.spark.scans import give_rule
    from kdissect.spark.source import CaptureSource, called, make_known

    warn_without_kdissect(spark)
    give_rule(spark)
    make_known(spark, called(CaptureSource.name(), fault_accumulator(spark)))


def table(
    spark: SparkSession,
    paths: Paths,
    name: str,
    *,
    pushdown: bool = True,
    **options: Any,
) -> DataFrame:
    """A table of captures: ``exchanges``, ``records``, ``batches``, ``connections``, ``faults``, ``packets``.

    Spark reads the captures whenever it needs the rows, so each action reads them again.
    ``kdissect spark batch`` makes several tables in one pass.

    :param paths: files, directories and globs, of this file system or as URIs. Together they are one
        capture, unless ``capture_point`` distinguishes several.
    :param name: the name of the table.
    :param pushdown: whether Spark reads the captures as a data source. Without it, Spark needs no plan from
        the driver's Python: it starts some seconds sooner, and may use another Python there. But it then
        makes all columns and rows, whatever a query needs. The option ``filter`` chooses rows before they are
        made.
    :param options: those of :class:`~kdissect.spark.settings.TableSettings`.
    :raises ValueError: an option cannot have this value, or a URI has a password in it.
    :raises LookupError: there is no such option or table.
    :raises CaptureError: the paths match no file, or none of the files is a capture.
    """
    settings = TableSettings.of({**options, "table": name})
    if settings.stats is not None:
        raise ValueError("stats: is an option of the data source; kdissect.spark.stats gives statistics")
    settings.chosen_table()  # a column that does not exist is reported at once
    given = _listed(paths)
    for path in given:
        refuse_password(path)  # the plan shows paths
    if not pushdown:
        warn_without_kdissect(spark)
        from kdissect.spark.source import replicated

        return replicated(spark, settings, given)
    from kdissect.spark.fault_reports import fault_accumulator
    from kdissect.spark.source import called, make_known

    files = None if _is_elsewhere(spark) else list_files(given)
    if files is not None:
        refuse_unreadable([file.path for file in files])  # if nothing can be read, that is reported at once
    register(spark)
    title = _title(name, given, files)
    make_known(spark, called(title, fault_accumulator(spark)))
    return spark.read.format(title).options(**settings.options()).load(given)


def _title(name: str, given: list[str], files: list[InputFile] | None) -> str:
    """The title in ``explain``: the table and its captures.

    :param files: the files of the paths; None if only Spark can read the paths.
    """
    if files is None:
        what = plural(len(given), "path")
    else:
        size = sum(file.size for file in files)
        what = f"{plural(len(files), 'file')}, {size / (1 << 20):,.1f} MiB"
    paths = ", ".join(map(without_query, given))
    return f"kdissect: {name} of {what}: {paths if len(paths) <= _MOST else paths[:_MOST] + '…'}"


def _is_elsewhere(spark: SparkSession) -> bool:
    """Whether captures are on a server of Spark Connect, and not here."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _listed(paths: Paths) -> list[str]:
    return [fspath(path) for path in ([paths] if isinstance(paths, str | PathLike) else paths)]


def _present(spark: SparkSession, paths: Paths) -> list[str]:
    """The paths, after checking that at least one is a capture, if this machine can check it.

    :raises CaptureError: none is.
    """
    given = _listed(paths)
    if not _is_elsewhere(spark):
        refuse_unreadable([file.path for file in list_files(given)])
    warn_without_kdissect(spark)
    return given


def exchanges(spark: SparkSession, paths: Paths, **options: Any) -> DataFrame:
    """The exchanges of captures; parameters as for :func:`table`."""
    return table(spark, paths, "exchanges", **options)


def stats(spark: SparkSession, paths: Paths, asked: str, **options: Any) -> DataFrame:
    """A statistic of captures, as ``kdissect stats -z`` prints it: ``"srt"``, ``"srt,client_id"``,
    ``"io,1s"``. ``"findings"`` gives the rows of :func:`findings`.

    Parameters and exceptions are those of :func:`statistics`.
    """
    return statistics(spark, paths, [asked], **options)[asked]


def statistics(
    spark: SparkSession, paths: Paths, asked: Iterable[str], **options: Any
) -> dict[str, DataFrame]:
    """Several statistics by name; the captures are read once for all of them.

    One job reads the captures during this call. The driver then holds the rows (the limit ``rows`` bounds
    them), and no action on a DataFrame reads captures again. The rows have the order of ``kdissect stats``,
    capture point by capture point.

    One task reads and dissects a capture point, several decode and count, and one adds the counts. On a
    cluster, the option ``progress`` names a folder that all tasks share. Without it, each task reads and
    dissects the whole capture point.

    :param options: those of :class:`~kdissect.spark.settings.TableSettings` that say how captures are read
        and what counts. With ``capture_point`` each capture point is counted separately.
    :raises ValueError: a statistic has no such grouping, an option has a wrong value, or an option is for
        rows of exchanges only.
    :raises LookupError: there is no such statistic or option.
    :raises CaptureError: the paths match no file, or none of the files is a capture.
    """
    from kdissect.spark.folds import found
    from kdissect.spark.frames import frame_of
    from kdissect.spark.questions import Judgement, asked_tables

    settings = _of_folds(options)
    wanted = tuple(dict.fromkeys([asked] if isinstance(asked, str) else asked))
    question, titles = asked_tables(wanted, Judgement(settings.limits, {}, ()))
    made = found(spark, settings, _present(spark, paths), question)
    _warn_of_left_out(titles, made.left_out)
    _tell_damage(made)
    tables = dict(zip(titles, made.tables, strict=True))
    return {text: frame_of(spark, tables[text]) for text in wanted}


def findings(
    spark: SparkSession,
    paths: Paths,
    *,
    thresholds: Mapping[str, Mapping[str, float]] | None = None,
    ignored: Collection[str] = (),
    **options: Any,
) -> DataFrame:
    """What is wrong, why, and what to do: the rows of ``kdissect explain --all``, worst first.

    This call reads the captures, as :func:`statistics` does; options and exceptions are the same.

    :param thresholds: thresholds by rule id that replace the usual ones, as in ``[findings.ID]`` of the
        configuration.
    :param ignored: ids of rules, or patterns; these rules do not run.
    :raises ValueError: there is no such rule or threshold, or as for :func:`statistics`.
    """
    from kdissect.settings.rules import refuse_unknown
    from kdissect.spark.folds import found
    from kdissect.spark.frames import frame_of
    from kdissect.spark.questions import Judgement

    settings = _of_folds(options)
    names = (ignored,) if isinstance(ignored, str) else tuple(ignored)
    refuse_unknown(thresholds or {}, names)
    judgement = Judgement(settings.limits, thresholds or {}, names)
    made = found(spark, settings, _present(spark, paths), judgement)
    _tell_damage(made)
    return frame_of(spark, made.tables[0])


@contextmanager
def progress_bar(paths: Paths, folder: str | PathLike[str] | None = None) -> Iterator[str]:
    """Show how far tasks are, with bytes and rates: on stderr, or in the output of a notebook's cell.

        with kdissect.spark.progress_bar(paths) as progress:
            kdissect.spark.stats(spark, paths, "srt", progress=progress).show()

    The context gives the value for the option ``progress``.

    :param folder: a folder that driver and workers share. On one machine you need not name it.
    :raises CaptureError: the paths match no file.
    """
    from kdissect.spark.launch import scratch_folder
    from kdissect.spark.progress import Meter

    total = sum(file.size for file in list_files(_listed(paths)))
    with (
        scratch_folder(None if folder is None else fspath(folder)) as shared,
        Meter(shared, total, "captures"),
    ):
        yield shared


def views(spark: SparkSession, place: str | PathLike[str]) -> list[str]:
    """Make a temporary view of each table that ``spark batch`` or ``spark stats`` wrote.

    Names of views of statistics begin with ``stats_``. Files with different columns become one table; their
    columns are matched by name.

    :param place: the folder of Parquet or Delta, or what ``--to`` named: ``iceberg:CATALOG.NAMESPACE``.
    :returns: the names of the views.
    :raises FileNotFoundError: there is no such folder, or no such table is in it.
    :raises NotADirectoryError: the place is a file.
    :raises CaptureError: the place cannot be listed, or its file system does not answer.
    :raises NotInstalledError: the tables are of Delta or Iceberg, whose library is not installed.
    :raises TargetError: the catalog of Iceberg does not answer, or kdissect did not make a table.
    """
    found = all_stored(spark, fspath(place))
    if not found:
        raise FileNotFoundError(f"{fspath(place)}: has no tables; kdissect spark batch and stats make them")
    for name, frame in found.items():
        frame.createOrReplaceTempView(name)
    return list(found)


_OF_ROWS = ("table", "stats", "columns", "places", "payload", "records", "embedded", "layer")
"""Settings about the rows of ``table``, and their contents."""


def _of_folds(options: Mapping[str, Any]) -> TableSettings:
    settings = TableSettings.of(options)
    for name in _OF_ROWS:
        if getattr(settings, name) != getattr(TableSettings(), name):
            raise ValueError(f"{name}: is an option of tables, not of statistics and findings")
    return settings


def _tell_damage(made: CountedPoints) -> None:
    """Warn of damaged files.

    :raises CaptureError: nothing was read. Only with Spark Connect it is not known earlier.
    """
    from kdissect.spark.fault_reports import warn_of

    messages = [fault.message for fault in made.damage]
    if messages and not made.read:
        raise CaptureError(messages[0])
    warn_of(messages)


def _warn_of_left_out(texts: Iterable[str], left_out: Iterable[int]) -> None:
    for text, count in zip(texts, left_out, strict=True):
        if count:
            words = f"{text}: there are more rows than the limit; kdissect left out {plural(count, 'count')}"
            warnings.warn(words, stacklevel=3)
