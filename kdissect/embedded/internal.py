"""Keys and values of Kafka's internal topics, and the blobs of group members ↔ JSON.

The caller must know the family. A record's family follows from the topic (:func:`family_of_topic`), a control
record's from the batch, a blob's from the message around it. The bytes contain the class and the version; if
they do not, the caller passes the class as ``name``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from kdissect.embedded import control, framing
from kdissect.embedded.decoded import Embedded, Render, opaque, plain
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Fault, Node
from kdissect.wording import plural

COORDINATORS = {
    "group": "group-coordinator",
    "transaction": "transaction-coordinator",
    "share": "share-coordinator",
}
"""The definitions' group of each family with an int16 record type in the key and an int16 version in the
value."""
METADATA = {"metadata": "metadata", "remote-log": "storage"}
"""The definitions' group of each family with the frame of metadata records in the value."""
VERSIONED = {
    "consumer-protocol": ("ConsumerProtocolSubscription", "ConsumerProtocolAssignment"),
    "connect": ("ConnectWorkerState", "ConnectAssignment"),
    "principal": ("DefaultPrincipalData",),
}
"""The classes of each family with an int16 version before them."""
LENIENT = ("consumer-protocol", "connect")
"""Families for which Kafka reads a newer version than it knows as the newest it knows."""
OWN = {"streams": ("SubscriptionInfoData", "AssignmentInfo")}
"""The classes of each family whose first field is their version."""

FAMILIES = (*COORDINATORS, *METADATA, *VERSIONED, *OWN, "control")

TOPICS = {
    "__consumer_offsets": "group",
    "__transaction_state": "transaction",
    "__cluster_metadata": "metadata",
    "__share_group_state": "share",
    "__remote_log_metadata": "remote-log",
}


def family_of_topic(topic: str) -> str | None:
    """The family of a topic's records; None for users' topics."""
    return TOPICS.get(topic)


