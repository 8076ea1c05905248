"""Exchanges ─► a temporary file without a name ─► exchanges.

The process that decodes appends what an exchange was made from: its frames, what their headers told, and
the topic names it needs. Any process that has the file reads one back by its place. Nothing that was
decoded is kept, so the file is about as large as the capture, and neither process holds the frames in
memory. The name is gone when the file is made: it ends with the last process that has it open.

A capture cannot serve instead. It may be a pipe or compressed. A frame in it may be scattered over packets
that came twice, in pieces, or in another order.
"""

from __future__ import annotations

import pickle
from typing import BinaryIO

from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.plain import exchange_of, plain_exchange
from kdissect.system import read_at


class SpoolWriter:
    """Appends exchanges to ``file``, which nobody else writes to."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = 0
        """Bytes that were appended."""

    def write(self, exchange: Exchange) -> tuple[int, int]:
        """Append an exchange; gives its place and length. It can be read after :meth:`flush`."""
        data = pickle.dumps((plain_exchange(exchange), _names(exchange)), pickle.HIGHEST_PROTOCOL)
        self._file.write(data)
        place = self.size
        self.size += len(data)
        return place, len(data)

    def flush(self) -> None:
        """Hand what was written to the system."""
        self._file.flush()


def read_exchange(descriptor: int, place: int, length: int, limits: Limits = DEFAULTS) -> Exchange:
    """An exchange from the spool, as it was when it was complete; its bodies are decoded when asked for.

    :raises OSError: the file cannot be read, or ends before ``length`` bytes.
    """
    data = bytearray()
    while len(data) < length:
        piece = read_at(descriptor, length - len(data), place + len(data))
        if not piece:
            raise OSError(f"the spool ends at byte {place + len(data):,}")
        data += piece
    plain, names = pickle.loads(data)  # what this program wrote itself, in a nameless file
    return exchange_of(plain, names, limits)


def _names(exchange: Exchange) -> dict[str, str]:
    """The names that its lists need; a page that shows its tree knows all of the index."""
    names = {topic_id: exchange.topic_names.get(topic_id) for topic_id in exchange.topic_ids()}
    return {topic_id: name for topic_id, name in names.items() if name is not None}
