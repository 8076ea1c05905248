"""Whether a frame can begin at a position, judged by the connection's own messages.

The framer asks after it lost the boundary (:data:`kdissect.protocol.framing.Witness`). A request is
recognised by its contents. A response is recognised by its request, so the witness needs the waiting
requests. Decoding at guessed positions is expensive, so its amount before the next frame is found is bounded.
"""

from __future__ import annotations

from kdissect.limits import DEFAULTS, Limits
from kdissect.message import Request, bare_frame, parse_response
from kdissect.model import DecodeError
from kdissect.protocol.framing import read_size_prefix
from kdissect.session.evidence import HEADER_BYTES, Evidence, examine_request, read_head
from kdissect.session.pending import Pending

SEARCH_EFFORT = 1 << 20
"""The number of bytes decoded at guessed positions before the next frame is found. Beyond it only starts of
segments are checked."""

_SEARCH_EFFORT = SEARCH_EFFORT
"""The same as a C number when compiled."""

_NONE, _STRANGE, _MORE = Evidence.NONE, Evidence.STRANGE, Evidence.MORE
_HEADER, _LOOSE, _EXACT = Evidence.HEADER, Evidence.LOOSE, Evidence.EXACT

UNSEEN_REQUESTS = 1_024
"""The largest distance between the first known correlation id and those of requests that were not
captured."""


class FrameWitness:
    """Judges where frames of one connection begin.

    :param pending: the entries that wait for an answer; the session adds and removes them.
    :param correlation_id: the id of a request that is known to come.
    :param client_id: the client's id, if it is already known.
    """

    __slots__ = (
        *("_client_id", "_client_text", "_effort", "_known_correlation", "_limits", "_most", "_pending"),
        "_turned",
    )

    def __init__(
        self,
        pending: Pending,
        limits: Limits = DEFAULTS,
        correlation_id: int | None = None,
        client_id: str | None = None,
    ) -> None:
        self._pending = pending
        self._limits = limits
        self._most = limits.frame_bytes
        self._known_correlation = correlation_id
        self._client_id = None if client_id is None else client_id.encode("utf-8", "surrogateescape")
        self._client_text = client_id
        self._effort = _SEARCH_EFFORT
        self._turned: FrameWitness | None = None

    def turn(self, turned: FrameWitness) -> None:
        """Note that the roles turned round: frames of either direction may be of either kind.

        :param turned: the witness of the other end's requests.
        """
        self._turned = turned

    def refresh(self) -> None:
        """Reset the effort after a found frame: the next search may use as much again."""
        self._effort = _SEARCH_EFFORT

    def learn(self, request: Request) -> None:
        """Learn the client id, and the first correlation id, from a request."""
        if self._known_correlation is None:
            self._known_correlation = request.correlation_id
        if request.client_id is not None and request.client_id is not self._client_text:
            self._client_text = request.client_id
            self._client_id = request.client_id.encode("utf-8", "surrogateescape")

    def know(self, client_id: str) -> None:
        """Note the client id of requests that another object read."""
        self._client_text = client_id
        self._client_id = client_id.encode("utf-8", "surrogateescape")

    def begins_request(self, data: bytes, position: int, at_segment_start: bool) -> bool | None:
        """Whether a request begins here: it fits exactly, or has the header of a known client. If the roles
        turned round, a response to the other end counts too."""
        found = self._begins_request(data, position, at_segment_start)
        if found is True or self._turned is None:
            return found
        return self._turned._begins_response(data, position, at_segment_start) or found

    def begins_response(self, data: bytes, position: int, at_segment_start: bool) -> bool | None:
        """Whether a response begins here: its request waits, and its captured part fits. If the roles turned
        round, a request of the other end counts too."""
        found = self._begins_response(data, position, at_segment_start)
        if found is True or self._turned is None:
            return found
        return self._turned._begins_request(data, position, at_segment_start) or found

    def _begins_request(self, data: bytes, position: int, at_segment_start: bool) -> bool | None:
        if not at_segment_start and self._effort <= 0:
            return False
        if len(data) - position >= 4:
            size = read_size_prefix(data, position)
            if size < 8 or size > self._most:
                return False  # examine_request would find the same; nearly all guessed positions end here
        evidence, end = examine_request(data, position, self._limits)
        if evidence is not _NONE and evidence is not _STRANGE:
            self._effort -= min(end, len(data)) - position
        if evidence is _EXACT:
            return True
        if at_segment_start and (evidence is _STRANGE or evidence is _MORE) and self._client_id:
            head = read_head(data, position, self._limits)
            if head is not None and head.client_id == self._client_id:
                return True  # of an unknown API or version, but of this client
        if evidence is _MORE:
            return None if at_segment_start and len(data) - position < HEADER_BYTES else False
        if at_segment_start and (evidence is _HEADER or evidence is _LOOSE):
            length = int.from_bytes(data[position + 12 : position + 14], "big")
            client_id = data[position + HEADER_BYTES : position + HEADER_BYTES + length]
            return self._client_id in (None, client_id)
        return False

    def _begins_response(self, data: bytes, position: int, at_segment_start: bool) -> bool | None:
        left = len(data) - position
        if left < 8:
            return None if at_segment_start else False
        size = int.from_bytes(data[position : position + 4], "big", signed=True)
        if not 4 <= size <= self._limits.frame_bytes:
            return False
        correlation = int.from_bytes(data[position + 4 : position + 8], "big", signed=True)
        serial = self._pending.find(correlation)
        if serial is not None:
            if left < size + 4 or (not at_segment_start and self._effort <= 0):
                return at_segment_start
            self._effort -= size
            request = self._pending.request(serial)
            if not at_segment_start and request.body_struct() is None:
                return False  # the number may occur anywhere; the bytes that fit it must prove it
            return self.answers(data[position + 4 : position + 4 + size], request)
        return at_segment_start and left == size + 4 and self._was_sent_before(correlation)

    def answers(self, payload: bytes, request: Request) -> bool:
        """Whether a frame can be the response to this request. If the definitions have the version, it must
        fit to the last byte; otherwise any bytes are accepted."""
        try:
            frame = bare_frame(payload)
            body = parse_response(frame, request.api_key, request.api_version, self._limits).decoded()
        except DecodeError:
            return False
        return body.opaque is not None or body.is_exact

    def _was_sent_before(self, correlation: int) -> bool:
        """Whether a correlation id can belong to a request from before the capture, or from a gap."""
        known = self._known_correlation
        return known is not None and known - UNSEEN_REQUESTS <= correlation < known + UNSEEN_REQUESTS
