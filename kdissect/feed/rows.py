"""Exchanges → rows of fixed size: the packed fields that a list needs, with texts by number.

A row is 106 bytes. Texts (addresses, names of clients, topics, errors) repeat. Each is stored once in a list
that grows. A row names a text by its place in the list; 0 means no text. Texts are sanitised before they are
added, so all texts in the list can be shown unchanged. If this changed or shortened a text of a row, the row
is *rough* there. A filter cannot decide by a rough row; it needs the exchange itself.

This is plain Python, without numpy, because the process that decodes needs no more.
"""

from __future__ import annotations

from struct import Struct

from kdissect.analysis.slow import taken_ns
from kdissect.analysis.waits import split
from kdissect.exchange import Exchange
from kdissect.present.sanitise import sanitise, valid_text
from kdissect.present.text import MOST_TOPICS, topics_text
from kdissect.protocol.errors import CLASSES

FIELDS = (
    ("number", "u4"),
    ("connection", "u4"),
    ("client", "u4"),  # text numbers from here
    ("broker", "u4"),
    ("client_id", "u4"),
    ("api", "u4"),
    ("error", "u4"),
    ("topics", "u4"),
    ("missing", "u4"),
    ("correlation_id", "i4"),
    ("request_size", "i4"),  # -1 without a message
    ("response_size", "i4"),
    ("time_ns", "i8"),
    ("latency_ns", "i8"),
    ("behind_ns", "i8"),  # -1 if unknown
    ("taken_ns", "i8"),  # the part of the latency that was no wait (:mod:`kdissect.analysis.slow`)
    ("place", "i8"),  # in the spool
    ("length", "u4"),
    ("request_packet", "u4"),  # the packet that completed the message; 0 without one
    ("response_packet", "u4"),
    ("api_version", "i2"),
    ("faults", "u2"),
    ("flags", "u2"),
)
"""Name and type (numpy's words, little endian) of every field of a row."""

TEXT_FIELDS = ("client", "broker", "client_id", "api", "error", "topics", "missing")
"""The fields that name a text."""

_CODES = {"u2": "H", "i2": "h", "u4": "I", "i4": "i", "i8": "q"}
ROW = Struct("<" + "".join(_CODES[kind] for _, kind in FIELDS))

HAS_VERSION, HAS_CORRELATION, HAS_LATENCY, HAS_REQUEST, HAS_RESPONSE, IS_CUT, IS_INFERRED = (
    1 << bit for bit in range(7)
)
"""The bits of ``flags``."""
HAS_TAKEN, IS_WORK = 1 << 9, 1 << 10
"""``IS_WORK``: ``taken_ns`` is the broker's work, as defined by :mod:`kdissect.analysis.waits`. Without it, a
part of ``taken_ns`` may have been a long poll."""
GRAVEST, FIRST = 12, 14
"""The positions in ``flags`` of two bits each: the grade of the gravest error, and of the first. Grades are
places in :data:`GRADES`."""
GRADES = ("", *reversed(CLASSES))
ROUGH = {"client_id": 1 << 7, "topics": 1 << 8}
"""The bits of ``flags`` that mark a text as different from the exchange's."""

MOST_FAULTS = 0xFFFF
"""The largest number of faults in a row; more are not counted."""


class TextNumbers:
    """Texts by number, each once. :meth:`take` returns the new ones."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}
        self._new: list[str] = []

    def number(self, text: str | None) -> int:
        """The number of a text from the wire; 0 for None."""
        if not text:
            return 0
        return self.shown(sanitise(text))

    def shown(self, text: str) -> int:
        """The number of a text that is already sanitised."""
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self._numbers)
            self._new.append(text)
        return found

    def take(self) -> list[str]:
        """The new texts since the last call, in the order of their numbers."""
        new, self._new = self._new, []
        return new


def pack_row(exchange: Exchange, texts: TextNumbers, place: int, length: int) -> bytes:
    """Pack one row. It decodes only the parts of the exchange that errors, topics and faults need.

    :param place: its place in the spool, where it has ``length`` bytes.
    """
    request, response = exchange.request, exchange.response
    version, correlation = exchange.api_version, exchange.correlation_id
    behind = exchange.behind_ns
    latency, taken, error = exchange.latency_ns, taken_ns(exchange), exchange.error
    first = exchange.messages[0].frame
    flags = 0
    flags |= HAS_VERSION if version is not None else 0
    flags |= HAS_CORRELATION if correlation is not None else 0
    flags |= HAS_LATENCY if latency is not None else 0
    if taken is not None:
        # Known work excludes all certain waits.
        flags |= HAS_TAKEN if split(exchange).broker_ns is None else HAS_TAKEN | IS_WORK
    flags |= HAS_REQUEST if request is not None else 0
    flags |= HAS_RESPONSE if response is not None else 0
    flags |= IS_CUT if any(message.is_cut for message in exchange.messages) else 0
    flags |= IS_INFERRED if exchange.inferred else 0
    if error is not None and (classes := exchange.error_classes()):
        flags |= max(map(GRADES.index, classes)) << GRAVEST | GRADES.index(classes[0]) << FIRST
    topics = exchange.topics
    flags |= 0 if _is_exact(exchange.client_id) else ROUGH["client_id"]
    flags |= 0 if _are_exact(topics) else ROUGH["topics"]
    return ROW.pack(
        exchange.number,
        exchange.connection,
        texts.number(exchange.client),
        texts.number(exchange.broker),
        texts.number(exchange.client_id),
        texts.number(exchange.api),
        texts.number(error),
        texts.shown(topics_text(topics)),
        texts.number(exchange.missing),
        correlation or 0,
        -1 if request is None else request.frame.size,
        -1 if response is None else response.frame.size,
        first.last_ns if request is not None else first.first_ns,
        latency or 0,
        -1 if behind is None else behind,
        taken or 0,
        place,
        length,
        0 if request is None else request.frame.last_packet,
        0 if response is None else response.frame.last_packet,
        version or 0,
        min(len(exchange.faults), MOST_FAULTS),
        flags,
    )


def grade_of(flags: int, bit: int = GRAVEST) -> str:
    """The grade of a row's gravest error, or of the first; empty without an error."""
    return GRADES[flags >> bit & 3]


def _is_exact(text: str | None) -> bool:
    """Whether a row's text equals the exchange's. An empty text would not differ from None."""
    return text is None or (bool(text) and sanitise(text) == valid_text(text))


def _are_exact(topics: list[str]) -> bool:
    """Whether the text of all topics equals the exchange's. A name with a comma or a blank would look like
    two names, or like the count of omitted ones."""
    return len(topics) <= MOST_TOPICS and all(
        _is_exact(name) and "," not in name and " " not in name for name in topics
    )
