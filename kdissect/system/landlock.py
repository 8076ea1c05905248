"""Landlock: a thread, and everything that it starts afterwards, gives up writing outside of allowed places,
running programs, and TCP (https://docs.kernel.org/userspace-api/landlock.html).

Open files stay as they are. The Python library for Landlock has had development releases only, and three
system calls are all that is needed.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from kdissect.lazy import Later

if TYPE_CHECKING:
    import ctypes
else:
    ctypes = Later("ctypes")

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""System calls, with the same numbers on all processors."""
_TELL_VERSION = 1
_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE = 1 << 0, 1 << 1
_REMOVE_DIR, _REMOVE_FILE = 1 << 4, 1 << 5
_MAKE_CHAR, _MAKE_DIR, _MAKE_REG, _MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM = (
    1 << bit for bit in range(6, 13)
)
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_MAKE = _MAKE_CHAR | _MAKE_DIR | _MAKE_REG | _MAKE_SOCK | _MAKE_FIFO | _MAKE_BLOCK | _MAKE_SYM
_BIND, _CONNECT = 1 << 0, 1 << 1
_ABSTRACT_SOCKETS = 1 << 0
_NEW_IN = {_REFER: 2, _TRUNCATE: 3}
"""The version that introduced a right."""
_WITH_TCP, _WITH_SCOPES = 4, 6
_PR_SET_NO_NEW_PRIVS = 38
_O_PATH = 0o10000000


class Allowed(NamedTuple):
    """The rights that remain."""

    written: tuple[str, ...] = ()
    """Existing files that may be written, and folders whose existing files may be written."""
    filled: tuple[str, ...] = ()
    """Folders in which files may be created, written and removed."""
    emptied: tuple[str, ...] = ()
    """Folders from which empty folders may be removed."""


def version() -> int:
    """The version of Landlock that the kernel offers; 0 for none."""
    if sys.platform != "linux":
        return 0
    found: int = _library().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(_TELL_VERSION))
    return max(0, found)


def restrict(allowed: Allowed) -> int:
    """Give up all other rights that this kernel can refuse.

    :returns: the version that is in force; 0 for none.
    """
    offered = version()
    if not offered:
        return 0
    handled = _of(offered, _EXECUTE | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE | _REFER | _TRUNCATE)
    parts = [handled]
    if offered >= _WITH_TCP:
        parts.append(_BIND | _CONNECT)
    if offered >= _WITH_SCOPES:
        parts.append(_ABSTRACT_SOCKETS)
    asked = struct.pack(f"{len(parts)}Q", *parts)
    try:
        rules = _call(_CREATE_RULESET, asked, ctypes.c_size_t(len(asked)), ctypes.c_uint(0))
    except OSError:
        return 0
    try:
        writing = _of(offered, _WRITE_FILE | _TRUNCATE)
        _allow(rules, (os.devnull, *allowed.written), writing)
        _allow(rules, allowed.filled, writing | _REMOVE_DIR | _REMOVE_FILE | _MAKE_REG)
        _allow(rules, allowed.emptied, _REMOVE_DIR)
        _library().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        _call(_RESTRICT_SELF, rules, ctypes.c_uint(0))
    except OSError:
        return 0
    finally:
        os.close(rules)
    return offered


def _of(offered: int, rights: int) -> int:
    """The rights among these that a version has."""
    return rights & ~sum(right for right, since in _NEW_IN.items() if since > offered)


def _allow(rules: int, paths: Iterable[str], rights: int) -> None:
    for path in paths:
        with suppress(FileNotFoundError):  # a missing file cannot be written
            place = os.open(path, _O_PATH | os.O_CLOEXEC)
            try:
                _call(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", rights, place), ctypes.c_uint(0))
            finally:
                os.close(place)


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: object) -> int:
    """Make a system call.

    :raises OSError: the kernel refuses.
    """
    done: int = _library().syscall(number, *arguments)
    if done < 0:
        error = ctypes.get_errno() or errno.EINVAL
        raise OSError(error, os.strerror(error))
    return done
