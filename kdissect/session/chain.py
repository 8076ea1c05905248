"""Whether two sides exchange requests and responses, judged by the heads of their frames alone.

If a client is newer than the definitions, or a vendor's, no body of its requests fits. But Kafka's framing
has a recognisable form. The frames of both directions are adjacent. A request has its correlation id after
four bytes, and then its client id. A response begins with the id of a waiting request. Enough consecutive
exchanges of that form are evidence of Kafka; one frame of another form disproves it.

Only heads are kept, so bodies may have any length.
"""

from __future__ import annotations

from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Chunk, Gap
from kdissect.session.evidence import HEADER_BYTES, NO_HEAD, STRANGE_API, look_at_head, number_at

PAIRS = 3
"""The number of consecutive exchanges, if the definitions have all their APIs (though perhaps not the
versions)."""

STRANGE_PAIRS = 8
"""The number of consecutive exchanges, if the definitions lack an API among them."""

USUAL_PORTS = frozenset((9092,))
"""The usual ports of brokers."""

USUAL_STRANGE_PAIRS = 4
"""The number that is enough at these ports, instead of :data:`STRANGE_PAIRS`."""

LIKELY_PAIRS, LIKELY_REQUESTS = 2, 8
"""The number of exchanges, or of requests without responses, that look like Kafka in the middle of a
stream."""

LONGEST_CLIENT_ID = 255
"""The longest client id in bytes that counts as evidence; longer ones are allowed."""

MOST_PENDING = 1_024
"""The largest number of requests remembered; beyond it the oldest are forgotten."""

RESPONSE_HEAD = 8
"""Its size and the correlation id."""

_NO_FRAME = -1
_MORE = -2
"""Instead of a frame's size: no frame begins here, or more bytes are needed."""

_ALL_IDS, _HALF = 1 << 32, 1 << 31
"""Correlation ids, and half of them."""
_HEADER_BYTES, _RESPONSE_HEAD = HEADER_BYTES, RESPONSE_HEAD
_LONGEST_CLIENT_ID, _LONGEST_REQUEST_HEAD = LONGEST_CLIENT_ID, HEADER_BYTES + LONGEST_CLIENT_ID
_MOST_PENDING = MOST_PENDING
_NO_HEAD, _STRANGE_API = NO_HEAD, STRANGE_API


class _FrameTrack:
    """The positions of the frames of one direction."""

    __slots__ = ("head", "is_fresh", "is_lost", "is_sure", "left")

    def __init__(self) -> None:
        self.is_fresh = True
        """Whether nothing of it came so far."""
        self.is_lost = True
        """Whether the beginning of the next frame is unknown; the start of a segment may show it."""
        self.is_sure = False
        """Whether it was followed from the direction's first byte on, without a gap."""
        self.left = 0
        """The number of bytes up to the next frame."""
        self.head = b""
        """The bytes so far of the current frame's head."""


