"""``--state FILE``: the counts of captures in a file, so that several days are judged together.

    kdissect findings 2\\n  SHA-256 of the rest  |  what it was made by  |  a Judge, pickled

A pickle can name anything that Python can import. The reader here allows only classes and functions of
kdissect's own facts, and a few plain containers. So a forged file can do nothing.
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
from kdissect.insight.report_data import form

_KIND = b"kdissect findings "
_MAGIC = _KIND + b"2\n"
_DIGEST = hashlib.sha256().digest_size
_OWN = (
    *("kdissect.analysis.", "kdissect.insight.", "kdissect.limits.", "kdissect.model.", "kdissect.names."),
    *("kdissect.record.", "kdissect.session.conversation."),
)
"""Modules that only compute. A state may contain their objects."""
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
    """The contents of a file; None if there is no such file.

    :raises Unreadable: it is no state, is damaged, or another version made it. The file is not changed.
    :raises Wrong: its folder does not exist, so nothing could be saved after a long read.
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
    except Exception:  # any error that a forged pickle can raise
        found = None
    if not isinstance(found, Judge):
        raise Unreadable(f"--state {path}: the file is not a state of kdissect explain and was not changed")
    return found


def save(path: str, judge: Judge) -> None:
    """Save the counts, readable by the owner only. The file is complete at any time.

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
    """The version, the form of its facts, and whether its modules are compiled. A state with another maker
    cannot be extended."""
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
