"""``kdissect scrub``: a capture → the same capture without names, addresses, contents and secrets."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, BinaryIO, cast

import click

from kdissect.capture.options import STATISTICS_NUMBERS
from kdissect.capture.reader import Interface
from kdissect.capture.writer import PcapngWriter
from kdissect.cli.commands.scrub.key import key_of, new_key
from kdissect.cli.config import load_config
from kdissect.cli.errors import Complaints, Unreadable, Wrong, complain
from kdissect.cli.exit_codes import DONE, NOTHING_MATCHED, UNREADABLE
from kdissect.cli.inputs import PORTS, packets_of, ports_of, read_twice
from kdissect.cli.output import inputs_of, refuse_input, refuse_same, shown
from kdissect.cli.tls_keys import key_options, keys_of
from kdissect.limits import Limits
from kdissect.model import CaptureError
from kdissect.present.form import plural
from kdissect.scrub.scrubbing import Scrubbing, ScrubCounts
from kdissect.scrub.search import Search
from kdissect.scrub.values import Scrubber
from kdissect.system import named_file
from kdissect.tls.keylog import TlsSecrets

MOST_KEYS = 8
"""How many keys are tried until none turns an address of the capture into another address of it."""


class ScrubRefused(click.ClickException):
    """The result would not be safe to send to others, so nothing is written."""

    exit_code = NOTHING_MATCHED


@click.command()
@click.argument("capture", metavar="FILE | -")
@click.option("-o", "output", metavar="FILE", required=True, help="Write the result here, as pcapng.")
@click.option(
    "--key",
    metavar="FILE",
    help="File with the key for names and addresses. One key always gives the same tokens. Made if missing.",
)
@PORTS
@key_options
@click.option("-q", "--quiet", is_flag=True, help="Say only what went wrong.")
def command(**given: Any) -> int:
    """Write a copy of a capture without your names, addresses, records and secrets, to send it to others.

    Names become tokens of the same length, records become filler. Times, sizes, errors, sequence numbers and
    losses stay. Then kdissect searches the result for everything that it removed. OUT is written only if
    nothing is found.

    \b
    kdissect scrub FILE -o OUT              a new key, which is not kept
    kdissect scrub FILE -o OUT --key KEY    the same tokens in each file with this key
    kdissect help scrub                     what is kept, and what becomes of the rest
    """
    path: str = given["capture"]
    output: str = given["output"]
    if output == "-":
        raise Wrong("-o -: kdissect must search the result before anybody reads it; give a file name")
    refuse_input(output, [*_inputs(given), path])
    refuse_same(output, given["key"], "--key")
    limits = load_config().limits
    ports = ports_of(given["decode_as"])
    secrets = keys_of(given, limits).secrets
    key = None if given["key"] is None else key_of(given["key"])
    complaints = Complaints()
    try:
        with read_twice((path,), True) as paths, named_file(".scrubbed") as spool, _replaced(output) as file:
            work = _ScrubWork(paths, limits, ports, secrets, cast(BinaryIO, spool), complaints)
            counts = work.write(key, file)
    except CaptureError as error:
        raise Unreadable(str(error)) from None
    complaints.close()
    _print_counts(counts, output, given["quiet"])
    return UNREADABLE if complaints else DONE


def _inputs(given: dict[str, Any]) -> Iterator[str]:
    yield from inputs_of(given)
    if given["key"] is not None:
        yield given["key"]


class _ScrubWork:
    """Reads, writes and searches."""

    def __init__(
        self,
        paths: tuple[str, ...],
        limits: Limits,
        ports: frozenset[int],
        secrets: TlsSecrets,
        spool: BinaryIO,
        complaints: Complaints,
    ) -> None:
        self._paths, self._limits, self._ports, self._secrets = paths, limits, ports, secrets
        self._spool, self._complaints = spool, complaints

    def write(self, key: bytes | None, file: BinaryIO) -> ScrubCounts:
        """Write the result.

        :param key: the key; None for a random one that is not kept.

        :raises Refused: the result still has something that was to be removed.
        """
        scrubber, scrubbing = self._read(key, self._complaints)
        for _ in range(MOST_KEYS):
            if not scrubber.clashes:
                break
            if key is not None:
                raise ScrubRefused(
                    "nothing is written: this key gives a host the address of another host, so that both "
                    "would look the same; give another --key"
                )
            scrubber, scrubbing = self._read(None, None)
        with closing(packets_of(self._paths, self._limits)) as capture:
            kinds: list[Interface] = []
            writer = PcapngWriter(file, kinds)
            for packet in scrubbing.packets(capture):
                known = capture.interfaces[len(kinds) :]
                kinds += [Interface(each.link_type, each.snap_length) for each in known]
                writer.write(packet)
            writer.write_counts([_counted(each) for each in capture.interfaces])
        file.flush()
        self._search(scrubber, file)
        return scrubbing.counts

    def _read(self, key: bytes | None, complaints: Complaints | None) -> tuple[Scrubber, Scrubbing]:
        self._spool.seek(0)
        self._spool.truncate()
        scrubber = Scrubber(new_key() if key is None else key)
        scrubbing = Scrubbing(scrubber, self._spool, self._limits, self._ports, self._secrets)
        name = self._paths[0]
        with closing(packets_of(self._paths, self._limits)) as capture:
            for fault in scrubbing.read(capture):
                if complaints is not None:
                    complaints.report_fault(name, fault)
        return scrubber, scrubbing

    def _search(self, scrubber: Scrubber, file: BinaryIO) -> None:
        search = Search(scrubber.taken, self._limits)
        file.seek(0)
        found = search.file(file)
        if found is None:
            with closing(packets_of((file.name,), self._limits)) as capture:
                found = search.capture(capture, self._ports)
        if found is not None:
            raise ScrubRefused(
                f"nothing is written: something that scrub removed is still there, {found}. This is a "
                "defect in kdissect: please report it, without the capture"
            )


def _counted(interface: Interface) -> Interface:
    """The counters of an interface, without its other options."""
    counts = interface.counts
    if counts is not None:
        numbers = tuple(
            each for each in counts.options if each[0] in STATISTICS_NUMBERS and len(each[1]) == 8
        )
        counts = counts._replace(options=numbers)
    return Interface(interface.link_type, counts=counts)


@contextmanager
def _replaced(path: str) -> Iterator[BinaryIO]:
    """A file, readable by its owner only, that gets its name if all went well. Otherwise nothing of it stays.

    :raises Wrong: it cannot be written.
    """
    if os.path.lexists(path) and not os.path.isfile(path):
        raise Wrong(f"{shown(path)}: is not a regular file, and only files can be replaced in one step")
    part = None
    try:
        folder = os.path.dirname(os.path.abspath(path))
        number, part = tempfile.mkstemp(dir=folder, prefix=".kdissect-")  # 0600
        os.close(number)
        with open(part, "r+b") as file:
            yield cast(BinaryIO, file)
        os.replace(part, path)
        part = None
    except OSError as error:
        raise Wrong(f"{shown(path)}: cannot be written: {error.strerror}") from None
    finally:
        if part is not None:
            with suppress(OSError):
                os.unlink(part)


def _print_counts(counts: ScrubCounts, output: str, is_quiet: bool) -> None:
    """Print what was written and what was left out."""
    if is_quiet:
        return
    packets, exchanges = plural(counts.packets, "packet"), plural(counts.exchanges, "exchange")
    lines = [f"{packets} with {exchanges} written to {shown(output)}"]
    if counts.decrypted_connections:
        lines.append(f"written decrypted, without TLS: {plural(counts.decrypted_connections, 'connection')}")
    if counts.compressed:
        many = plural(counts.compressed, "compressed batch of records", "compressed batches of records")
        lines.append(f"replaced by filler: {many}")
    if counts.unknown_connections:
        many = plural(counts.unknown_connections, "connection")
        packets = plural(counts.unknown_packets, "packet")
        why = "without Kafka messages (TLS without secrets, or another protocol)"
        lines.append(f"not written: {packets} of {many} {why}")
    if counts.other_packets:
        packets = plural(counts.other_packets, "packet")
        lines.append(f"not written: {packets} without TCP, or with broken headers")
    if counts.undecoded_bytes:
        lines.append(f"replaced by filler: {plural(counts.undecoded_bytes, 'byte')} outside of messages")
    if counts.left_out_secrets:
        lines.append(f"not written: {plural(counts.left_out_secrets, 'block')} with TLS secrets")
    for line in lines:
        complain(line)
    sys.stderr.flush()
