"""Exchanges that are shown → a file: their packets as pcapng, or their rows as NDJSON or CSV."""

from __future__ import annotations

import os
from collections.abc import Iterator

from kdissect.capture.files import read_packets
from kdissect.capture.writer import PcapngWriter
from kdissect.exchange import Exchange
from kdissect.model import Packet, Secrets
from kdissect.present.columns import EXCHANGES
from kdissect.present.form import plural
from kdissect.present.options import Options
from kdissect.present.tables import table_writer
from kdissect.tui.feed.decoder import Feed
from kdissect.tui.feed.index import Index, Places

FORMS = {".pcapng": "pcapng", ".ndjson": "ndjson", ".csv": "csv"}
"""By the end of the file's name."""


class CannotSaveError(Exception):
    """Why the file was not written."""


def save(path: str, feed: Feed, index: Index, view: Places, options: Options) -> str:
    """Write the exchanges of a view, in its order; gives what was written.

    :raises CannotSaveError: the name says no format, the file is there already, or writing failed.
    """
    form = FORMS.get(os.path.splitext(path)[1].lower())
    if form is None:
        raise CannotSaveError(f"the name must end in one of {', '.join(FORMS)}")
    try:
        with open(path, "xb") as file:
            if form == "pcapng":
                count = _write_packets(feed, index, view, PcapngWriter(file))
                return f"{plural(count, 'packet')} of {plural(len(view), 'exchange')} written to {path}"
            writer = table_writer(form, EXCHANGES, file, options)
            for exchange in _exchanges(feed, index, view):
                writer.write(exchange)
            writer.close()
            return f"{plural(len(view), 'exchange')} written to {path}"
    except FileExistsError:
        raise CannotSaveError(f"{path} is there already; give another name") from None
    except OSError as error:
        raise CannotSaveError(f"{path} cannot be written: {error.strerror or error}") from None


def _exchanges(feed: Feed, index: Index, view: Places) -> Iterator[Exchange]:
    for place in view.tolist():
        yield feed.exchange(index.value("place", place), index.value("length", place))


def _write_packets(feed: Feed, index: Index, view: Places, writer: PcapngWriter) -> int:
    wanted = {
        number
        for exchange in _exchanges(feed, index, view)
        for message in exchange.messages
        for number in message.frame.packets
    }
    count = 0
    for item in read_packets(feed.source.paths, feed.source.limits):
        if isinstance(item, Secrets):
            writer.write(item)
        elif isinstance(item, Packet) and item.number in wanted:
            writer.write(item)
            count += 1
    return count
