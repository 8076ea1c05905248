"""Many small folders of a stream's table → few larger ones, with the same rows in the same order.

A batch has a folder of its own, so that a repeated batch replaces its own rows. Once the next batch has
begun, the previous one is never repeated. Then 32 batches in a row become one folder: ``batch=31``,
``batch=63``, …; 32 of those become one again, and so on. So a table has some ninety folders, and one for each
thirty-two thousand batches. A row is written again at most three times.

The merged rows are first in a folder that readers skip. A note beside it then names the folders that it
replaces. These are removed, and the merged folder takes the place of the last one. If the process dies
meanwhile, the next batch finds the note and finishes the work. So no row is lost, and no two files have the
same row. A query during the move may miss the moved rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from kdissect.spark.folders import SmallFiles, small_files
from kdissect.spark.joining import write_together
from kdissect.spark.storage import join
from kdissect.spark.writing import move_files, read_file, remove

TOGETHER = 32
"""How many folders become one."""
LEVELS = 3
LARGE_BYTES = 512 << 20
"""The size in bytes from which on a folder is not written again."""
_FOLDER = re.compile(r"batch=([0-9]+)/([^/]+\.parquet)")
_NOTE, _MERGED = "_compaction.json", "_merged"
_MERGED_FILE = f"{_MERGED}/part-0.parquet"


def compact(folder: str, batch: int) -> None:
    """Merge the folders of a table that can be merged.

    :param folder: the folder of the table.
    :param batch: the latest batch; it may be repeated, and stays as it is.
    :raises OSError: a file cannot be read, written or moved.
    """
    files = small_files(folder)
    for level in range(1, LEVELS + 1):
        step = TOGETHER**level
        if batch % step:
            return
        _merge(files, folder, range(batch - step, batch))


def finish(folder: str) -> None:
    """Finish the merge of a process that died.

    :param folder: the folder of the table.
    :raises OSError: a file cannot be read or moved.
    """
    _finish(small_files(folder), folder)


def _merge(files: SmallFiles, folder: str, batches: range) -> None:
    found: dict[int, list[str]] = {}
    for name in sorted(files.names()):
        match = _FOLDER.fullmatch(name)
        if match is not None and int(match[1]) in batches:
            found.setdefault(int(match[1]), []).append(join(folder, name))
    if len(found) < 2:
        return
    paths = [path for number in sorted(found) for path in found[number]]
    target = join(folder, _MERGED_FILE)
    remove(join(folder, _MERGED))
    if _bytes_in(paths) > LARGE_BYTES:
        return
    write_together(paths, target)
    files.write(_NOTE, json.dumps({"batches": sorted(found), "to": max(found)}).encode())
    _finish(files, folder)


def _finish(files: SmallFiles, folder: str) -> None:
    """Put the merged folder in the place of those that it replaces, if a note says so."""
    try:
        note: dict[str, Any] = json.loads(files.read(_NOTE))
    except FileNotFoundError:
        return
    if _MERGED_FILE in files.names():  # otherwise only the note was left
        for number in note["batches"]:
            remove(join(folder, f"batch={number}"))
        merged = [join(folder, _MERGED_FILE)]
        move_files(merged, join(folder, _MERGED), join(folder, f"batch={note['to']}"))
    files.remove(_NOTE)


def _bytes_in(paths: Sequence[str]) -> int:
    """The bytes of the rows of these files, before they are compressed."""
    import pyarrow.parquet as pq

    total = 0
    for path in paths:
        with read_file(path) as file:
            total += _bytes_of(pq.ParquetFile(file))
    return total


def _bytes_of(file: Any) -> int:
    return sum(file.metadata.row_group(at).total_byte_size for at in range(file.num_row_groups))
