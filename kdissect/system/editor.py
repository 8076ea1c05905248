"""Data → a temporary file → the user's editor. Only the user can read the file, and it is removed
afterwards."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Mapping

from kdissect.system.terminal import run_in_terminal


class CannotEditError(Exception):
    """The reason for opening no editor."""


def editor_of(environment: Mapping[str, str] = os.environ) -> list[str]:
    """The command in ``VISUAL`` or ``EDITOR``.

    :raises CannotEditError: neither is set, or the command cannot be split into words.
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
    """Open the editor on a copy of ``data`` and wait until it is closed. Changes are lost.

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
