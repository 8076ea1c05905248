"""The definitions of one message in one version, prepared once with everything needed to read it."""

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
    """The layout of a request or a response. For a version that the definitions do not have, it is nearly
    empty."""

    __slots__ = (
        *("_asked", "_candidates", "_has_records", "header_version", "is_known", "name", "struct", "teaches"),
        "way",
    )

    def __init__(self, api_key: int, version: int, kind: str) -> None:
        self._asked = (api_key, version, kind)
        self.name = apis.api_name(api_key)
        """The newest name of the API."""
        self.is_known = apis.is_api(api_key) and version in apis.versions(api_key)
        """Whether Kafka has, or had, this API in this version."""
        self.header_version = _header_version(api_key, version, kind)
        """The header's version. For an unknown API, only the common part of all headers can be read."""
        self.struct: Struct | None = None
        """The struct of the body."""
        self._candidates: tuple[Struct, ...] | None = None
        self._has_records: bool | None = None
        """Computed on demand, like the candidates: most layouts of a capture never need them."""
        self.way: Route | None = None
        """The route to survey it; None if it must be decoded."""
        self.teaches = False
        """Whether it may have names of topic ids."""
        try:
            struct = message_struct(api_key, version, kind)
        except LookupError:
            return
        self.struct = struct
        self.way = route(struct, tail(*self._asked))
        self.teaches = can_teach(struct)

    @property
    def candidates(self) -> tuple[Struct, ...]:
        """The struct, then older releases' structs for the same version, newest first, then those of known
        quirks."""
        if self._candidates is None:
            found: tuple[Struct, ...] = ()
            if self.struct is not None:
                found = (self.struct, *era_structs(*self._asked), *layouts(*self._asked))
            self._candidates = found
        return self._candidates

    def has_records(self) -> bool:
        """Whether one of the candidates has a records field."""
        if self._has_records is None:
            self._has_records = any(map(record_fields, self.candidates))
        return self._has_records

    def __reduce__(self) -> tuple[Any, ...]:
        return layout, self._asked


_MOST = 4_096
"""The number of layouts kept of each kind. Beyond it all are dropped, because captured bytes may name any
version."""
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
