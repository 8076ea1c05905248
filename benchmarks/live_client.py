"""A real client that sends messages at a rate, each in a request of its own.

    python -m benchmarks.live_client --rate 2000 --seconds 30 [--broker HOST:PORT]

Without a broker it talks to the mock broker of librdkafka, in a thread of the same process. It prints the
broker's port, waits for a line on its standard input, produces, and prints the deliveries as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from confluent_kafka import Producer

TOPIC = "benchmark"
VALUE_BYTES = 200


def produce(producer: Producer, rate: float, seconds: float) -> dict[str, Any]:
    """Produce ``rate`` messages per second; return how many were delivered, and how long it took."""
    delivered = 0

    def count(error: object, _: object) -> None:
        nonlocal delivered
        delivered += error is None

    sent, began, value = 0, time.monotonic(), b"x" * VALUE_BYTES
    while (passed := time.monotonic() - began) < seconds:
        while sent < passed * rate:
            producer.produce(TOPIC, value, on_delivery=count)
            sent += 1
        producer.poll(0.001)
    producer.flush(30)
    return {"sent": sent, "delivered": delivered, "seconds": time.monotonic() - began}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--broker")
    given = parser.parse_args()
    where = {"bootstrap.servers": "mock", "test.mock.num.brokers": 1}
    if given.broker:
        where = {"bootstrap.servers": given.broker}
    # One message in each batch, and a batch as soon as there is a message.
    producer = Producer({**where, "batch.num.messages": 1, "linger.ms": 0, "acks": 1, "log_level": 0})
    (broker,) = producer.list_topics(TOPIC, timeout=30).brokers.values()
    sys.stdout.write(f"{broker.port}\n")
    sys.stdout.flush()
    sys.stdin.readline()
    sys.stdout.write(json.dumps(produce(producer, given.rate, given.seconds)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
