"""Exchanges → a file: their packets as pcapng, or their rows as NDJSON, CSV or Parquet.

A file is written completely or not at all. Saved packets give the same exchanges when read again. The
handshakes and ends of their connections are saved with them, and all packets of TLS connections. TLS secrets
are written only if the user agreed, and then only those of the capture's connections. The user's comment on
an exchange becomes a comment of the packet that completed its first message.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing
from copy import deepcopy
from functools import partial
from typing import Any, BinaryIO

from kdissect.capture.belonging import belonging
from kdissect.capture.writer import PcapngWriter
from kdissect.exchange import Exchange
from kdissect.feed.batches import Feed
from kdissect.feed.index import Index, Places
from kdissect.feed.source import ScreenSource, input_of, packets_of
from kdissect.model import TLS_KEY_LOG, CaptureError, Endpoint, Packet, Secrets
from kdissect.present.columns import EXCHANGES, Table
from kdissect.present.form import plural
from kdissect.present.options import Options
from kdissect.present.writers import table_writer
from kdissect.source import Pass
from kdissect.system.atomic_file import write_whole
from kdissect.wording import NotInstalledError

FORMS = {".pcapng": "pcapng", ".ndjson": "ndjson", ".csv": "csv", ".parquet": "parquet"}
"""The forms, by the end of the file's name."""


def is_packets(path: str) -> bool:
    """Whether a file of this name gets packets, which have comments."""
    return _form_of(path) == "pcapng"


def _form_of(path: str) -> str | None:
    return FORMS.get(os.path.splitext(path)[1].lower())


def why_no_name(path: str, forms: Collection[str]) -> str:
    """The reason why a file cannot be saved under a name; empty if the name has one of the forms and its
    folder exists."""
    path = os.path.expanduser(path)
    if os.path.splitext(path)[1].lower() not in forms:
        return f"the name must end in one of {', '.join(forms)}"
    folder = os.path.dirname(path)
    return f"there is no folder {folder}" if folder and not os.path.isdir(folder) else ""


class CannotSaveError(Exception):
    """The reason why the file was not written, in one line."""


class AlreadyExistsError(CannotSaveError):
    """A file of that name exists."""


class MayHaveSecretsError(CannotSaveError):
    """Packets of TLS are to be saved, and the user has not decided about the secrets that decrypt them."""


def save(
    path: str,
    feed: Feed,
    index: Index,
    view: Places,
    options: Options,
    comments: Mapping[int, str] = {},
    *,
    replace: bool = False,
    with_secrets: bool | None = None,
) -> str:
    """Write the exchanges of a view, as rows in its order. Return a description of the written file.

    :param comments: the user's comments on exchanges, by number.
    :param replace: whether an existing file of that name is replaced.
    :param with_secrets: whether TLS secrets are written with packets of TLS; None if the user has not
        decided.
    :raises IsThereError: the file exists, and ``replace`` is false.
    :raises MayHaveSecretsError: the user must decide.
    :raises CannotSaveError: the name has no known format, or writing failed.
    """
    form = _form_of(path)
    if form is None:
        raise CannotSaveError(f"the name must end in one of {', '.join(FORMS)}")
    if any(_is_same(path, source) for source in feed.source.paths):
        raise CannotSaveError(f"{path} is the capture itself; give another name")
    if os.path.lexists(path) and not (replace and os.path.isfile(path)):
        raise AlreadyExistsError(f"{path} is there already")
    try:
        return write_whole(path, partial(_write, form, feed, index, view, options, comments, with_secrets))
    except (CaptureError, NotInstalledError) as error:  # the capture is gone, for the first
        raise CannotSaveError(str(error)) from None
    except OSError as error:
        raise CannotSaveError(f"{path} cannot be written: {error.strerror or error}") from None