class Chain:
    """The frames of one direction as requests, and of the other direction as their responses."""

    __slots__ = (
        *("_answered", "_asked", "_has_last", "_is_broken", "_last", "_limits", "_pending", "_requests"),
        *("_strange", "client_id", "pairs"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self._limits = limits
        self._asked = _FrameTrack()
        self._answered = _FrameTrack()
        self._pending: dict[int, bool] = {}
        """The correlation ids of waiting requests, oldest first, and whether their APIs are known."""
        self._is_broken = False
        self._has_last = False
        self._last = 0
        """The correlation id of the latest request, where there is one."""
        self._requests = 0
        """The number of consecutive requests."""
        self._strange = 0
        """The number of pairs with an unknown API."""
        self.pairs = 0
        """The number of consecutive requests with their responses."""
        self.client_id: bytes | None = None
        """The common client id of these requests."""

    @property
    def is_broken(self) -> bool:
        """Whether a direction that was seen from its first byte has the wrong form: no later frame can change
        that."""
        return self._is_broken

    @property
    def correlation_id(self) -> int | None:
        """The correlation id of the latest request."""
        return self._last if self._has_last else None

    def is_enough(self, port: int, is_doubtful: bool) -> bool:
        """Whether the pairs prove Kafka.

        :param port: the port of the side that answers.
        :param is_doubtful: whether the body of a request among them does not fit its API.
        """
        if not self._strange and not is_doubtful:
            return self.pairs >= PAIRS
        return self.pairs >= (USUAL_STRANGE_PAIRS if port in USUAL_PORTS else STRANGE_PAIRS)

    @property
    def is_likely(self) -> bool:
        """Whether the frames so far look like Kafka, proven or not."""
        if self._is_broken or not self._requests:
            return False
        return self._asked.is_sure or self.pairs >= LIKELY_PAIRS or self._requests >= LIKELY_REQUESTS

    def feed(self, asks: bool, piece: Chunk | Gap, opened: bool) -> None:
        """Take in the next bytes of a direction.

        :param asks: whether it is the direction of the requests.
        :param opened: whether its first byte was captured.
        """
        if self._is_broken:
            return
        track = self._asked if asks else self._answered
        is_first, track.is_fresh = track.is_fresh, False
        if isinstance(piece, Gap):
            if piece.is_exact and piece.length <= track.left:
                track.left -= piece.length
            else:
                track.is_sure = False
                self._lose(track)
            return
        was_lost = track.is_lost
        if was_lost:
            track.is_sure = opened and is_first
            track.is_lost = False
        self._walk(track, piece.data)
        if was_lost and track.head and not track.is_sure:
            self._lose(track)  # a segment that may be anything must show a frame at its start

    def _walk(self, track: _FrameTrack, data: bytes) -> None:
        asks = track is self._asked
        longest = _LONGEST_REQUEST_HEAD if asks else _RESPONSE_HEAD
        position = 0
        while not track.is_lost:
            passed = min(track.left, len(data) - position)
            track.left -= passed
            position += passed
            if position >= len(data):
                return
            had = len(track.head)
            head = track.head + data[position : position + longest - had]
            size = self._read_request(head) if asks else self._read_response(head)
            if size == _MORE:
                track.head = head
                return
            track.head = b""
            track.left = 4 + size - had
            if size < 0:
                self._lose(track)

    def _read_request(self, data: bytes) -> int:
        """The size of the request frame that begins here; :data:`_NO_FRAME` or :data:`_MORE` without one."""
        if len(data) < _HEADER_BYTES:
            return _MORE
        length = number_at(data, 12, 2)
        if _HEADER_BYTES + length > len(data) and 0 <= length <= _LONGEST_CLIENT_ID:
            return _MORE
        standing = look_at_head(data, 0, self._limits)
        if standing == _NO_HEAD:
            return _NO_FRAME
        known, last, correlation_id = self.client_id, self._last, number_at(data, 8, 4)
        if known is not None and (len(known) != length or not data.startswith(known, _HEADER_BYTES)):
            return _NO_FRAME
        if self._has_last and correlation_id == last:
            return _NO_FRAME
        if self._has_last and (correlation_id - last) % _ALL_IDS >= _HALF:
            self._reset_counts()  # clients count up
        if known is None:
            self.client_id = data[_HEADER_BYTES : _HEADER_BYTES + length]
        self._has_last, self._last = True, correlation_id
        self._requests += 1
        self._pending[correlation_id] = standing != _STRANGE_API
        if len(self._pending) > _MOST_PENDING:
            del self._pending[next(iter(self._pending))]
        return number_at(data, 0, 4)

    def _read_response(self, data: bytes) -> int:
        """The size of the response frame that begins here; :data:`_NO_FRAME` or :data:`_MORE` without one."""
        if len(data) < _RESPONSE_HEAD:
            return _MORE
        size, correlation_id = number_at(data, 0, 4), number_at(data, 4, 4)
        if not 4 <= size <= self._limits.frame_bytes or correlation_id not in self._pending:
            return _NO_FRAME
        for older in list(self._pending):
            is_api = self._pending.pop(older)
            if older == correlation_id:
                self.pairs += 1
                self._strange += not is_api
                break
        return size

    def _lose(self, track: _FrameTrack) -> None:
        self._is_broken = track.is_sure
        track.is_lost = True
        track.left = 0
        track.head = b""
        if track is self._asked:
            self.client_id, self._has_last = None, False
            self._pending.clear()
        self._reset_counts()

    def _reset_counts(self) -> None:
        self.pairs = self._requests = self._strange = 0
