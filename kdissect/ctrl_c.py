"""Ctrl-C while a command is still being imported: it ends without a traceback.

``kdissect.cli`` takes care of Ctrl-C as soon as it is there. Nobody can catch what comes before, and Python
prints a traceback of what nobody caught.
"""

from __future__ import annotations

import sys
from types import TracebackType


def expect() -> None:
    """Print no traceback for Ctrl-C from now on, if a command is being imported. What imports kdissect as a
    library decides itself."""
    if is_of_command(getattr(sys, "argv", []), getattr(sys, "orig_argv", [])):
        sys.excepthook = _print


def is_of_command(argv: list[str], orig_argv: list[str]) -> bool:
    """Whether a process is ``kdissect`` or ``python -m kdissect``.

    :param argv: ``sys.argv``. Python sets ``-m`` while it looks for the module to run, whichever that is.
    :param orig_argv: ``sys.orig_argv``, which has the options of Python too.
    """
    name = argv[0].replace("\\", "/").rpartition("/")[2] if argv else ""
    return name in ("kdissect", "kdissect.exe") or (name == "-m" and _module(orig_argv) == "kdissect")


def _module(orig_argv: list[str]) -> str:
    """What follows ``-m`` among the options of Python; it may be in one word with others (``-Im``)."""
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
