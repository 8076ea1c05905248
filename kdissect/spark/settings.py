"""The options of the data source: text, as Spark carries it, ⇄ values.

Case and underscores in names do not matter: ``capturePoint`` and ``capture_point`` are the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from kdissect.capture.keylogs import KeyLogs
from kdissect.faults import KINDS
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import CaptureError
from kdissect.payload.decoder import PayloadDecoder
from kdissect.present.columns import Table
from kdissect.present.findings import FINDINGS
from kdissect.present.nearest import nearest
from kdissect.present.options import Options
from kdissect.present.statistics import STATISTICS, statistic_of
from kdissect.registry.folders import read_schemas
from kdissect.registry.rules import rule_of
from kdissect.source import read_rsa_key
from kdissect.spark.tables import TABLES, full_table, with_point

DIRECTORY = "directory"
"""A value for capture points: every directory is one."""


class TableSettings(NamedTuple):
    """The options for a table."""

    table: str = "exchanges"
    stats: str | None = None
    """A statistic instead of the table, as ``stats -z`` names it: ``rebalances``, ``srt,client_id``; or
    ``findings``. One task counts each capture point. :func:`kdissect.spark.stats` shares the work."""
    columns: tuple[str, ...] = ()
    """The only columns of the table, in this order, separated by commas. A schema has the same effect. A
    query makes only those that it needs, except with Spark Connect (:mod:`kdissect.spark.scans`)."""
    ports: frozenset[int] = frozenset()
    """Ports whose connections count as Kafka: ``9092,29092``."""
    payload: str = "full"
    """``none``: request, response, keys, values and header values are null. ``head:N``: keys, values and
    header values are cut to N bytes."""
    capture_point: str | None = None
    """A regular expression for paths. Files with the same text in its first group (or else in the whole
    match) are one capture. ``directory``: the files of a directory are one. The table then has the column
    ``capture_point``, and numbers count within each capture."""
    filter: str | None = None
    """A display filter for the rows, as in ``read -Y``."""
    records: bool = False
    """Whether request and response contain decoded record batches."""
    embedded: bool = False
    """Whether bytes inside messages and records are decoded too."""
    schemas: tuple[str, ...] = ()
    """Folders of schemas that decode keys and values of records, separated by commas. All workers must be
    able to read them. Schemas in the capture itself are not used here, because a task does not see those of
    other tasks."""
    decode_as: tuple[str, ...] = ()
    """Rules as in ``--decode-as``, ``TOPIC=FORM``, separated by commas."""
    show_secrets: bool = False
    shown_fields: frozenset[str] = frozenset()
    """Fields and classes of imported definitions that are shown although their names suggest a secret,
    separated by commas."""
    two_pass: bool = False
    """Whether names of topic ids apply from the start of the capture, which is then read twice."""
    topics: Mapping[str, str] = {}
    """Names of topic ids that captures do not contain, as JSON: ``{"id": "name"}``."""
    limits: Limits = DEFAULTS
    """Changed limits: ``connections=1000,frame_bytes=1048576``."""
    keylog: tuple[str, ...] = ()
    """Files, or directories of files, with TLS secrets, separated by commas. All workers must be able to read
    them."""
    rsa_key: tuple[str, ...] = ()
    """Private keys of brokers, in files that all workers can read, separated by commas."""
    tasks: int | None = None
    """How many tasks share the work of one capture point."""
    places: bool = False
    """Whether records, batches and faults also have the time and the broker of their exchange, as ``time_ns``
    and ``broker``."""
    layer: str | None = None
    """The layer of faults to give. Faults of ``file`` are found without dissecting anything."""
    progress: str | None = None
    """A folder that driver and workers share, for the notes of :mod:`kdissect.spark.progress`."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> TableSettings:
        """Settings from options, whose values are text or already parsed.

        :raises LookupError: there is no such option, table or limit.
        :raises ValueError: an option cannot have this value.
        """
        known = {_plain(name): name for name in cls._fields}
        values: dict[str, Any] = {}
        for key, value in given.items():
            name = known.get(_plain(key))
            if name is None and _plain(key) == "registry":
                raise LookupError(
                    "registry: tasks do not ask a registry; use schemas with a folder that all tasks can read"
                )
            if name is None and _plain(key) == "pushdown":
                raise LookupError(
                    "pushdown: needs no option, as a query makes only the rows that pass its filters; with"
                    " Spark Connect, use filter with a display filter"
                )
            if name is None:
                raise LookupError(f"there is no option {key!r}{nearest(key, cls._fields)}")
            values[name] = _READ[name](name, value)
        made = cls(**values)
        if made.layer is not None and (made.table != "faults" or made.stats is not None):
            raise ValueError("layer: only the table faults has this option")
        if made.stats is not None and made.table != cls().table:
            raise ValueError(f"stats and table: {made.stats} and {made.table} are two tables; name one")
        return made

    def options(self) -> dict[str, str]:
        """The text form of all options that are not the default."""
        written = {}
        for name, value, usual in zip(self._fields, self, TableSettings(), strict=True):
            if value != usual:
                written[name] = _text(name, value)
        return written

    @property
    def shown(self) -> Options:
        """The options for showing values."""
        return Options(
            self.show_secrets,
            self.records,
            self.embedded,
            limits=self.limits,
            shown_fields=self.shown_fields,
            payloads=_decoder(self.schemas, self.decode_as, self.limits) if self.decodes else None,
        )

    def refuse_unusable(self) -> None:
        """Check on this machine that the files of the options exist: key logs, keys, schemas.

        :raises ValueError: schemas are missing, or a rule for decoding is wrong.
        :raises CaptureError: a key log is missing, or a key cannot be used.
        """
        if self.decodes:
            _decoder(self.schemas, self.decode_as, self.limits)
        for path in self.rsa_key:
            read_rsa_key(path)
        next(KeyLogs(self.keylog).read(), None)  # before the first secret it checks that all exist

    def chosen_table(self) -> Table:
        """The table, or statistic, with the chosen columns.

        :raises LookupError: there is no such statistic or column.
        :raises ValueError: the statistic does not have this grouping.
        """
        if self.stats is None:
            table = self.full_table(self.table)
        elif self.stats == FINDINGS.name:
            table = with_point(FINDINGS, self.capture_point is not None)
        else:
            name = statistic_of(self.stats, self.limits).name
            table = with_point(STATISTICS[name], self.capture_point is not None)
        return table.select(self.columns) if self.columns else table

    def full_table(self, name: str) -> Table:
        """A table with all columns that can have a value."""
        return full_table(name, self.embedded, self.capture_point is not None, self.decodes, self.places)

    @property
    def has_secrets(self) -> bool:
        """Whether TLS secrets are given beside the captures."""
        return bool(self.keylog or self.rsa_key)

    @property
    def decodes(self) -> bool:
        """Whether keys and values of records are decoded."""
        return bool(self.schemas or self.decode_as)

    @property
    def head(self) -> int | None:
        """The number of bytes to which keys and values are cut; None if they are not cut."""
        if self.payload == "full":
            return None
        return 0 if self.payload == "none" else int(self.payload[len("head:") :])


