"""``--state FILE``: what was counted of captures, kept in a file, so that days are judged together.

    kdissect findings 1\\n  SHA-256 of the rest  |  what it was made by  |  a Judge, pickled

A pickle can name anything that Python can import. Reading one here finds only classes and functions of
kdissect's own facts, and a few plain containers. So a forged file does nothing.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from kdissect import __version__, dissect
from kdissect.cli.errors import Unreadable, Wrong
from kdissect.insight.judge import Judge
from kdissect.insight.whole import form

_KIND = b"kdissect findings "
_MAGIC = _KIND + b"1\n"
_DIGEST = hashlib.sha256().digest_size
_OWN = (
    *("kdissect.analysis.", "kdissect.insight.", "kdissect.limits.", "kdissect.model.", "kdissect.names."),
    *("kdissect.record.", "kdissect.session.conversation."),
)
"""Modules that do nothing but compute; what stands in them may stand in a state."""
_OTHERS = frozenset(
    {
        ("array", "_array_reconstructor"),
        ("array", "array"),
        ("collections", "Counter"),
        ("collections", "OrderedDict"),
        ("collections", "defaultdict"),
        ("collections", "deque"),
        ("functools", "partial"),
        ("builtins", "bytearray"),
        ("builtins", "dict"),
        ("builtins", "frozenset"),
        ("builtins", "int"),
        ("builtins", "list"),
        ("builtins", "set"),
        ("builtins", "tuple"),
    }
)


def is_state(start: bytes) -> bool:
    """Whether a file is a state, by its first bytes."""
    return start.startswith(_MAGIC)


def load(path: str) -> Judge | None:
    """What a file holds; None where there is no such file.

    :raises Unreadable: it holds something else, is damaged, or another version made it. It stays as it is.
    :raises Wrong: its folder is not there, so nothing could be kept after a long read.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError as error:
        if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
            raise Wrong(f"--state {path}: cannot be written: {error.strerror}") from None
        return None
    except OSError as error:
        raise Unreadable(f"--state {path}: cannot be read: {error.strerror}") from None
    if data.startswith(_KIND) and not data.startswith(_MAGIC):
        raise Unreadable(_of_others(path))
    if not data.startswith(_MAGIC):
        raise Unreadable(f"--state {path}: the file is not a state of kdissect explain and was not changed")
    digest, rest = data[len(_MAGIC) :][:_DIGEST], data[len(_MAGIC) + _DIGEST :]
    if hashlib.sha256(rest).digest() != digest:
        raise Unreadable(
            f"--state {path}: the file is damaged and was not changed; remove it to start with a new one"
        )
    made_by, _, pickled = rest.partition(b"\n")
    if made_by.decode("ascii", "replace") != _maker():
        raise Unreadable(_of_others(path))
    try:
        found = _Unpickler(io.BytesIO(pickled)).load()
    except Exception:  # whatever a pickle that somebody made up does
        found = None
    if not isinstance(found, Judge):
        raise Unreadable(f"--state {path}: the file is not a state of kdissect explain and was not changed")
    return found


def save(path: str, judge: Judge) -> None:
    """Keep what was counted, for its owner only. The file is whole at any time.

    :raises Wrong: it cannot be written.
    """
    rest = _maker().encode("ascii") + b"\n" + pickle.dumps(judge, protocol=5)
    folder = os.path.dirname(os.path.abspath(path))
    name = None
    try:
        number, name = tempfile.mkstemp(dir=folder, prefix=".kdissect-")  # 0600
        with os.fdopen(number, "wb") as file:
            file.write(_MAGIC + hashlib.sha256(rest).digest() + rest)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except OSError as error:
        if name is not None:
            with suppress(OSError):
                os.unlink(name)
        raise Wrong(f"--state {path}: cannot be written: {error.strerror}") from None


def _of_others(path: str) -> str:
    return (
        f"--state {path}: another version or build of kdissect made the file, and this one cannot "
        "add to it. The file was not changed; give another file"
    )


def _maker() -> str:
    """The version, what its facts are, and whether its modules are compiled. A state of others cannot be
    added to."""
    return f"{__version__} {form()} {Path(dissect.__file__).suffix}"


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        is_own = f"{module}.".startswith(_OWN) and "." not in name
        if not is_own and (module, name) not in _OTHERS:
            raise pickle.UnpicklingError(f"{module}.{name} does not belong here")
        found = super().find_class(module, name)
        if is_own and getattr(found, "__module__", None) != module:
            raise pickle.UnpicklingError(f"{module}.{name} does not belong there")
        return found
