"""Searching for a text, and the positions where it occurs. The search reads the texts of the list, the bytes
of messages (also compressed ones), and the names and values of trees.

Case is ignored in texts. ``/…/`` is a regular expression, on RE2. Pairs of hex digits with blanks between, or
after ``0x``, are bytes. Bytes that must not be shown are not searched, so that a search cannot reveal a
secret.

Whether a word can be in the tree of a message at all, decided without drawing it.

Drawing the trees of a million exchanges for a search takes an hour. If the answer here is no, a tree need not
be drawn. If it cannot be decided, the answer is yes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from kdissect.exchange import Exchange
from kdissect.feed.index import Index, Places
from kdissect.feed.matching import AnswerClient
from kdissect.feed.records import words_of
from kdissect.feed.rows import TEXT_FIELDS
from kdissect.filter.checks import as_bytes
from kdissect.filter.masks import Mask
from kdissect.message import Message
from kdissect.model import Node
from kdissect.present.branch import holds_bytes, may_hide
from kdissect.present.detail import Detail
from kdissect.present.options import Options
from kdissect.present.records import Address, addressed_rows, record_rows
from kdissect.protocol import apis
from kdissect.protocol.definition import FieldDefinition
from kdissect.protocol.errors import error_name
from kdissect.protocol.library import library

_WORD = re.compile(r"[\w.-]+")
_CONSTANTS = "null true false (empty) (not decoded) <redacted>"
_RECORD_SETS = (
    "baseOffset batchLength partitionLeaderEpoch magic crc attributes lastOffsetDelta baseTimestamp "
    "maxTimestamp producerId producerEpoch baseSequence recordsCount records offset messageSize timestamp "
    "length timestampDelta offsetDelta key value headers CreateTime LogAppendTime transactional control "
    "delete horizon unused bits none gzip snappy lz4 zstd unpacked bytes"
)
"""The words in lines of record sets, beside numbers and the bytes of records."""


class TreeWords:
    """The precomputed facts about one text of a search.

    :param is_in: whether it occurs in a text.
    """

    def __init__(self, text: str, is_in: Callable[[str], bool]) -> None:
        self._is_in = is_in
        self._is_word = _WORD.fullmatch(text) is not None
        self._has_digit = any(map(str.isdigit, text))
        self._is_constant = is_in(_CONSTANTS)
        self._is_packed = self._has_digit or is_in(_RECORD_SETS) or is_in(_names_of_data())

    def may_be_in(self, message: Message) -> bool:
        """Whether the text may be in a line of the message's tree."""
        if not self._is_word or self._is_constant:
            return True
        body = message.decoded()
        if body.struct is None:
            return self._has_digit or self._is_in_values(message.header())
        if self._is_packed and holds_bytes(body.struct):
            return True
        return self._is_in_values(message.header()) or self._is_in_values(body.values)

    def _is_in_values(self, values: dict[str, Any]) -> bool:
        return any(self._is_in(name) or self._is_in_value(name, value) for name, value in values.items())

    def _is_in_value(self, name: str, value: Any) -> bool:
        if isinstance(value, dict):
            return self._is_in_values(value)
        if isinstance(value, list):
            return any(self._is_in_value(name, each) for each in value)
        if isinstance(value, str):
            return self._is_in(value)
        if isinstance(value, int) and not isinstance(value, bool):
            if self._has_digit and self._is_in(str(value)):
                return True
            return self._is_in(_meaning(name, value)) if value or name in _API_KEYS else False
        return isinstance(value, float) and self._has_digit and self._is_in(str(value))


_API_KEYS = ("requestApiKey", "apiKey")


@cache
def _meaning(name: str, value: int) -> str:
    """The tree's text for the meaning of a number."""
    if name.endswith(("errorCode", "ErrorCode")):
        return error_name(value)
    return apis.api_name(value) if name in _API_KEYS else ""


@cache
def _names_of_data() -> str:
    """The names of all fields that bytes in a message can contain."""
    found: set[str] = set()
    for name in apis.data_names():
        for block in library().data_class(name).blocks:
            _gather(block.fields, found)
    return " ".join(found)


def _gather(fields: Iterable[FieldDefinition], found: set[str]) -> None:
    for field in fields:
        found.add(field.name)
        _gather(field.fields or (), found)


LONGEST = 1_000
"""The largest number of characters of a search text."""
_HEX = re.compile(r"0x(?:[0-9a-fA-F]{2})+|[0-9a-fA-F]{2}(?: [0-9a-fA-F]{2})+")
_UNPACKED = (None, "none")


class _Compiled(Protocol):
    """The common interface of both libraries of regular expressions."""

    def search(self, data: bytes, /) -> Any: ...


class MatchSpot(NamedTuple):
    """A position where the text was found."""

    data: bytes
    """The payload of a message."""
    start: int
    end: int


