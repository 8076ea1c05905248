"""Files → exchanges in one call, for programs: captures, key logs and private keys are opened here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from os import PathLike, fspath

from kdissect.capture.files import read_packets
from kdissect.capture.keylogs import KeyLogs
from kdissect.capture.points import find_points
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import CaptureError, Fault
from kdissect.points.dissector import dissector_of
from kdissect.session.conversation import Connection
from kdissect.tls.crypto import load_rsa_key
from kdissect.tls.keylog import Secrets


def read_rsa_key(path: str) -> bytes:
    """A private key with which TLS is decrypted, from a file.

    :raises CaptureError: it cannot be read, or is none; the text has one line.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
        load_rsa_key(data)
    except OSError as error:
        raise CaptureError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise CaptureError(f"{path}: cannot be used as an RSA private key: {error}") from error
    return data


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
    """The exchanges of a capture, each as soon as it is complete; bodies are decoded when asked for.

    :param paths: capture files, which together are one capture; ``"-"`` is standard input.
    :param ports: ports whose connections are taken for Kafka's whatever they look like.
    :param two_pass: read twice, so that names of topic ids, and TLS secrets, hold from the start.
    :param key_logs: TLS secrets beside those that the capture has: key logs, or directories of them.
    :param rsa_keys: private keys of brokers, PEM or DER, for TLS 1.2 with RSA key exchange.
    :param on_fault: is given every fault that is no exchange's own, damage of the files among them; those
        of an exchange are its ``faults``.
    :param on_connection: is given what is known of every connection when it is over.
    :raises CaptureError: none of the files can be read as a capture, or not all key logs and keys can be.
    """
    secrets = Secrets(limits)
    secrets.rsa_keys = tuple(read_rsa_key(fspath(path)) for path in rsa_keys)
    for key_log in KeyLogs(fspath(path) for path in key_logs).read():
        secrets.add(key_log.data)
    files = [paths] if isinstance(paths, str | PathLike) else list(paths)
    broker_ports = frozenset(ports)
    names = None
    points = find_points(files, limits)
    if two_pass:
        first = dissector_of(points, limits, broker_ports, secrets=secrets)
        for item in read_packets(files, limits, points=points):
            for _ in first.feed(item):
                pass
        for _ in first.close():
            pass
        names = first.names
    dissector = dissector_of(points, limits, broker_ports, names, secrets=secrets)
    found = map(dissector.feed, read_packets(files, limits, points=points))
    for event in chain(chain.from_iterable(found), dissector.close()):
        if isinstance(event, Exchange):
            yield event
        elif isinstance(event, Fault):
            if on_fault is not None:
                on_fault(event)
        elif on_connection is not None:
            on_connection(event)
