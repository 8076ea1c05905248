"""The way in which a statistic declares the columns of its rows, and the columns that several statistics
share.

A statistic is one file, with its columns above its class. Everything that shows it reads them there:
``stats``, ``kdissect fields``, the screens, Parquet and Arrow, Spark, the metrics of ``live --prometheus``.
"""

from __future__ import annotations

from typing import NamedTuple

TIME, DURATION, BYTES, BANDS, ID, EXCHANGE, PLAIN = "time", "duration", "bytes", "bands", "id", "exchange", ""
"""The units of numbers: ns since the epoch, ns, bytes, a distribution (drawn as bars), a name (of a node, a
port), numbers of exchanges, or none of these."""


COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"
"""Kinds of metrics: a count that only grows, a current value, a distribution of times."""


class Metric(NamedTuple):
    """The metric of a column in a live capture: its values, added up over rows with the same labels.
    Durations are seconds there."""

    name: str
    """The name without the prefix ``kdissect_`` and without Prometheus's suffixes."""
    kind: str
    about: str
    labels: tuple[tuple[str, str], ...] = ()
    """Each label, and the column with its values. The labels that are groupings of the statistic are passed
    to it as such."""
    always: tuple[tuple[str, str], ...] = ()
    """Labels with a constant value, which distinguish this column from others of the same metric."""
    ends_ns: tuple[int, ...] = ()
    """The upper ends of a histogram's columns of counts. The last has no end."""
    total: str = ""
    """The column with the sum of a histogram's times."""
    tells_zero: bool = False
    """Whether a count is also reported if it is 0."""


class Declared(NamedTuple):
    """A column of a statistic's rows."""

    name: str
    type: str
    """A type of :mod:`kdissect.present.columns`."""
    meaning: str
    unit: str = PLAIN
    rare: bool = False
    """Whether text tables leave the column out if all its values are 0."""
    kept: bool = False
    """Whether the column is the last figure to be left out if the room is too small."""
    metrics: tuple[Metric, ...] = ()
    """The metrics of the column in a live capture."""
    apart: bool = False
    """Whether text tables leave the column out if all rows have the same value."""


def column(
    name: str,
    kind: str,
    meaning: str,
    *,
    unit: str | None = None,
    rare: bool = False,
    kept: bool = False,
    metrics: tuple[Metric, ...] = (),
    apart: bool = False,
) -> Declared:
    """A column. Names that end in ``_ns`` are durations, those that end in ``bytes`` are bytes.

    :param unit: the unit, if the name does not give it.
    """
    return Declared(name, kind, meaning, unit_of(name) if unit is None else unit, rare, kept, metrics, apart)


def unit_of(name: str) -> str:
    """The unit that follows from a column's name."""
    return DURATION if name.endswith("_ns") else BYTES if name.endswith("bytes") else PLAIN


def time_column(name: str, meaning: str) -> Declared:
    """A column with a time in ns since the epoch."""
    return Declared(name, "int64", f"{meaning}, ns since the epoch", TIME)


def first_and_last(what: str) -> tuple[Declared, Declared]:
    """The two columns of :class:`~kdissect.analysis.counters.Span`."""
    return (
        time_column("first_ns", f"time of the first {what}"),
        time_column("last_ns", f"time of the last {what}"),
    )


def graded_errors(what: str) -> tuple[Declared, Declared, Declared]:
    """The columns of :class:`~kdissect.analysis.counters.Grades`."""
    return (
        column("errors", "int64", f"{what}, without routine ones", rare=True, kept=True),
        column(
            "fatal",
            "int64",
            "errors after which the client gives up the request",
            rare=True,
            kept=True,
        ),
        column(
            "routine",
            "int64",
            "error codes that are ordinary steps; the column errors does not count them",
            rare=True,
        ),
    )


GROUP_COLUMN = column("group", "text", "the group id")
CLUSTER_COLUMN = column("cluster_id", "text", "id of the cluster; null if the capture does not show it")
GROUP_CLUSTER_COLUMN = column(
    "cluster_id",
    "text",
    "id of the group's cluster, or of the only cluster that the capture shows; null if it is unknown. Groups "
    "of the same name in several clusters have rows of their own",
    apart=True,
)
TOPIC_CLUSTER_COLUMN = column(
    "cluster_id",
    "text",
    "id of the topic's cluster, or of the only cluster that the capture shows; null if it is unknown. Topics "
    "of the same name in several clusters have rows of their own",
    apart=True,
)
TOPIC_COLUMN = column("topic", "text", "name of the topic, or its id if the capture does not show the name")
PARTITION_COLUMN = column("partition", "int32", "the partition")
CLIENT_ID_COLUMN = column("client_id", "text", "the name the client gives itself")
CLIENT_COLUMN = column("client", "text", "address:port of the client")
CLIENT_ADDRESS_COLUMN = column("client", "text", "address of the client")
SPEAKER_COLUMNS = (CLIENT_ADDRESS_COLUMN, CLIENT_ID_COLUMN)
"""The columns that identify a client (:class:`~kdissect.analysis.affiliations.Speaker`)."""
BROKER_COLUMN = column("broker", "text", "address:port of the broker")
MESSAGE_BYTES = (
    column("request_bytes", "int64", "bytes of the requests without their sizes"),
    column("response_bytes", "int64", "bytes of the responses without their sizes"),
)
GROUP_TYPES_COLUMN = column(
    "types", "texts", "classic, consumer (KIP-848), share (KIP-932), streams (KIP-1071)"
)
