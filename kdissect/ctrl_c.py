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
    if is_of_command(getattr(sys, "argv", [])):
        sys.excepthook = _print


def is_of_command(argv: list[str]) -> bool:
    """Whether a process with these arguments is ``kdissect`` or ``python -m kdissect``. Python sets ``-m``
    while it looks for the module to run."""
    name = argv[0].replace("\\", "/").rpartition("/")[2] if argv else ""
    return name in ("-m", "kdissect", "kdissect.exe")


def _print(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
