"""Do two sides exchange requests and responses, whatever stands in them? Told by their heads alone.

If a client is newer than the definitions, or a vendor's, no body of its requests fits. But Kafka's framing is
a shape of its own. The frames of both directions lie end to end. A request has its correlation id behind four
bytes and its client id behind that. A response begins with the id of a request that waits. Enough exchanges
of that form, one behind the other, are evidence of Kafka; one frame that breaks the form undoes it.

Only heads are kept: what is between them may be of any length.
"""

from __future__ import annotations

from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Chunk, Gap
from kdissect.session.evidence import HEADER_BYTES, NO_HEAD, STRANGE_API, look_at_head, number_at

PAIRS = 3
"""Exchanges in a row, all of APIs that the definitions have (in versions that they need not have)."""

STRANGE_PAIRS = 8
"""The same where an API is among them that they do not have."""

USUAL_PORTS = frozenset((9092,))
"""Where brokers listen if nobody says otherwise."""

USUAL_STRANGE_PAIRS = 4
"""As many as :data:`STRANGE_PAIRS` elsewhere are enough there."""

LIKELY_PAIRS, LIKELY_REQUESTS = 2, 8
"""Exchanges, or requests without responses, that look like Kafka's in the midst of a stream."""

LONGEST_CLIENT_ID = 255
"""Bytes. Longer ones are allowed, and no evidence."""

MOST_PENDING = 1_024
"""Requests that are remembered; of more, the oldest are forgotten."""

RESPONSE_HEAD = 8
"""Its size and the correlation id."""

_NO_FRAME = -1
_MORE = -2
"""In place of the size of a frame: none begins here, or more bytes are needed."""

_ALL_IDS, _HALF = 1 << 32, 1 << 31
"""Correlation ids, and half of them."""
_HEADER_BYTES, _RESPONSE_HEAD = HEADER_BYTES, RESPONSE_HEAD
_LONGEST_CLIENT_ID, _LONGEST_REQUEST_HEAD = LONGEST_CLIENT_ID, HEADER_BYTES + LONGEST_CLIENT_ID
_MOST_PENDING = MOST_PENDING
_NO_HEAD, _STRANGE_API = NO_HEAD, STRANGE_API


class _FrameTrack:
    """Where the frames of one direction begin."""

    __slots__ = ("head", "is_fresh", "is_lost", "is_sure", "left")

    def __init__(self) -> None:
        self.is_fresh = True
        """Nothing of it came so far."""
        self.is_lost = True
        """Where the next frame begins is not known; the start of a segment may tell."""
        self.is_sure = False
        """It was followed from the direction's first byte on, without a gap."""
        self.left = 0
        """Bytes up to the next frame."""
        self.head = b""
        """What is there of the head of the frame at hand."""


class Chain:
    """What is known of the frames of one direction if they are requests, and of the other's answers."""

    __slots__ = (
        *("_answered", "_asked", "_has_last", "_is_broken", "_last", "_limits", "_pending", "_requests"),
        *("_strange", "client_id", "pairs"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self._limits = limits
        self._asked = _FrameTrack()
        self._answered = _FrameTrack()
        self._pending: dict[int, bool] = {}
        """Correlation ids of requests that wait, oldest first, and whether their APIs are known."""
        self._is_broken = False
        self._has_last = False
        self._last = 0
        """The correlation id of the latest request, where there is one."""
        self._requests = 0
        """In a row."""
        self._strange = 0
        """Of the pairs, those of an unknown API."""
        self.pairs = 0
        """Requests with their responses, one behind the other."""
        self.client_id: bytes | None = None
        """Of all these requests."""

    @property
    def is_broken(self) -> bool:
        """Whether a direction that was seen from its first byte is not what it would have to be: no frame
        can change that."""
        return self._is_broken

    @property
    def correlation_id(self) -> int | None:
        """The latest request's."""
        return self._last if self._has_last else None

    def is_enough(self, port: int, is_doubtful: bool) -> bool:
        """Whether the pairs show Kafka.

        :param port: of the side that answers.
        :param is_doubtful: whether a request was among them whose body is not that of its API.
        """
        if not self._strange and not is_doubtful:
            return self.pairs >= PAIRS
        return self.pairs >= (USUAL_STRANGE_PAIRS if port in USUAL_PORTS else STRANGE_PAIRS)

    @property
    def is_likely(self) -> bool:
        """Whether what was seen so far looks like Kafka, enough or not."""
        if self._is_broken or not self._requests:
            return False
        return self._asked.is_sure or self.pairs >= LIKELY_PAIRS or self._requests >= LIKELY_REQUESTS

    def feed(self, asks: bool, piece: Chunk | Gap, opened: bool) -> None:
        """Look at the next bytes of a direction.

        :param asks: whether it is the one of the requests.
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
            self._lose(track)  # the start of a segment that may be anything has to tell at once

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
        """The size of the frame that begins here; :data:`_NO_FRAME` or :data:`_MORE` if there is none."""
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
            self._begin_anew()  # clients count up
        if known is None:
            self.client_id = data[_HEADER_BYTES : _HEADER_BYTES + length]
        self._has_last, self._last = True, correlation_id
        self._requests += 1
        self._pending[correlation_id] = standing != _STRANGE_API
        if len(self._pending) > _MOST_PENDING:
            del self._pending[next(iter(self._pending))]
        return number_at(data, 0, 4)

    def _read_response(self, data: bytes) -> int:
        """The same of a response."""
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
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.pairs = self._requests = self._strange = 0
