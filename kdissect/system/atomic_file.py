"""A file that is written completely or not at all: first under a temporary name, then under its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, cast


def write_whole(path: str, write: Callable[[BinaryIO], str]) -> str:
    """Let ``write`` fill a file that replaces ``path``. Return the words of ``write``, with the path. A new
    file is readable by its owner only; a replaced file keeps its mode.

    :raises OSError: the file cannot be written. Errors of ``write`` are raised too.
    """
    is_new = not os.path.lexists(path)
    if is_new:
        # This reserves the name for this process. No other user may read the file, because captures contain
        # passwords.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        mode = os.stat(path).st_mode
        with tempfile.NamedTemporaryFile(dir=os.path.dirname(path) or ".", delete=False) as file:
            try:
                said = write(cast(BinaryIO, file))
                file.close()  # on Windows an open file cannot be replaced
                os.chmod(file.name, mode)
                os.replace(file.name, path)
            except BaseException:
                file.close()
                os.unlink(file.name)
                raise
    except BaseException:  # after any error, nothing incomplete stays
        if is_new:
            with suppress(OSError):
                os.unlink(path)
        raise
    return f"{said} written to {path}"
