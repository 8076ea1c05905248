"""The APIs of the definitions: their keys, names and versions, and the header version of each message."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from kdissect.protocol.definition import Block
from kdissect.protocol.library import library
from kdissect.protocol.traits import api_traits

PRODUCE, FETCH, LIST_OFFSETS, METADATA, CONTROLLED_SHUTDOWN, OFFSET_COMMIT, OFFSET_FETCH = 0, 1, 2, 3, 7, 8, 9
SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE, FETCH_SNAPSHOT = 17, 18, 36, 59


class ApiSummary(NamedTuple):
    """A row of ``schema list``."""

    key: int
    name: str
    versions: range
    flexible_from: int | None
    """The first version with compact types and tagged fields; None if no version has them."""
    unstable: tuple[int, ...]
    """The versions that their release calls unstable."""
    releases: tuple[str, ...]
    """The Kafka releases whose definitions describe it."""
    also: tuple[str, ...]
    """Older names."""


def api_keys() -> tuple[int, ...]:
    """All API keys, in ascending order."""
    return library().keys


def is_api(key: int | None) -> bool:
    """Whether the definitions have an API with this key."""
    return key in library().apis


def api_name(key: int) -> str:
    """The newest name, without ``Request``; ``Unknown(4711)`` if the key is unknown."""
    entry = library().apis.get(key)
    return entry[0] if entry else f"Unknown({key})"


def api_key(name: str) -> int:
    """The key of a name; old names are found too. Case and underscores are ignored.

    :raises LookupError: no API has or had this name.
    """
    wanted = _plain(name)
    for key, (known, _) in library().apis.items():
        if _plain(known) == wanted:
            return key
    for key in library().apis:  # only now: old names are in the files
        if wanted in map(_plain, library().api(key).also):
            return key
    raise LookupError(f"no API is named {name}")


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


@cache
def versions(key: int) -> range:
    """All known versions of its request, from the oldest to the newest.

    :raises LookupError: there is no such API.
    """
    return _range(_blocks(key, "request"))


@cache
def data_names() -> tuple[str, ...]:
    """The names of all message classes that are neither request nor response."""
    return tuple(sorted(library().data))


@cache
def data_versions(name: str) -> range:
    """All known versions of a message class that is neither request nor response.

    :raises LookupError: there is no such class.
    """
    return _range([block for block in library().data_class(name).blocks if not block.era])


def data_group(name: str) -> str:
    """The Kafka module that a class belongs to: ``clients``, ``metadata``, ``group-coordinator`` …

    :raises LookupError: there is no such class.
    """
    entry = library().data.get(name)
    if entry is None:
        raise LookupError(f"no message class is named {name}")
    return entry[0]


@cache
def data_record_type(name: str) -> int | None:
    """The number that marks records of this class in Kafka's internal topics; None for other classes.

    :raises LookupError: there is no such class.
    """
    return library().data_class(name).blocks[0].record_type


def flexible(key: int, version: int, kind: str) -> bool:
    """Whether a version has compact types and tagged fields. A version newer than all known ones counts as
    flexible if the newest one is. (The result is not cached: captured bytes may name too many versions.)

    :raises LookupError: there is no such API.
    """
    blocks = _blocks(key, kind)
    for block in blocks:
        if version in block:
            return version in block.flexible
    return version in blocks[0].flexible


def request_header_version(key: int, version: int) -> int:
    """The version of a request's header. Only ControlledShutdown 0 has header 0, without a client id.
    Flexible versions have header 2.

    :raises LookupError: there is no such API.
    """
    if key == CONTROLLED_SHUTDOWN and version == 0:
        return 0
    return 2 if flexible(key, version, "request") else 1


def response_header_version(key: int, version: int) -> int:
    """The version of a response's header. ApiVersions responses always have header 0, because the client does
    not know yet which versions the broker supports (KIP-511).

    :raises LookupError: there is no such API.
    """
    if key == API_VERSIONS:
        return 0
    return 1 if flexible(key, version, "response") else 0


@cache
def api_summary(key: int) -> ApiSummary:
    """:raises LookupError: there is no such API."""
    requests = _blocks(key, "request")
    spans = [span for block in requests for span in block.spans]
    known = _range(requests)
    return ApiSummary(
        key=key,
        name=api_name(key),
        versions=known,
        flexible_from=next((version for version in known if flexible(key, version, "request")), None),
        unstable=tuple(
            version for version in known for span in spans if span.unstable and version in span.versions
        ),
        releases=tuple(dict.fromkeys(span.release for span in spans)),
        also=library().api(key).also,
    )


def releases_with(key: int, version: int) -> tuple[str, ...]:
    """The Kafka releases whose definitions have this version of the request.

    :raises LookupError: there is no such API.
    """
    spans = (span for block in _blocks(key, "request") for span in block.spans)
    return tuple(dict.fromkeys(span.release for span in spans if version in span.versions))


@cache
def removed_in(key: int, version: int) -> str | None:
    """The Kafka release that removed this version of an API; None if it was not removed, or that is unknown.
    If a version is in releases before 4.0 and in none since, 4.0 removed it (KIP-896). This also holds for
    APIs of brokers without KRaft. Early access versions of 4.0 (KIP-932) were removed later; their definition
    has the release. A vendor's release, whose name has a hyphen, is not counted."""
    if not is_api(key):
        return None
    releases = [release for release in releases_with(key, version) if "-" not in release]
    if not releases or any(int(release.partition(".")[0]) >= 4 for release in releases):
        return None
    return api_traits(key).removed_in or "4.0"


def _blocks(key: int, kind: str) -> list[Block]:
    return [block for block in library().api(key).blocks if block.kind == kind and not block.era]


def _range(blocks: list[Block]) -> range:
    spans = [span.versions for block in blocks for span in block.spans]
    return range(min(span.low for span in spans), max(span.high for span in spans) + 1)
