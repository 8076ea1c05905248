"""Ctrl-C while a command is still being imported: it ends without a traceback.

``kdissect.cli`` handles Ctrl-C as soon as it is imported. No code can catch an earlier Ctrl-C, and Python
prints a traceback of an uncaught exception.
"""

from __future__ import annotations

import sys
from types import TracebackType


def expect() -> None:
    """Print no traceback for Ctrl-C from now on, if a command is being imported. A program that imports
    kdissect as a library decides this itself."""
    if is_of_command(getattr(sys, "argv", []), getattr(sys, "orig_argv", [])):
        sys.excepthook = _print


def is_of_command(argv: list[str], orig_argv: list[str]) -> bool:
    """Whether a process is ``kdissect`` or ``python -m kdissect``.

    :param argv: ``sys.argv``. Its first word is ``-m`` while Python looks for the module to run, whatever its
        name.
    :param orig_argv: ``sys.orig_argv``, which has the options of Python too.
    """
    name = argv[0].replace("\\", "/").rpartition("/")[2] if argv else ""
    return name in ("kdissect", "kdissect.exe") or (name == "-m" and _module(orig_argv) == "kdissect")


def _module(orig_argv: list[str]) -> str:
    """The word after ``-m`` among the options of Python. ``-m`` may be joined with other options
    (``-Im``)."""
    words = iter(orig_argv[1:])
    for word in words:
        if word == "--check-hash-based-pycs":
            next(words, "")
        if word.startswith("--"):
            continue
        at = min((word.find(option) for option in "mWX" if option in word), default=None)
        if at is None:
            continue
        value = word[at + 1 :] or next(words, "")
        if word[at] == "m":
            return value
    return ""


def _print(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