@lru_cache(maxsize=4)
def _decoder(folders: tuple[str, ...], rules: tuple[str, ...], limits: Limits) -> PayloadDecoder:
    """The decoder of keys and values.

    :raises ValueError: a folder or a rule cannot be used.
    """
    try:
        schemas = read_schemas(folders, limits)
    except CaptureError as error:
        raise ValueError(f"schemas: {error}") from None
    found = []
    for text in rules:
        try:
            found.append(rule_of(text, schemas))
        except ValueError as error:
            raise ValueError(f"decode_as: {text}: {error}") from None
    return PayloadDecoder(schemas, found, limits, learns=False)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _text(name: str, value: Any) -> str:
    if name in ("keylog", "rsa_key", "schemas", "decode_as", "columns"):
        return ",".join(value)
    if name in ("ports", "shown_fields"):
        return ",".join(map(str, sorted(value)))
    if name == "limits":
        changed = value._asdict().items() - DEFAULTS._asdict().items()
        return ",".join(f"{key}={number}" for key, number in sorted(changed))
    if name == "topics":
        return json.dumps(dict(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _table(_: str, value: Any) -> str:
    if value not in TABLES:
        hint = nearest(str(value), TABLES) or f"; there are {', '.join(TABLES)}"
        raise LookupError(f"there is no table {value!r}{hint}")
    return str(value)


def _ports(name: str, value: Any) -> frozenset[int]:
    words = value.split(",") if isinstance(value, str) else list(value)
    ports = frozenset(_whole(name, word) for word in words if word != "")
    if not all(port < 65_536 for port in ports):
        raise ValueError(f"{name}: a port is a number from 1 to 65535, not {value!r}")
    return ports


def _payload(name: str, value: Any) -> str:
    head = str(value).removeprefix("head:")
    if value not in ("none", "full") and not (head != value and head.isdigit()):
        raise ValueError(f"{name}: none, head:N or full, not {value!r}")
    return str(value)


def _word(_: str, value: Any) -> str | None:
    return None if value is None or value == "" else str(value)


def _paths(_: str, value: Any) -> tuple[str, ...]:
    return tuple(each for each in (value.split(",") if isinstance(value, str) else value) if each)


def _columns(name: str, value: Any) -> tuple[str, ...]:
    columns = _paths(name, value)
    if twice := next((each for each in columns if columns.count(each) > 1), None):
        raise ValueError(f"{name}: {twice} is named twice")
    return columns


def _layer(name: str, value: Any) -> str | None:
    layer, known = _word(name, value), list(dict.fromkeys(layer for layer, _ in KINDS.values()))
    if layer is not None and layer not in known:
        raise LookupError(f"{name}: there is no layer {layer!r}; there are {', '.join(known)}")
    return layer


def _names(_: str, value: Any) -> frozenset[str]:
    return frozenset(_paths("", value))


def _flag(name: str, value: Any) -> bool:
    word = str(value).lower()
    if word not in ("true", "false"):
        raise ValueError(f"{name}: true or false, not {value!r}")
    return word == "true"


def _whole(name: str, value: Any) -> int:
    if not str(value).isdigit() or int(value) < 1:
        raise ValueError(f"{name}: a whole number above 0, not {value!r}")
    return int(value)


def _count(name: str, value: Any) -> int | None:
    return None if value is None else _whole(name, value)


def _topics(name: str, value: Any) -> Mapping[str, str]:
    try:
        found = json.loads(value) if isinstance(value, str) else dict(value)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise ValueError(f'{name}: JSON such as {{"id": "name"}}, not {value!r}')
    return found


def _limits(name: str, value: Any) -> Limits:
    if isinstance(value, Limits):
        return value
    pairs = (
        dict(value) if isinstance(value, Mapping) else dict(p.partition("=")[::2] for p in value.split(","))
    )
    limits = DEFAULTS
    for key, number in pairs.items():
        if key not in Limits._fields:
            raise LookupError(f"there is no limit {key!r}{nearest(key, Limits._fields)}")
        limits = limits._replace(**{key: _whole(f"{name}: {key}", number)})
    return limits


_READ: dict[str, Callable[[str, Any], Any]] = {
    "table": _table,
    "stats": _word,
    "columns": _columns,
    "ports": _ports,
    "payload": _payload,
    "shown_fields": _names,
    "capture_point": _word,
    "filter": _word,
    "records": _flag,
    "embedded": _flag,
    "schemas": _paths,
    "decode_as": _paths,
    "show_secrets": _flag,
    "two_pass": _flag,
    "topics": _topics,
    "limits": _limits,
    "keylog": _paths,
    "rsa_key": _paths,
    "tasks": _count,
    "places": _flag,
    "layer": _layer,
    "progress": _word,
}