class Pattern:
    """A text, bytes or a regular expression to search for.

    :raises ValueError: it is empty, too long, or no regular expression.
    """

    def __init__(self, text: str, options: Options) -> None:
        self.text = text
        self._options = options
        self._compiled = _compiled(text)
        self._is_bytes = _HEX.fullmatch(text) is not None
        self._words = TreeWords(text, self.is_in)

    def __reduce__(self) -> tuple[Any, ...]:
        return Pattern, (self.text, self._options)

    def is_in(self, text: str) -> bool:
        """Whether it occurs in a text."""
        return self._compiled.search(as_bytes(text)) is not None

    def matches(self, exchange: Exchange) -> bool:
        """Whether it occurs in the bytes of an exchange, or in a line of its tree."""
        if self.spot(exchange) is not None or self._is_packed(exchange):
            return True
        if self._is_bytes or not any(map(self._words.may_be_in, exchange.messages)):
            return False
        return bool(self.line(Detail(exchange, self._options)))

    def line(self, detail: Detail) -> list[Node]:
        """The nodes around the first line of a tree with it, the outermost first; empty for bytes."""
        return [] if self._is_bytes else detail.path_to_line(self.is_in)

    def spot(self, exchange: Exchange, detail: Detail | None = None) -> MatchSpot | None:
        """The first position in a message's own bytes.

        :param detail: the detail of this exchange, if it was already made.
        """
        for message in exchange.messages:
            payload = message.frame.payload
            if self._compiled.search(payload) is None:
                continue
            hidden = []
            if may_hide(message, self._options):
                detail = detail or Detail(exchange, self._options)
                hidden = list(detail.hidden(payload))
            for start, end in _outside(hidden, len(payload)):
                found = self._compiled.search(payload[start:end])
                if found is not None:
                    return MatchSpot(payload, start + found.start(), start + found.end())
        return None

    def _is_packed(self, exchange: Exchange) -> bool:
        """Whether it occurs in a record of a compressed batch."""
        if not any(True for message in exchange.messages for _ in message.record_fields()):
            return False
        for row in record_rows(exchange, self._options):
            if row["codec"] not in _UNPACKED and any(map(self._is_in_value, _values(row))):
                return True
        return False

    def _is_in_value(self, value: object) -> bool:
        data = as_bytes(value) if isinstance(value, str) else value
        return isinstance(data, bytes) and self._compiled.search(data) is not None


class RecordPattern(Pattern):
    """A pattern to search for in records: in the bytes of key, value and headers, and in the words shown
    instead of bytes."""

    def __reduce__(self) -> tuple[Any, ...]:
        return RecordPattern, (self.text, self._options)

    def matches(self, exchange: Exchange) -> bool:
        """Whether it occurs in a record of an exchange."""
        return next(self.addresses(exchange), None) is not None

    def addresses(self, exchange: Exchange) -> Iterator[Address]:
        """The records of an exchange in which it occurs."""
        for address, row in addressed_rows(exchange, self._options):
            if any(map(self._is_in_value, (*_values(row), words_of(row, "key"), words_of(row, "value")))):
                yield address


def _values(row: dict[str, Any]) -> Iterator[object]:
    yield row["key"]
    yield row["value"]
    for name, value in row["headers"]:
        yield name
        yield value


def _outside(hidden: list[tuple[int, int]], length: int) -> Iterator[tuple[int, int]]:
    """The ranges between hidden ranges."""
    at = 0
    for start, end in hidden:
        if at < start:
            yield at, start
        at = max(at, end)
    if at < length:
        yield at, length


def _compiled(text: str) -> _Compiled:
    if not text.strip():
        raise ValueError("there is nothing to search for")
    if len(text) > LONGEST:
        raise ValueError(f"this is longer than {LONGEST} characters")
    if _is_regex(text):
        return _regex(text[1:-1])
    if _HEX.fullmatch(text):
        return re.compile(re.escape(bytes.fromhex(text.removeprefix("0x"))), re.DOTALL)
    return re.compile(re.escape(as_bytes(text)), re.IGNORECASE | re.DOTALL)


def in_texts(text: str) -> Callable[[str], bool]:
    """A function that checks whether a text contains the search text, or a match of a ``/regex/``. Case is
    ignored.

    :raises ValueError: it is no regular expression.
    """
    if _is_regex(text):
        compiled = _regex(text[1:-1])
        return lambda found: compiled.search(as_bytes(found)) is not None
    wanted = text.casefold()
    return lambda found: wanted in found.casefold()


def why_not_in_texts(text: str) -> str:
    """The reason why a text cannot be used for :func:`in_texts`; empty if it can."""
    try:
        in_texts(text)
    except ValueError as error:
        return str(error)
    return ""


