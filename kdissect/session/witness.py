"""Can a frame begin at this position? What a connection's own messages say of it.

The framer asks where it lost the boundary (:data:`kdissect.protocol.framing.Witness`). A request shows
itself by its contents; a response by the request that it answers, which is why this knows what waits.
Decoding at guessed positions costs: what may be spent before the next frame is found is bounded.
"""

from __future__ import annotations

from kdissect.limits import DEFAULTS, Limits
from kdissect.message import Request, bare_frame, parse_response
from kdissect.model import DecodeError
from kdissect.session.evidence import HEADER_BYTES, Evidence, examine_request
from kdissect.session.pending import Pending

SEARCH_EFFORT = 1 << 20
"""Bytes that are decoded at guessed positions before the next frame is found; then only starts of segments
are looked at."""

UNSEEN_REQUESTS = 1_024
"""How far from the first correlation id that is known those of requests that were not captured may lie."""


class FrameWitness:
    """What is known of where frames of one connection begin.

    :param pending: what waits for an answer; the session adds and removes.
    :param correlation_id: of a request that is known to come, before it has.
    """

    __slots__ = ("_client_id", "_client_text", "_effort", "_known_correlation", "_limits", "_pending")

    def __init__(
        self, pending: Pending, limits: Limits = DEFAULTS, correlation_id: int | None = None
    ) -> None:
        self._pending = pending
        self._limits = limits
        self._known_correlation = correlation_id
        self._client_id: bytes | None = None
        self._client_text: str | None = None
        self._effort = SEARCH_EFFORT

    def refresh(self) -> None:
        """A frame was found: the next search may cost as much again."""
        self._effort = SEARCH_EFFORT

    def learn(self, request: Request) -> None:
        """What a request tells of those to come."""
        if self._known_correlation is None:
            self._known_correlation = request.correlation_id
        if request.client_id is not None and request.client_id is not self._client_text:
            self._client_text = request.client_id
            self._client_id = request.client_id.encode("utf-8", "surrogateescape")

    def begins_request(self, data: bytes, position: int, at_segment_start: bool) -> bool | None:
        """Whether a request begins here: one that fits exactly, or the header of a known client's."""
        if not at_segment_start and self._effort <= 0:
            return False
        evidence, end = examine_request(data, position, self._limits)
        if evidence is not Evidence.NONE:
            self._effort -= min(end, len(data)) - position
        if evidence is Evidence.EXACT:
            return True
        if evidence is Evidence.MORE:
            return None if at_segment_start and len(data) - position < HEADER_BYTES else False
        if evidence in (Evidence.HEADER, Evidence.LOOSE) and at_segment_start:
            length = int.from_bytes(data[position + 12 : position + 14], "big")
            client_id = data[position + HEADER_BYTES : position + HEADER_BYTES + length]
            return self._client_id in (None, client_id)
        return False

    def begins_response(self, data: bytes, position: int, at_segment_start: bool) -> bool | None:
        """Whether a response begins here: one whose request waits, and that fits as far as it is there."""
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
            return self.answers(data[position + 4 : position + 4 + size], self._pending.request(serial))
        return at_segment_start and left == size + 4 and self._was_sent_before(correlation)

    def answers(self, payload: bytes, request: Request) -> bool:
        """Whether a frame can be the response to this request: it fits to the last byte, as far as the
        definitions have the version."""
        try:
            frame = bare_frame(payload)
            body = parse_response(frame, request.api_key, request.api_version, self._limits).decoded()
        except DecodeError:
            return False
        return body.opaque is not None or body.is_exact

    def _was_sent_before(self, correlation: int) -> bool:
        """Whether this can answer a request from before the capture, or from a gap."""
        known = self._known_correlation
        return known is not None and known - UNSEEN_REQUESTS <= correlation < known + UNSEEN_REQUESTS
