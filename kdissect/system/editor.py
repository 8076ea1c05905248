"""Something to read → a temporary file → the user's editor. The file is the user's alone and removed then."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Mapping

from kdissect.system.terminal import run_in_terminal


class CannotEditError(Exception):
    """Why no editor was opened."""


def editor_of(environment: Mapping[str, str] = os.environ) -> list[str]:
    """The command in ``VISUAL`` or ``EDITOR``.

    :raises CannotEditError: neither is set, or one cannot be split into words.
    """
    for name in ("VISUAL", "EDITOR"):
        try:
            words = shlex.split(environment.get(name, ""))
        except ValueError as error:
            raise CannotEditError(f"{name}: {error}") from None
        if words:
            return words
    raise CannotEditError("neither VISUAL nor EDITOR says which editor to open")


def edit(command: list[str], data: bytes, suffix: str) -> None:
    """Open the editor on a copy of ``data`` and wait until it is closed. What was changed there is lost.

    :raises CannotEditError: it could not be opened, or failed.
    """
    descriptor, path = tempfile.mkstemp(prefix="kdissect-", suffix=suffix)  # mode 600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        code = run_in_terminal([*command, path])
        if code:
            raise CannotEditError(f"{command[0]} ended with {code}")
    except OSError as error:
        raise CannotEditError(f"{command[0]}: {error.strerror or error}") from None
    finally:
        os.unlink(path)
