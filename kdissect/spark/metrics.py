"""The progress of a stream ─► metrics for Prometheus, over HTTP. They count from the start of the process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kdissect.live.metrics import served
from kdissect.spark.job import RunCounts

if TYPE_CHECKING:
    from kdissect.spark.table_set import MadeTables

_COUNTED = {
    "exchanges": "Exchanges.",
    "not_captured": "Exchanges without request or response, because it was not captured.",
    "faults": "Faults: what is wrong with captures.",
    "gap_bytes": "Bytes of connections that were not captured.",
}


class StreamMetrics:
    """Counts batches; :meth:`serve` publishes the counts.

    :raises ImportError: prometheus_client is not installed.
    """

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = CollectorRegistry()
        own: dict[str, Any] = {"registry": self.registry, "namespace": "kdissect_stream"}
        self._batch = Gauge("batch", "Number of the latest batch that has been written.", **own)
        self._ended = Gauge("batch_timestamp_seconds", "When it was written, since the epoch.", **own)
        buckets = (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
        self._seconds = Histogram("batch_seconds", "Time that a batch took.", buckets=buckets, **own)
        self._read = Counter("read_bytes", "Bytes of packets that were read.", **own)
        self._rows = Counter("rows", "Rows that were written.", ["table"], **own)
        self._counted = {name: Counter(name, text, **own) for name, text in _COUNTED.items()}
        assert tuple(_COUNTED) == RunCounts._fields

    def batch(self, number: int, seconds: float, made: MadeTables) -> None:
        """Count a batch that has been written.

        :param seconds: how long it took.
        """
        self._batch.set(number)
        self._ended.set(time.time())
        self._seconds.observe(seconds)
        for each in made.outcomes:
            self._read.inc(each.read)
            for table, rows in each.rows.items():
                self._rows.labels(table).inc(rows)
        for name, count in made.tally._asdict().items():
            self._counted[name].inc(count)

    def serve(self, address: str, port: int) -> Callable[[], None]:
        """Serve on a port from now on; return the function that ends it.

        :raises OSError: the port is in use.
        """
        return served(self.registry, address, port)