def _is_regex(text: str) -> bool:
    return len(text) > 2 and text[0] == text[-1] == "/"


def _regex(pattern: str) -> _Compiled:
    import re2

    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    options.encoding = re2.Options.Encoding.LATIN1  # bytes of any value
    try:
        return re2.compile(as_bytes(pattern), options)  # type: ignore[no-any-return]
    except re2.error as error:
        reason = error.args[0]
        said = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(f"this is not a regular expression (RE2): {said}") from None


class MatchCount(NamedTuple):
    """The number of a match, and the number of all matches."""

    number: int
    """The number, from 1 on, in the order of the list."""
    known: int
    """The number of known matches."""
    is_all: bool
    """Whether there are no others."""

    @property
    def text(self) -> str:
        """The text for a status line."""
        return f"match {self.number:,} of {self.known:,}{'' if self.is_all else '+'}"


class ListSearch:
    """The rows of a list that match. Only exchanges on the way to the next match are read.

    :param view: the place of each row; consecutive rows may share one.
    :param has_texts: whether the texts of the list are searched too.
    """

    def __init__(
        self,
        pattern: Pattern,
        index: Index,
        asker: AnswerClient,
        view: Callable[[], Places],
        *,
        has_texts: bool = True,
    ) -> None:
        self.pattern = pattern
        self._index, self._asker, self._view, self._has_texts = index, asker, view, has_texts
        self._hit: Mask = np.zeros(0, np.bool_)
        self._asked: Mask = np.zeros(0, np.bool_)
        self._texts: Mask = np.zeros(0, np.bool_)
        """The matching texts of the index."""
        asker.set_question(pattern)

    def next(self, row: int, step: int) -> int | None:
        """The next matching row after a row (or before it, with -1). None if no row matches. Also None while
        unknown: then :attr:`is_going_on`."""
        self._look_at_texts()
        view = self._view()
        places = view[row + 1 :] if step > 0 else view[:row][::-1]
        hits, open_ = self._hit[places], ~self._asked[places]
        first_hit = int(hits.argmax()) if hits.any() else len(places)
        first_open = int(open_.argmax()) if open_.any() else len(places)
        if first_hit < first_open:
            return row + 1 + first_hit if step > 0 else row - 1 - first_hit
        if first_open < len(places) and not self.is_going_on:
            self._ask(places[first_open : first_hit + 1][open_[first_open : first_hit + 1]])
        return None

    def answers(self) -> tuple[Mask, Mask]:
        """The rows that match, and the rows that do not. A row is in neither while its exchange was not
        read."""
        self._look_at_texts()
        view = self._view()
        hits = self._hit[view]
        return hits, self._asked[view] & ~hits

    def count(self, row: int) -> MatchCount | None:
        """The number of the match in a row; None while rows before it were not read."""
        self._look_at_texts()
        view = self._view()
        if not self._asked[view[:row]].all():
            return None
        hits = self._hit[view]
        all_asked = bool(self._asked[view[row:]].all())
        return MatchCount(int(hits[: row + 1].sum()), int(hits.sum()), all_asked)

    def ask_others(self, most: int) -> None:
        """Read the rows of a list that were not read yet, from the first on, unless a reading goes on.

        :param most: the largest number of exchanges.
        """
        self._look_at_texts()
        if not self.is_going_on and self.reason is None:
            view = self._view()
            self._ask(view[~self._asked[view]], most)

    def _ask(self, places: Places, most: int | None = None) -> None:
        """Ask about exchanges, each once. Rows that share one are consecutive."""
        self._asker.set_question(self.pattern)
        self._asker.add(places[np.flatnonzero(np.diff(places, prepend=-1))][:most])

    @property
    def is_going_on(self) -> bool:
        """Whether exchanges are being read."""
        return self._asker.progress is not None

    @property
    def reason(self) -> str | None:
        """The reason why it stopped early."""
        return self._asker.reason

    def poll(self) -> None:
        """Take in the new answers."""
        for places, hits in self._asker.poll():
            self._asked[places] = True
            self._hit[places] |= hits

    def stop(self) -> None:
        """Stop reading exchanges."""
        self._asker.forget()

    def _look_at_texts(self) -> None:
        """Find the rows with matching texts, also among new rows."""
        texts, known = self._index.texts, len(self._texts)
        if self._has_texts and known < len(texts):
            found = np.fromiter(map(self.pattern.is_in, texts[known:]), np.bool_, len(texts) - known)
            self._texts = np.concatenate((self._texts, found))
        start, end = len(self._hit), len(self._index)
        if start < end:
            hit = np.zeros(end - start, np.bool_)
            for name in TEXT_FIELDS if self._has_texts else ():
                hit |= self._texts[self._index.column(name, start, end)]
            self._hit = np.concatenate((self._hit, hit))
            self._asked = np.concatenate((self._asked, hit))
