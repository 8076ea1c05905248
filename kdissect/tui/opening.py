"""What opens captures for the screens: whoever starts them decides how that is done."""

from __future__ import annotations

from typing import Protocol

from kdissect.tui.feed.batches import Feed

CAPTURE = "-i"
"""What is typed instead of a path begins so: ``-i eth0``, ``-i eth0 -f 'tcp port 9092'``."""


def is_of_interfaces(typed: str) -> bool:
    """Whether what was typed means interfaces and no path."""
    return typed.split(maxsplit=1)[:1] == [CAPTURE]


class Opener(Protocol):
    """Begins to decode what was chosen on the screen."""

    def file(self, path: str) -> Feed:
        """A capture in a file.

        :raises CaptureError: it cannot be read.
        """

    def interfaces(self, words: str) -> Feed:
        """What interfaces give from now on.

        :param words: options as the command line has them, ``-i`` first.
        :raises CaptureError: it cannot be captured there; the text has one line.
        """
