"""A file that is written whole or not at all: under another name first, and only then under its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, cast


def write_whole(path: str, write: Callable[[BinaryIO], str]) -> str:
    """Have ``write`` fill a file, which replaces what has that name; gives what it says of that, and where.
    A new file is for its owner only; one that is replaced keeps its mode.

    :raises OSError: the file cannot be written. What ``write`` raises is raised too.
    """
    is_new = not os.path.lexists(path)
    if is_new:
        # The name is ours now, and what comes under it nobody else's: captures hold passwords.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        mode = os.stat(path).st_mode
        with tempfile.NamedTemporaryFile(dir=os.path.dirname(path) or ".", delete=False) as file:
            try:
                said = write(cast(BinaryIO, file))
                file.close()  # on Windows what is open has to stay
                os.chmod(file.name, mode)
                os.replace(file.name, path)
            except BaseException:
                file.close()
                os.unlink(file.name)
                raise
    except BaseException:  # whatever it was, nothing half written stays
        if is_new:
            with suppress(OSError):
                os.unlink(path)
        raise
    return f"{said} written to {path}"
