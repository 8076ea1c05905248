"""What is said when a capture filter lets nothing through, and where there is more."""

from __future__ import annotations

import socket
from contextlib import closing

import pytest

from kdissect.live.journal import Status
from kdissect.live.opening import open_interfaces
from kdissect.live.silence import Silence
from kdissect.live.sources import Interfaces
from tests.kafka import METADATA_RESPONSE_1, framed, request, response
from tests.live.requires import requires_raw_sockets

pytest.importorskip("scapy")


def test_what_came_is_told() -> None:
    assert Silence("tcp", None).message(Status()) == "no packet has matched tcp so far"
    said = Silence("tcp", None).message(Status(received=1))
    assert said == "1 packet of tcp so far, none with Kafka"


@requires_raw_sockets
@pytest.mark.parametrize("name", ["lo", "any"])
def test_other_ports_with_kafka_are_named(name: str) -> None:
    opened = open_interfaces(Interfaces([name], "tcp port 1"))
    assert opened.probe is not None
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(server.getsockname()) as client, closing(server.accept()[0]) as broker:
            for number in range(3):
                client.sendall(framed(request("Metadata", 1, number, topics=[])))
                broker.recv(1000)
                broker.sendall(framed(response("Metadata", 1, number, **METADATA_RESPONSE_1)))
                client.recv(1000)
        said = Silence("tcp port 1", opened.probe).message(Status())
    assert said.startswith("no packet has matched tcp port 1 so far; there is Kafka on port")
    assert str(port) in said
    for opener in opened.openers:
        opener().close()


@requires_raw_sockets
def test_all_tcp_needs_no_probe() -> None:
    opened = open_interfaces(Interfaces(["lo"], "tcp"))
    assert opened.probe is None
    opened.openers[0]().close()
