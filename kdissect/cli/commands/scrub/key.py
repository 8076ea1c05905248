"""``--key FILE``: the key that turns the same names into the same tokens in several captures.

kdissect scrub key 1
64 hexadecimal digits
"""

from __future__ import annotations

import os
import re
import secrets
import stat

from kdissect.cli.errors import Wrong
from kdissect.cli.output import shown
from kdissect.scrub.permutation import KEY_BYTES

_HEAD = b"kdissect scrub key 1\n"
_FORM = re.compile(_HEAD + rb"([0-9a-f]{%d})\n?" % (2 * KEY_BYTES))
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def new_key() -> bytes:
    """A random key."""
    return secrets.token_bytes(KEY_BYTES)


def key_of(path: str) -> bytes:
    """The key in a file. If there is no such file, it is made, readable by its owner only.

    :raises Wrong: it cannot be read or made, contains something else, or others may read it.
    """
    name = shown(path)
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(len(_HEAD) + 2 * KEY_BYTES + 2)
    except FileNotFoundError:
        return _made(path, name)
    except OSError as error:
        raise Wrong(f"--key {name}: cannot be read: {error.strerror}") from None
    found = _FORM.fullmatch(data)
    if found is None:
        raise Wrong(f"--key {name}: the file has no key of kdissect scrub; to make a key, name a new file")
    if os.name == "posix" and stat.S_ISREG(mode) and mode & _OTHERS:
        raise Wrong(f"--key {name}: other users can read the key and use it to guess names: chmod 600 {name}")
    return bytes.fromhex(found[1].decode())


def _made(path: str, name: str) -> bytes:
    key = new_key()
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(number, "wb") as file:
            file.write(_HEAD + key.hex().encode() + b"\n")
    except OSError as error:
        raise Wrong(f"--key {name}: cannot be made: {error.strerror}") from None
    return key
