"""``--comment``: comments on the packets that are written.

The class that collects them imports the rules of findings, so :mod:`kdissect.cli.annotations` is imported
only for this option.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from kdissect.capture.options import COMMENT, Option
from kdissect.capture.reader import Interface
from kdissect.dissect import Event
from kdissect.model import Packet

FINDINGS, EXCHANGES = KINDS = ("findings", "exchanges")
"""The kinds of comments."""

_LONGEST_SECTION = 60_000
"""The most bytes of the comment of a section: an option has 64 KiB."""

Renumber = Callable[[int], int | None]
"""Returns the number of a packet in the file that is written; None if it is not in the file."""


class Annotated(Protocol):
    """Collects comments on packets (:mod:`kdissect.cli.annotations`)."""

    def pass_through(self, events: Iterable[Sequence[Event]]) -> Iterator[Sequence[Event]]:
        """Pass events through, and collect what they show."""

    def judge(self, thresholds: Mapping[str, Mapping[str, float]], ignored: Iterable[str]) -> None:
        """Judge the capture by the rules, after all of it was read."""

    def section_text(self) -> str | None:
        """The comment on the whole capture, if it has one."""

    def commented(self, packets: Iterable[Packet], renumber: Renumber) -> Iterator[Packet]:
        """The packets, with their comments."""


def section_of(interfaces: Iterable[Interface], annotations: Annotated | None) -> list[Option]:
    """The options of a section: those that all sections of the input share, their comments, and the new
    comment."""
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