def _is_same(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def _write(
    form: str,
    feed: Feed,
    index: Index,
    view: Places,
    options: Options,
    comments: Mapping[int, str],
    with_secrets: bool | None,
    file: BinaryIO,
) -> str:
    """Write in one of the :data:`FORMS`. Return a description of the written file."""
    if form == "pcapng":
        return _write_packets(file, feed, index, view, comments, with_secrets)
    writer = table_writer(form, EXCHANGES, file, options)
    for exchange in _exchanges(feed, index, view):
        writer.write(exchange)
    writer.close()
    return plural(len(view), "exchange")


def _exchanges(feed: Feed, index: Index, view: Places) -> Iterator[Exchange]:
    for place in view.tolist():
        yield feed.exchange(index.value("place", place), index.value("length", place))


def _write_packets(
    file: BinaryIO,
    feed: Feed,
    index: Index,
    view: Places,
    comments: Mapping[int, str],
    with_secrets: bool | None,
) -> str:
    shown: set[int] = set()
    encrypted: set[frozenset[Endpoint]] = set()
    said: dict[int, tuple[str, ...]] = {}
    for exchange in _exchanges(feed, index, view):
        for message in exchange.messages:
            shown.update(message.frame.packets)
        ends = exchange.client_endpoint, exchange.broker_endpoint
        if exchange.proxied is not None:
            ends = exchange.proxied.client, exchange.proxied.peer
            shown.update(exchange.proxied.packets)
        if exchange.is_encrypted:
            encrypted.add(frozenset(ends))
        if exchange.number in comments:
            packet = exchange.messages[0].frame.last_packet
            said[packet] = (*said.get(packet, ()), comments[exchange.number])
    if encrypted and with_secrets is None:
        raise MayHaveSecretsError("these packets contain TLS")
    source = feed.source
    points = input_of(source).points
    with closing(packets_of(source, waits=False, points=points)) as capture:
        packets = (item for item in capture if isinstance(item, Packet))
        wanted = shown | belonging(packets, shown, source.limits, encrypted)
    count = 0
    with closing(packets_of(source, waits=False, points=points)) as capture:
        writer = PcapngWriter(file, capture.interfaces, None)
        if encrypted and with_secrets:
            writer.write(Secrets(TLS_KEY_LOG, _key_log(source)))
        for item in capture:
            if isinstance(item, Packet) and item.number in wanted:
                shown.discard(item.number)
                writer.write(item._replace(comments=(*item.comments, *said.get(item.number, ()))))
                count += 1
        writer.write_names(capture.interfaces)
        writer.write_counts(capture.interfaces)
    if shown:
        raise CannotSaveError(f"{plural(len(shown), 'packet')} of these cannot be read from the capture now")
    said_of_secrets = f", {'with' if with_secrets else 'without'} the TLS secrets" if encrypted else ""
    return f"{plural(count, 'packet')} of {plural(len(view), 'exchange')}{said_of_secrets}"


def _key_log(source: ScreenSource) -> bytes:
    """The secrets that decrypt the capture's connections. Only the decoder, in another process, knows which
    these are. So everything is decrypted again."""
    key_logs = None if source.key_logs is None else source.key_logs.anew()
    reading = Pass(input_of(source, waits=False), deepcopy(source.secrets), key_logs)
    for _ in reading.events():
        pass
    return reading.secrets.key_log()


TABLE_FORMS = {".csv": "csv", ".ndjson": "ndjson", ".parquet": "parquet", ".tsv": "tsv", ".arrow": "arrow"}
"""The forms of tables, by the end of the file's name."""


def save_table(path: str, table: Table, rows: Iterable[Any], options: Options) -> str:
    """Write the rows, which are the table's input. Return a description of the result, or why it failed. An
    existing file is kept."""
    form = TABLE_FORMS.get(os.path.splitext(path)[1].lower())
    if form is None:
        return f"the name must end in one of {', '.join(TABLE_FORMS)}"
    if os.path.lexists(path):
        return f"{path} is there already; give another name"

    def write(file: BinaryIO) -> str:
        writer, count = table_writer(form, table, file, options), 0
        for row in rows:
            writer.write(row)
            count += 1
        writer.close()
        return plural(count, "row")

    try:
        return write_whole(path, write)
    except OSError as error:
        return f"{path} cannot be written: {error.strerror or error}"
    except NotInstalledError as error:
        return str(error)
