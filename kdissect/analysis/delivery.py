"""Records on their way: produced, acknowledged, replicated, visible, fetched; by offset.

A producer sends a batch, and the broker gives it an offset. Consumers and followers fetch batches with their
offsets. The two are joined by offset when rows are asked for, so parts of a capture merge without seams.
Headers of batches are enough; no record is unpacked.

* If the answer to a Produce was not captured (or refuses it, or acks is 0), its offset is not known. Then the
  checksum, the count and the timestamps identify the batch: brokers do not change them. If only the answer
  was captured, the offset gives the beginning of the batch.
* A consumer's first fetch of a record counts. Repeated fetches are counted in ``read_again``, from the
  requested offset on, because a broker sends whole batches.
* If an answer was not captured and the next request asks for a later offset, the records between were
  fetched. The time is not known, so they are counted in ``records``, and in no time.
* A record is visible when any answer has a high watermark beyond it.
* The wait of a busy consumer is the time from the acknowledgement to its request, if the request came later.
  No fetch for the partition was outstanding in between.
* The times of the single records of a batch are assumed to lie evenly between its first and its largest
  timestamp. If these lie more than a few milliseconds apart and the batch is not compressed, a sample of
  records is read.
"""

from __future__ import annotations

from typing import Any

from kdissect.analysis.declared import (
    CLIENT_ADDRESS_COLUMN,
    GROUP_COLUMN,
    PARTITION_COLUMN,
    TOPIC_CLUSTER_COLUMN,
    TOPIC_COLUMN,
    column,
)
from kdissect.analysis.deliveries import ConsumerOutcome
from kdissect.analysis.fold import Row, View
from kdissect.analysis.transit import Consumer, PlaceIn, Transit
from kdissect.limits import DEFAULTS, Limits


class Delivery(View[Transit]):
    """The statistic ``delivery``."""

    basis_type = Transit
    name = "delivery"
    about = "per partition and consumer: how long records took from producer to consumer, step by step"
    columns = (
        TOPIC_COLUMN,
        TOPIC_CLUSTER_COLUMN,
        PARTITION_COLUMN,
        column("consumer", "text", 'client id of the consumer; "broker N" for a follower'),
        CLIENT_ADDRESS_COLUMN,
        GROUP_COLUMN,
        column("producers", "texts", "client ids of the producers whose records it fetched"),
        column("sets", "int64", "produced record sets whose records it fetched"),
        column("records", "int64", "records that it fetched and whose Produce was captured", kept=True),
        column("read_again", "int64", "records that it had fetched before", rare=True),
        column(
            "send_to_fetched_p50_ns",
            "int64",
            "median time from the first byte of the Produce request to the last byte of the response that "
            "brought it",
        ),
        column("send_to_fetched_p99_ns", "int64", "99th percentile of that time (within 0.4 %)"),
        column("send_to_fetched_max_ns", "int64", "the longest such time"),
        column(
            "ack_to_fetched_p50_ns",
            "int64",
            "median time from the acknowledgement to that response; negative if the response came first",
        ),
        column("ack_to_fetched_p99_ns", "int64", "99th percentile of that time (within 0.4 %)"),
        column(
            "create_to_fetched_p50_ns",
            "int64",
            "median time from the record's timestamp (producer's clock) to that response; records of a "
            "batch are spread evenly",
        ),
        column("create_to_fetched_p99_ns", "int64", "99th percentile of that time (within 0.4 %)"),
        column(
            "linger_p50_ns",
            "int64",
            "median time from the timestamp of a batch's first record to its Produce request",
        ),
        column(
            "youngest_p50_ns",
            "int64",
            "median time from the largest timestamp of a batch to its Produce request",
        ),
        column("produce_p50_ns", "int64", "median time from the Produce request to its response"),
        column(
            "replicate_p50_ns",
            "int64",
            "median time from the Produce request until the last follower fetched it; null without followers",
        ),
        column(
            "visible_p50_ns",
            "int64",
            "median time from the Produce request to the first response with a high watermark beyond it",
        ),
        column(
            "waited_p50_ns",
            "int64",
            "median time from the acknowledgement to the request that fetched it, while the consumer was "
            "busy; 0 if the request came first",
        ),
        column("unconsumed", "int64", "records produced after the last offset that it fetched or asked for"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self._cut = 0
        """The number of rows left out at the last call, because there were too many."""

    @property
    def left_out(self) -> int:
        return self.basis.left_out + self._cut

    def result(self) -> list[Row]:
        out = [_result(*each) for each in self.basis.delivered()]
        self._cut = max(0, len(out) - self.limits.rows)
        return sorted(out[: self.limits.rows], key=_order)


def _order(row: Row) -> tuple[Any, ...]:
    who = row["consumer"] or "", row["client"] or ""
    return row["topic"] or "", row["partition"], *who, row["cluster_id"] or ""


def _result(place: PlaceIn, consumer: Consumer, group: str | None, outcome: ConsumerOutcome) -> Row:
    send_50, send_99 = outcome.send.percentiles(50, 99)
    ack_50, ack_99 = outcome.ack.percentiles(50, 99)
    create_50, create_99 = outcome.create.percentiles(50, 99)
    follows = consumer.replica_id >= 0
    return {
        "topic": place[0],
        "cluster_id": place[2] or None,
        "partition": place[1],
        "consumer": f"broker {consumer.replica_id}" if follows else consumer.who.client_id,
        "client": consumer.who.client or None,
        "group": group,
        "producers": sorted(outcome.producers),
        "sets": outcome.sets,
        "records": outcome.records,
        "read_again": outcome.read_again,
        "send_to_fetched_p50_ns": send_50,
        "send_to_fetched_p99_ns": send_99,
        "send_to_fetched_max_ns": outcome.send.most,
        "ack_to_fetched_p50_ns": ack_50,
        "ack_to_fetched_p99_ns": ack_99,
        "create_to_fetched_p50_ns": create_50,
        "create_to_fetched_p99_ns": create_99,
        "linger_p50_ns": outcome.linger.percentiles(50)[0],
        "youngest_p50_ns": outcome.youngest.percentiles(50)[0],
        "produce_p50_ns": outcome.produce.percentiles(50)[0],
        "replicate_p50_ns": outcome.replicate.percentiles(50)[0],
        "visible_p50_ns": outcome.visible.percentiles(50)[0],
        "waited_p50_ns": outcome.waited.percentiles(50)[0],
        "unconsumed": outcome.unconsumed,
    }
