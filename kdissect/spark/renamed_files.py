"""A capture that somebody compresses or unpacks in its folder: for a while, one file has two names.

For example, ``tcpdump -z gzip`` makes ``a.pcap.gz`` of ``a.pcap``, and removes the old file. Two names that
differ in such an ending are one file if their first packets have the same time. Only one of them counts: the
one that was read before, while it exists. Then the other one continues at the packet where the first ended.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kdissect.capture.compressed import SUFFIXES
from kdissect.spark.storage import split_query


def twins(path: str) -> list[str]:
    """The other names that a file may have had, or may get: with another ending of compression, or none."""
    bare, query = split_query(_bare(path))
    return [each for ending in ("", *SUFFIXES) if (each := bare + ending + query) != path]


def doubles(firsts: Mapping[str, int | None], known: Collection[str]) -> set[str]:
    """The names that do not count, because another name of the same file does.

    :param firsts: the time of the first packet by path; None if there is no packet yet, as in an unfinished
        twin.
    :param known: the paths that were read before.
    """

    def rank(path: str) -> tuple[bool, bool, str]:
        return path not in known, path != _bare(path), path

    return {
        path
        for path, first in firsts.items()
        for twin in twins(path)
        if firsts.get(twin) and first in (None, firsts[twin]) and rank(twin) < rank(path)
    }


def _bare(path: str) -> str:
    base, query = split_query(path)
    for suffix in SUFFIXES:
        if base.endswith(suffix):
            return base.removesuffix(suffix) + query
    return path
