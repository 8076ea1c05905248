"""Counters, as Prometheus reads them."""

from __future__ import annotations

import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event

import pytest

from kdissect.analysis.declared import COUNTER, GAUGE, Metric, column
from kdissect.analysis.fold import OneTable, Row
from kdissect.capture.files import read_packets
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.live.journal import Status
from kdissect.live.metrics import Metrics, address_of
from tests.cli.run import CAPTURES
from tests.lab import dissected

pytest.importorskip("prometheus_client")


@dataclass(slots=True)
class Largest:
    size: int = 0
    count: int = 0

    def merge(self, later: Largest) -> None:
        raise NotImplementedError  # metrics are counted by one process


def exchanges(name: str = "errors.pcapng") -> list[Exchange]:
    return dissected(read_packets([CAPTURES / name])).exchanges


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    found: float | None = metrics.registry.get_sample_value(name, labels)
    return found


def test_requests_errors_bytes_and_latencies_are_those_of_the_exchanges() -> None:
    metrics = Metrics(Status)
    seen = exchanges()
    for exchange in seen:
        metrics.feed(exchange)
    for api in {str(each.api) for each in seen}:
        of_api = [each for each in seen if each.api == api]
        requests = [each for each in of_api if each.request is not None]
        assert value(metrics, "kdissect_requests_total", api=api) == len(requests)
        timed = [each.latency_ns for each in of_api if each.latency_ns is not None]
        if timed:
            assert value(metrics, "kdissect_latency_seconds_count", api=api) == len(timed)
            total = value(metrics, "kdissect_latency_seconds_sum", api=api)
            assert total == pytest.approx(sum(timed) / 1e9)
            for end in ("0.0005", "0.005", "1.0", "+Inf"):
                below = value(metrics, "kdissect_latency_seconds_bucket", api=api, le=end)
                assert below == sum(each <= float(end) * 1e9 for each in timed)
        sizes = sum(each.response_size or 0 for each in of_api)
        assert (value(metrics, "kdissect_bytes_total", api=api, direction="response") or 0) == sizes
    pairs = [(str(each.api), each.error, each.error_class) for each in seen if each.error is not None]
    assert pairs
    for api, error, grave in set(pairs):
        counted = value(
            metrics, "kdissect_errors_total", **{"api": api, "error": str(error), "class": str(grave)}
        )
        assert counted == pairs.count((api, error, grave))


def test_topics_and_clients_are_counted() -> None:
    metrics = Metrics(Status)
    seen = exchanges("basic-kafka43.pcapng")
    for exchange in seen:
        metrics.feed(exchange)
    produce = next(each for each in seen if each.api == "Produce")
    (topic,) = produce.topics
    expected = sum(topic in each.topics for each in seen if each.api == "Produce")
    assert value(metrics, "kdissect_topic_requests_total", topic=topic, api="Produce") == expected
    assert value(metrics, "kdissect_topic_record_bytes_total", topic=topic, api="Produce")
    client = str(produce.client_id)
    assert value(metrics, "kdissect_client_requests_total", client=client) == sum(
        each.client_id == client for each in seen
    )


def test_the_number_of_label_values_is_bounded() -> None:
    metrics = Metrics(Status, most_values=2)
    for exchange in exchanges("basic-kafka43.pcapng"):
        metrics.feed(exchange)
    apis = {
        sample.labels["api"]
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "kdissect_requests_total"
    }
    assert len(apis) == 3
    assert "other" in apis


class Sizes(OneTable[str | None, Largest]):
    """A statistic that nobody but this file knows."""

    name = "sizes"
    columns = (
        column("api", "text", "the API"),
        column(
            "largest_ns",
            "int64",
            "a gauge, a time",
            metrics=(Metric("largest_seconds", GAUGE, "The largest.", (("of", "api"),)),),
        ),
        column("count", "int64", "a count", metrics=(Metric("sizes", COUNTER, "How many."),)),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(Largest, limits)

    def _exchange(self, exchange: Exchange) -> None:
        row = self._rows.row(exchange.api)
        assert row is not None
        row.count += 1
        row.size = max(row.size, exchange.size())

    def result(self) -> list[Row]:
        rows = self._rows.rows.items()
        return [{"api": api, "largest_ns": row.size, "count": row.count} for api, row in rows]


def test_a_new_statistic_is_there_by_what_it_declares() -> None:
    metrics = Metrics(Status, most_values=2, statistics=[Sizes])
    seen = exchanges("basic-kafka43.pcapng")
    for exchange in seen:
        metrics.feed(exchange)
    assert value(metrics, "kdissect_sizes_total") == len(seen)
    first, second, *others = dict.fromkeys(str(each.api) for each in seen)
    for api in (first, second):
        largest = max(each.size() for each in seen if each.api == api)
        assert value(metrics, "kdissect_largest_seconds", of=api) == largest / 1e9
    sums = sum(max(each.size() for each in seen if each.api == api) for api in others)
    assert value(metrics, "kdissect_largest_seconds", of="other") == pytest.approx(sums / 1e9)


class Slow(Sizes):
    """Each exchange has a row, and who makes the rows is not done at once."""

    begun = Event()

    def _exchange(self, exchange: Exchange) -> None:
        self._rows.row(str(len(self._rows.rows)))

    def result(self) -> list[Row]:
        out = []
        for api, row in self._rows.rows.items():
            out.append({"api": api, "largest_ns": row.size, "count": row.count})
            self.begun.set()
            time.sleep(0.02)
        return out


def test_rows_are_made_while_no_exchange_comes() -> None:
    metrics, seen = Metrics(Status, statistics=[Slow]), exchanges()
    metrics.feed(seen[0])
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(value, metrics, "kdissect_largest_seconds", of="0")
        assert Slow.begun.wait(10)
        metrics.feed(seen[1])  # a table that grows while it is read is an error
        assert asked.result() == 0


def test_they_are_served_with_the_state_of_the_capture() -> None:
    metrics = Metrics(lambda: Status(received=12, dropped=3, lost=1, fill=0.5))
    for exchange in exchanges():
        metrics.feed(exchange)
    port = _free_port()
    stop = metrics.serve("127.0.0.1", port)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
    finally:
        stop()
    lines = text.split("\n")
    assert "kdissect_packets_total 12.0" in lines
    assert "kdissect_packets_dropped_total 3.0" in lines
    assert "kdissect_packets_lost_total 1.0" in lines
    assert "kdissect_ring_fill 0.5" in lines


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":9464", ("127.0.0.1", 9464)),
        ("9464", ("127.0.0.1", 9464)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
        ("[::1]:80", ("::1", 80)),
    ],
)
def test_without_an_address_only_this_machine_is_served(text: str, expected: tuple[str, int]) -> None:
    assert address_of(text) == expected


@pytest.mark.parametrize("text", ["", "localhost", ":99999", "host:", ":-1"])
def test_a_wrong_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="the form is :PORT"):
        address_of(text)
