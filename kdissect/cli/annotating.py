"""``--comment``: what is said of packets that are written.

What collects it knows the rules of findings, so :mod:`kdissect.cli.annotations` is imported only where it is
asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from kdissect.capture.options import COMMENT, Option
from kdissect.capture.reader import Interface
from kdissect.dissect import Event
from kdissect.model import Packet

FINDINGS, EXCHANGES = KINDS = ("findings", "exchanges")
"""What comments can tell."""

_LONGEST_SECTION = 60_000
"""Bytes of the comment of a section: an option has 64 KiB."""

Renumber = Callable[[int], int | None]
"""The number that a packet has in the file that is written; None: it is not there."""


class Annotated(Protocol):
    """Collects what is to be said of packets (:mod:`kdissect.cli.annotations`)."""

    def hear(self, events: Iterable[Sequence[Event]]) -> Iterator[Sequence[Event]]:
        """Take in events on their way."""

    def judge(self, thresholds: Mapping[str, Mapping[str, float]], ignored: Iterable[str]) -> None:
        """All is read that is: what the rules say of it."""

    def section_text(self) -> str | None:
        """What is said of the whole capture; None: nothing."""

    def commented(self, packets: Iterable[Packet], renumber: Renumber) -> Iterator[Packet]:
        """The packets, with what is said of them."""


def section_of(interfaces: Iterable[Interface], annotations: Annotated | None) -> list[Option]:
    """What a section tells of itself: what all sections of the input tell, their comments, and what is said
    now."""
    sections = list(dict.fromkeys(each.section for each in interfaces)) or [()]
    told = [each for each in sections[0] if all(each in other for other in sections)]
    told += dict.fromkeys(
        each for section in sections for each in section if each[0] == COMMENT and each not in told
    )
    text = None if annotations is None else annotations.section_text()
    if text is not None:
        from kdissect.present.comments import is_of_section

        told = [each for each in told if each[0] != COMMENT or not is_of_section(_text(each[1]))]
        data = text.encode()[:_LONGEST_SECTION]
        told.append((COMMENT, data.decode("utf-8", "ignore").encode()))
    return told


def _text(comment: bytes) -> str:
    return comment.decode("utf-8", "replace")
