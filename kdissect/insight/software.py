"""Which releases of client software are old: for each software the oldest release that is not, and its date.

A release from before the autumn of 2021 counts as old. Software that is not listed is not judged.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Current(NamedTuple):
    """The oldest release that is not old."""

    version: tuple[int, ...]
    since: str

    @property
    def text(self) -> str:
        return ".".join(map(str, self.version))


_LIBRDKAFKA = Current((1, 8, 2), "October 2021")
_CURRENT = {
    "apache-kafka-java": Current((3, 0, 0), "September 2021"),
    "librdkafka": _LIBRDKAFKA,
    "confluent-kafka-python": _LIBRDKAFKA,
    "confluent-kafka-dotnet": _LIBRDKAFKA,
    "confluent-kafka-go": _LIBRDKAFKA,
    "sarama": Current((1, 30, 0), "September 2021"),
}
"""The oldest current release of each software, by its name in ApiVersions (KIP-511)."""
_OF_CONFLUENT = re.compile(r"-(ccs|ce)\b")
_CONFLUENT = Current((7, 0, 0), "October 2021")
"""The oldest current release of Confluent Platform, whose builds have their own version numbers. It contains
Kafka 3.0."""


def newer_than(software: str, version: str) -> Current | None:
    """The oldest release that is not old, if this release is old; None if it is not, or if the software is
    not listed."""
    current = _CURRENT.get(software)
    found = re.match(r"v?(\d+(?:\.\d+)*)", version)
    if current is None or found is None:
        return None
    if software == "apache-kafka-java" and _OF_CONFLUENT.search(version):
        current = _CONFLUENT
    numbers = tuple(int(each[:9]) for each in found[1].split("."))
    return current if numbers < current.version[: len(numbers)] else None
