"""Captures → exchanges in one call, for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from os import PathLike, fspath

from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Fault
from kdissect.session.conversation import Connection
from kdissect.source import Input, Pass, secrets_of


def read(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
    ports: Iterable[int] = (),
    two_pass: bool = False,
    limits: Limits = DEFAULTS,
    key_logs: Iterable[str | PathLike[str]] = (),
    rsa_keys: Iterable[str | PathLike[str]] = (),
    on_fault: Callable[[Fault], None] | None = None,
    on_connection: Callable[[Connection], None] | None = None,
) -> Iterator[Exchange]:
    """The exchanges of a capture, each as soon as it is complete. Bodies are decoded on demand.

    :param paths: capture files, which together are one capture; ``"-"`` is standard input.
    :param ports: ports whose connections always count as Kafka.
    :param two_pass: read twice, so that topic names and TLS secrets are known from the start.
    :param key_logs: TLS secrets in addition to those in the capture: key logs, or directories of them.
    :param rsa_keys: private keys of brokers, PEM or DER, for TLS 1.2 with RSA key exchange.
    :param on_fault: gets every fault that belongs to no exchange, including damage of the files. Faults of an
        exchange are in its ``faults``.
    :param on_connection: gets a row for every connection when it is over.
    :raises CaptureError: none of the files can be read as a capture, or a key log or key cannot be read.
    """
    files = (paths,) if isinstance(paths, str | PathLike) else paths
    secrets = secrets_of([fspath(each) for each in key_logs], [fspath(each) for each in rsa_keys], limits)
    source = Input(tuple(fspath(each) for each in files), limits, frozenset(ports))
    reading = Pass(source.with_points(), secrets)
    if two_pass:
        for _ in reading.events():
            pass
        reading = reading.repeat(with_names=True)
    for event in chain.from_iterable(reading.events()):
        if isinstance(event, Exchange):
            yield event
        elif isinstance(event, Fault):
            if on_fault is not None:
                on_fault(event)
        elif on_connection is not None:
            on_connection(event)
