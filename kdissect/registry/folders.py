"""A folder of schemas → :class:`~kdissect.payload.schemas.Schemas`.

* ``101.avsc``, ``101.proto``, ``101.json``: the schema with the id 101. A GUID is an id too.
* ``orders-value.avsc``: the schema of the subject ``orders-value``.
* ``common/money.proto``, ``common/line.json``: for imports and references, by the path in the folder.
* ``….json`` with a member ``schema``: answers of a registry, one object or a list.
* A log directory with ``_schemas-0``, the topic in which Confluent's registry keeps its schemas.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator

from kdissect.limits import DEFAULTS, Limits
from kdissect.logdir.events import SegmentBatch
from kdissect.logdir.files import read_logs
from kdissect.model import CaptureError
from kdissect.payload.schemas import (
    AVRO,
    JSON,
    PROTOBUF,
    TOPIC,
    RegistrySchema,
    Schemas,
    id_of_name,
    schema_of,
)

ENDS = {".avsc": AVRO, ".proto": PROTOBUF, ".json": JSON}
MOST_FILES = 100_000
LARGEST_FILE = 16 << 20


def read_schemas(paths: Iterable[str], limits: Limits = DEFAULTS) -> Schemas:
    """The schemas of folders. Faults of files are in their ``problems``.

    :raises CaptureError: a path is no folder, or cannot be read.
    """
    found: list[RegistrySchema] = []
    files: dict[str, str] = {}
    problems: list[str] = []
    learnt = Schemas()
    for path in paths:
        if not os.path.isdir(path):
            what = "not a folder" if os.path.exists(path) else "not there"
            raise CaptureError(f"{path}: {what}; a folder with ID.avsc, ID.proto, ID.json is needed")
        for folder in _log_folders(path):
            learn_logs(learnt, [folder], limits)
        is_empty = not learnt.all()
        for file in _files(path, problems):
            is_empty = False
            text = _text(file, problems)
            if text is not None:
                _add(file, os.path.relpath(file, path).replace(os.sep, "/"), text, found, files)
        if is_empty:
            problems.append(f"{path}: no schema in this folder; names are ID.avsc, ID.proto, ID.json")
    schemas = Schemas([*learnt.all(), *found], files)
    schemas.problems += problems
    return schemas


def learn_logs(schemas: Schemas, paths: Iterable[str], limits: Limits = DEFAULTS) -> None:
    """Add the schemas in records of the topic ``_schemas`` in log directories."""
    try:
        for event in read_logs(paths, limits):
            if isinstance(event, SegmentBatch) and event.file.topic == TOPIC:
                for record in event.records():
                    schemas.learn(record.key, record.value)
    except CaptureError:
        return  # reading the directory's records reports the error


def schema_folders(paths: Iterable[str]) -> list[str]:
    """The folders of partitions of ``_schemas`` in log directories, or the paths that are such folders
    themselves."""
    return [folder for path in paths if os.path.isdir(path) for folder in _log_folders(path)]


def _log_folders(path: str) -> list[str]:
    own = os.path.basename(os.path.abspath(path))
    if own.startswith(f"{TOPIC}-"):
        return [path]
    try:
        names = sorted(os.listdir(path))
    except OSError:
        return []
    return [os.path.join(path, name) for name in names if name.startswith(f"{TOPIC}-")]


def _files(path: str, problems: list[str]) -> Iterator[str]:
    count = 0
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            if os.path.splitext(name)[1].lower() in ENDS:
                count += 1
                if count > MOST_FILES:
                    problems.append(f"{path}: more than {MOST_FILES:,} files; the rest is left out")
                    return
                yield os.path.join(folder, name)


def _text(file: str, problems: list[str]) -> str | None:
    try:
        if not os.path.isfile(file) or os.path.getsize(file) > LARGEST_FILE:
            problems.append(f"{file}: not a file, or larger than {LARGEST_FILE:,} bytes")
            return None
        with open(file, encoding="utf-8-sig") as source:
            return source.read(LARGEST_FILE)
    except UnicodeDecodeError:
        problems.append(f"{file}: cannot be read: it is not UTF-8")
    except OSError as error:
        problems.append(f"{file}: cannot be read: {error.strerror or error}")
    return None


def _add(file: str, relative: str, text: str, found: list[RegistrySchema], files: dict[str, str]) -> None:
    stem, end = os.path.splitext(os.path.basename(file))
    kind = ENDS[end.lower()]
    id = id_of_name(stem)
    if kind == JSON:
        several = _of_registry(text, file)
        if several:
            # If the registry's answer has no id, take it from the file's name.
            own = id if len(several) == 1 else None
            found += [each if each.id or not own else each._replace(id=own) for each in several]
            return
    if kind in (PROTOBUF, JSON):
        files[relative] = text
        files.setdefault(os.path.basename(relative), text)
    found.append(RegistrySchema(kind, text, id, None if id is not None else stem, None, (), file))


def _of_registry(text: str, file: str) -> list[RegistrySchema]:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return []
    several = said if isinstance(said, list) else [said]
    found = [schema_of(each, file) for each in several if isinstance(each, dict)]
    return [each for each in found if each is not None]
