"""What a stream tells Prometheus."""

from __future__ import annotations

import urllib.request
from typing import Any, cast

from kdissect.spark.job import RunCounts, TaskOutcome
from kdissect.spark.metrics import StreamMetrics
from kdissect.spark.settings import TableSettings
from kdissect.spark.table_set import BatchOptions, MadeTables


def test_batches_are_counted_and_served() -> None:
    outcome = TaskOutcome(1000, (), [], {"exchanges": 5, "faults": 2}, RunCounts(5, 1, 2, 30))
    asked = BatchOptions(("exchanges", "faults"), (), TableSettings())
    made = MadeTables(cast(Any, None), asked, cast(Any, None), [outcome, outcome], None, None)
    metrics = StreamMetrics()
    metrics.batch(7, 1.5, made)
    metrics.batch(8, 0.2, made)
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for metric in metrics.registry.collect()
        for sample in metric.samples
    }
    start = "kdissect_stream_"
    assert found[f"{start}batch",] == 8
    assert found[f"{start}batch_seconds_sum",] == 1.7
    assert found[f"{start}read_bytes_total",] == 4000
    assert found[f"{start}rows_total", "exchanges"] == 20
    assert [found[f"{start}{name}_total",] for name in RunCounts._fields] == [20, 4, 8, 120]
    stop = metrics.serve("127.0.0.1", 29464)
    try:
        with urllib.request.urlopen("http://127.0.0.1:29464/metrics") as page:
            assert b"kdissect_stream_batch 8.0" in page.read()
    finally:
        stop()
