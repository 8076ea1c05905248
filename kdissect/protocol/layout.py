"""What the definitions say of one message in one version, worked out once: all that reading it needs."""

from __future__ import annotations

from functools import cache
from typing import Any

from kdissect.protocol import apis
from kdissect.protocol.quirks import layouts, tail
from kdissect.protocol.schema import Struct, era_structs, message_struct
from kdissect.protocol.select import Selection, selection
from kdissect.protocol.survey import Route, route
from kdissect.protocol.topics import can_teach


class Layout:
    """The layout of a request or a response. Nothing is known of a version that the definitions do not
    have.
    """

    __slots__ = (
        *("_asked", "_candidates", "_has_records", "header_version", "is_known", "name", "struct", "teaches"),
        "way",
    )

    def __init__(self, api_key: int, version: int, kind: str) -> None:
        self._asked = (api_key, version, kind)
        self.name = apis.api_name(api_key)
        """Of the API, the newest."""
        self.is_known = apis.is_api(api_key) and version in apis.versions(api_key)
        """Whether Kafka has, or had, this API in this version."""
        self.header_version = _header_version(api_key, version, kind)
        """Of an API that is not known only what all headers share can be read."""
        self.struct: Struct | None = None
        """Of the body."""
        self._candidates: tuple[Struct, ...] | None = None
        self._has_records: bool | None = None
        """Both worked out when first asked for: most layouts of a reading are never asked."""
        self.way: Route | None = None
        """How it is surveyed, where it can be."""
        self.teaches = False
        """Whether names of topic ids may stand in it."""
        try:
            struct = message_struct(api_key, version, kind)
        except LookupError:
            return
        self.struct = struct
        self.way = route(struct, tail(*self._asked))
        self.teaches = can_teach(struct)

    @property
    def candidates(self) -> tuple[Struct, ...]:
        """The struct, those that older releases had for the same version, newest first, and those of known
        quirks."""
        if self._candidates is None:
            found: tuple[Struct, ...] = ()
            if self.struct is not None:
                found = (self.struct, *era_structs(*self._asked), *layouts(*self._asked))
            self._candidates = found
        return self._candidates

    def has_records(self) -> bool:
        """Whether one of the candidates has room for records."""
        if self._has_records is None:
            self._has_records = any(map(record_fields, self.candidates))
        return self._has_records

    def __reduce__(self) -> tuple[Any, ...]:
        return layout, self._asked


_MOST = 4_096
"""So many layouts are kept of each kind, then all are worked out anew: captured bytes may ask for any."""
_requests: dict[int, Layout] = {}
_responses: dict[int, Layout] = {}


def layout(api_key: int, version: int, kind: str) -> Layout:
    """The layout of a message; ``kind`` is ``request`` or ``response``."""
    known = _requests if kind == "request" else _responses
    key = (api_key << 32) + version
    found = known.get(key)
    if found is None:
        if len(known) >= _MOST:
            known.clear()
        found = known[key] = Layout(api_key, version, kind)
    return found


def _header_version(api_key: int, version: int, kind: str) -> int:
    if not apis.is_api(api_key):
        return 1 if kind == "request" else 0
    if kind == "request":
        return apis.request_header_version(api_key, version)
    return apis.response_header_version(api_key, version)


@cache
def record_fields(struct: Struct) -> Selection:
    """The fields of a struct that are record sets."""
    return selection(struct, lambda each: each.type == "records")