class Internal(NamedTuple):
    """A record of an internal topic, or a blob (which has no key)."""

    family: str
    key_part: Embedded | None
    value_part: Embedded | None

    @property
    def name(self) -> str | None:
        """Kafka's name of the class; without ``Key`` and ``Value`` for a coordinator's records.
        ``Unknown(n)`` for an unknown type, None if the bytes do not contain it."""
        names = [part.name for part in (self.key_part, self.value_part) if part is not None]
        return next(filter(None, names), None)

    @property
    def version(self) -> int | None:
        """The value's version; None for a tombstone."""
        return None if self.value_part is None else self.value_part.version

    @property
    def key(self) -> dict[str, Any] | None:
        """The key in Kafka's JSON form; None without a key."""
        return None if self.key_part is None else self.key_part.json()

    @property
    def body(self) -> dict[str, Any] | None:
        """The value, in Kafka's JSON form; None for a tombstone."""
        return None if self.value_part is None else self.value_part.json()

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The faults; offsets count in the key or in the value, as the message says."""
        return tuple(
            fault._replace(message=f"{side}: {fault.message}")
            for side, part in (("key", self.key_part), ("value", self.value_part))
            if part is not None
            for fault in part.faults
        )

    def json(self, render: Render = plain) -> dict[str, Any]:
        """Name, version, key and body as one object."""
        return {
            "name": self.name,
            "version": self.version,
            "key": self.key_part and self.key_part.json(render),
            "body": self.value_part and self.value_part.json(render),
        }


def decode_internal(
    family: str,
    key: bytes | None,
    value: bytes | None,
    name: str | None = None,
    limits: Limits = DEFAULTS,
) -> Internal:
    """Decode a record or a blob.

    :param name: the class, if the bytes do not contain it: subscription or assignment, worker state or
        assignment, or a coordinator's value without its key.
    :raises ValueError: there is no such family, or no such class in it. Bytes never raise an error.
    """
    _check(family, name)
    if family in COORDINATORS:
        return Internal(family, *framing.read_coordinator(COORDINATORS[family], key, value, name, limits))
    if family == "control":
        return Internal(family, *control.read(key, value, name, limits))
    body = None
    if value is not None and family in METADATA:
        body = framing.read_metadata(METADATA[family], value, limits)
    elif value is not None:
        body = _blob(family, value, name, limits)
    return Internal(family, None if key is None else _no_key(key), body)


def _check(family: str, name: str | None) -> None:
    if family not in FAMILIES:
        raise ValueError(f"family: {family} is not one of {', '.join(FAMILIES)}")
    classes = (VERSIONED | OWN).get(family)
    if classes and name is not None and name not in classes:
        raise ValueError(f"name: {name} is not one of {', '.join(classes)}")
    if family in COORDINATORS and name is not None:
        stems = framing.record_types(COORDINATORS[family]).values()
        if name not in stems and not name.startswith("Unknown("):
            raise ValueError(f"name: {name} is not one of {', '.join(sorted(stems))}")


def _no_key(key: bytes) -> Embedded:
    """A key of records that must have none: it is shown with a fault."""
    if not key:
        return Embedded("", None, key, {})
    reason = f"{plural(len(key), 'byte')} where these records have no key"
    return opaque("", None, key, (), "remainder", reason)


def _blob(family: str, data: bytes, name: str | None, limits: Limits) -> Embedded:
    classes = (VERSIONED | OWN)[family]
    if name is None and len(classes) > 1:
        exact = [found for each in classes if (found := read_blob(family, data, each, limits)).is_exact]
        if len(exact) == 1:
            return exact[0]
        reason = f"the bytes do not tell whether they are {' or '.join(classes)}"
        return opaque("", None, data, (), "embedded", reason)
    return read_blob(family, data, name or classes[0], limits)


def read_blob(family: str, data: bytes, name: str, limits: Limits = DEFAULTS) -> Embedded:
    """A blob whose class is known."""
    if family in OWN:
        return framing.read_own(name, data, limits)
    return framing.read_versioned(name, data, family in LENIENT, limits)


def annotate_internal(
    family: str,
    key: bytes | None,
    value: bytes | None,
    name: str | None = None,
    limits: Limits = DEFAULTS,
) -> Node:
    """The tree of key and value. Ranges count in the key and the value put together. The nodes without
    children cover every byte of both.

    :raises ValueError: as :func:`decode_internal`.
    """
    found = decode_internal(family, key, value, name, limits)
    buffer = (key or b"") + (value or b"")
    root = Node(found.name or family, "internal record", None, 0, len(buffer), buffer=buffer)
    at = 0
    for side, part in (("key", found.key_part), ("value", found.value_part)):
        if part is not None:
            end = at + len(part.data)
            node = Node(side, "bytes", None, at, end, part.draw(buffer, at))
            node.fault = part.faults[0] if part.faults else None
            root.children.append(node)
            at = end
    return root


def encode_internal(
    family: str, name: str | None, version: int | None, key: Any, body: Any
) -> tuple[bytes | None, bytes | None]:
    """The key and the value from the result of :func:`decode_internal`; without version and body, a
    tombstone.

    :raises ValueError: the arguments do not fit the definitions; the message begins with the path.
    """
    _check(family, name)
    if name is None:
        raise ValueError("name: needed")
    if not isinstance(version, int | None):
        raise ValueError("version: an integer is needed")
    if family in COORDINATORS:
        if version is None and body is not None:
            raise ValueError("version: needed")
        return framing.write_coordinator(COORDINATORS[family], name, version, key, body)
    if version is None:
        raise ValueError("version: needed")
    if family == "control":
        return control.write(name, version, key, body)
    if key is not None:
        raise ValueError("key: these records have none")
    if family in METADATA:
        return None, framing.write_metadata(METADATA[family], name, version, body)
    if family in OWN:
        return None, framing.write_struct(name, version, body)
    return None, framing.write_versioned(name, version, body)


@cache
def topic_record_start() -> bytes:
    """The first bytes of values of ``__cluster_metadata`` that name a topic."""
    types = {name: number for number, name in framing.record_types(METADATA["metadata"]).items()}
    return bytes((framing.FRAME_VERSION, types["TopicRecord"]))


def topic_names_in_metadata(
    values: Iterable[bytes | None], limits: Limits = DEFAULTS
) -> Iterator[tuple[str, str]]:
    """Topic id and name, from the values of records of ``__cluster_metadata``."""
    start = topic_record_start()
    for value in values:
        if value is not None and value.startswith(start):
            found = framing.read_metadata(METADATA["metadata"], value, limits)
            if found.is_exact:
                yield found.values["topicId"], found.values["name"]
