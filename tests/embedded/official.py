"""Internal records and blobs that Kafka's own classes wrote, as they are stored."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any, NamedTuple

from tests.protocol.official import rows


class Stored(NamedTuple):
    """A record or a blob, and what Kafka's own classes say it is."""

    id: str
    family: str
    name: str
    version: int | None
    key: bytes | None
    value: bytes | None
    key_json: Any
    json: Any

    @property
    def given_name(self) -> str | None:
        """What the bytes alone do not tell."""
        return self.name if self.family in ("consumer-protocol", "streams", "connect") else None


@cache
def stored() -> tuple[Stored, ...]:
    """All of them."""
    return tuple(
        Stored(
            row["id"],
            row["family"],
            row["name"],
            row["version"],
            _bytes(row["key_hex"]),
            _bytes(row["value_hex"]),
            row["key_json"],
            _with_unknown_tags(row["json"], row.get("unknown_tags") or []),
        )
        for row in rows("internal.ndjson.gz")
    )


def largest_of_each() -> list[Stored]:
    """Of each record in each version, the one with the most bytes."""
    found: dict[tuple[str, str, int | None], Stored] = {}
    for each in sorted(stored(), key=lambda each: len(each.value or b"")):
        found[each.family, each.name, each.version] = each
    return list(found.values())


def one(family: str, name: str, version: int) -> Stored:
    """The largest of one record in one version."""
    (found,) = [each for each in largest_of_each() if each[1:4] == (family, name, version)]
    return found


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def _with_unknown_tags(obj: Any, unknown: list[dict[str, Any]]) -> Any:
    """Kafka's converter leaves them out; kdissect prints them last in their struct."""
    whole = copy.deepcopy(obj)
    for tagged in unknown:
        at = whole
        for step in tagged["path"]:
            at = at[step]
        at.setdefault("_unknownTaggedFields", []).append({"tag": tagged["tag"], "data": tagged["data"]})
    return whole
