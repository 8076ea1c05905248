"""The files of targets, which tasks or Spark wrote, on their way into a table."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from kdissect.spark.storage import file_system, is_remote, join, plain_path, without_query
from kdissect.spark.writing import move_files, remove

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""Spark's name of the folder for null."""
_LONGEST = 64
"""The most characters of a minimum or maximum text in a commit. Longer texts would make commits large."""


class TargetError(Exception):
    """Tables cannot be written there; the text is one line."""


class Staged(NamedTuple):
    """A table in files that tasks wrote, in a folder without readers yet."""

    folder: str
    files: tuple[str, ...]
    """The files with its rows, in order. The folder may have others, which these replace."""
    schema: pa.Schema


class WrittenFile(NamedTuple):
    """A file that Spark wrote."""

    path: str
    """The path in the folder."""
    uri: str
    size: int
    modified_ms: int
    partition: dict[str, str | None]
    stats: str
    """Delta's statistics of its columns, in JSON. Readers use them to skip files without opening these."""


def label_of(run: int | None) -> str:
    """The name of a run's files and commits."""
    return uuid.uuid4().hex if run is None else str(run)


def write_files(frame: DataFrame | Staged, path: str, parts: Sequence[str], mode: str) -> None:
    """Write a table into a folder.

    :param frame: its rows; staged files have no partitions, and are moved there.
    :param mode: Spark's mode: ``overwrite`` or ``error``.
    :raises TargetError: files cannot be moved there.
    """
    if not isinstance(frame, Staged):
        frame.write.mode(mode).option("compression", "zstd").partitionBy(*parts).parquet(without_query(path))
        return
    assert not parts
    try:
        if mode == "overwrite":
            remove(path)
        move_files(frame.files, frame.folder, path)
    except OSError as error:
        raise TargetError(f"{path}: cannot be written: {error.strerror or error}") from None


def arrow_of(frame: DataFrame | Staged) -> Any:
    """The schema of its rows."""
    if isinstance(frame, Staged):
        return frame.schema
    from pyspark.sql.pandas.types import to_arrow_schema

    # Spark 4.1 needs no zone: moments are in UTC there.
    zone: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    return to_arrow_schema(frame.schema, **zone)


def written_files(folder: str) -> Iterator[WrittenFile]:
    """The files that Spark wrote into a folder, with their statistics for commits."""
    import pyarrow.parquet as pq
    from pyarrow import fs

    system, root = file_system(folder) if is_remote(folder) else (fs.LocalFileSystem(), plain_path(folder))
    for info in system.get_file_info(fs.FileSelector(root, recursive=True)):
        if info.type != fs.FileType.File or not info.base_name.endswith(".parquet"):
            continue
        path = info.path[len(root.rstrip("/")) + 1 :]
        with system.open_input_file(info.path) as file:
            stats = stats_of(pq.read_metadata(file))
        pairs = (word.partition("=")[::2] for word in path.split("/")[:-1])
        partition = {key: None if value == _NO_PARTITION else unquote(value) for key, value in pairs}
        modified = int((info.mtime_ns or 0) // 1_000_000)
        yield WrittenFile(path, join(folder, path), info.size, modified, partition, json.dumps(stats))


def stats_of(metadata: Any) -> dict[str, Any]:
    """Delta's statistics of a Parquet file: the number of rows, and the nulls of each column that is no list.
    They also have the minimum and maximum integer, moment or short text of a column.

    :param metadata: the metadata of pyarrow.
    """
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    for at in range(metadata.num_columns):
        name = metadata.schema.column(at).path
        found = [group.column(at).statistics for group in groups]
        if "." in name or not all(each is not None and each.has_null_count for each in found):
            continue
        nulls[name] = sum(each.null_count for each in found)
        valued = [each for each in found if each.num_values]
        if not valued or not all(each.has_min_max for each in valued):
            continue
        ends = min(each.min for each in valued), max(each.max for each in valued)
        told = [_bound_for_delta(end) for end in ends]
        if None not in told:
            least[name], most[name] = told
    return {"numRecords": metadata.num_rows, "minValues": least, "maxValues": most, "nullCount": nulls}


def _bound_for_delta(value: Any) -> int | str | None:
    """A minimum or maximum in Delta's form; None if Delta does not store it."""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, str):
        return value if len(value) <= _LONGEST else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
