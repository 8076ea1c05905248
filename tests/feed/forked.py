"""Processes beside the screens that are forked, for tests of what the screens show.

A process that is spawned loads its code anew, which takes most of its time. These are forked from one that
has it loaded, and has nothing of the screens either. They get the same. ``test_side_process.py``,
``test_decoder.py`` and the tests in a terminal spawn processes, as users do.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from multiprocessing.context import BaseContext
from multiprocessing.forkserver import ensure_running
from unittest import mock

_LOADED = ["kdissect.feed.counting", "kdissect.feed.matching", "kdissect.feed.records"]


@contextmanager
def forked_processes() -> Iterator[None]:
    """Fork processes beside the screens."""
    with mock.patch("kdissect.feed.side_process.get_context", _context):
        yield


def _context(_: str) -> BaseContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_LOADED)
    with redirect_stderr(sys.__stderr__):  # Textual's has no descriptor to inherit
        ensure_running()  # before signals are held: it needs them
    return context
