"""Opens packet sockets, gives up every privilege, passes the sockets on, ends.

It is run as a separate program, by its path, with only the standard library. So only these lines run with the
privilege. It reads no packets and does not understand filters. A socket that it passes on is bound to its
interface, and its filter can no longer be changed.

    argument 1       the descriptor of the socket to answer on
    argument 2       JSON: [{"interface", "cooked", "program" (hex), "promiscuous"}, …]
    answer           a message each, in order: JSON, {} with the descriptor, or {"errno"}

This module also has the function that starts it, and the function by which any process gives up its
privileges.
"""

from __future__ import annotations

import array
import ctypes
import errno
import json
import os
import socket
import struct
import subprocess
import sys
from contextlib import suppress
from typing import Any, NamedTuple

_SO_ATTACH_FILTER, _SO_LOCK_FILTER = 26, 44
_SOL_PACKET, _ADD_MEMBERSHIP = 263, 1
_PROMISCUOUS = 1
_ETH_P_ALL = 3
_PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _CLEAR_ALL = 38, 47, 4
_CAPABILITY_VERSION = 0x20080522
"""Linux's numbers of constants that Python's modules do not have."""
_MOST_ANSWER = 4096


class SocketRequest(NamedTuple):
    """A socket to open."""

    interface: str
    """``""`` means all interfaces."""
    program: bytes
    """The filter: instructions of eight bytes."""
    is_cooked: bool = False
    """Whether packets come without their link header."""
    is_promiscuous: bool = False


def open_sockets(wanted: list[SocketRequest]) -> list[socket.socket]:
    """Have sockets opened by a separate process.

    :raises OSError: one of them cannot be opened; ``filename`` is its interface.
    """
    asked = [
        {
            "interface": each.interface,
            "cooked": each.is_cooked,
            "program": each.program.hex(),
            "promiscuous": each.is_promiscuous,
        }
        for each in wanted
    ]
    from kdissect.system import signals_held  # run as a program, this module must not import kdissect

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        command = [sys.executable, "-I", "-S", os.path.abspath(__file__)]
        try:
            with signals_held():  # the process ends soon, by itself
                process = subprocess.Popen(
                    [*command, str(theirs.fileno()), json.dumps(asked)], pass_fds=[theirs.fileno()]
                )
        except OSError as error:  # Python could not be started: not a missing privilege
            raise OSError(errno.ENOEXEC, f"cannot be run: {error.strerror}", sys.executable) from None
        theirs.close()
        sockets: list[socket.socket] = []
        try:
            for each in wanted:
                sockets.append(_receive(ours, each.interface))
        except OSError:
            for opened in sockets:
                opened.close()
            raise
        finally:
            ours.close()
            process.wait()
        return sockets


def _receive(ours: socket.socket, interface: str) -> socket.socket:
    answer, descriptors, _, _ = socket.recv_fds(ours, _MOST_ANSWER, 1)
    if not answer:
        raise OSError(0, "the process that opens sockets has failed", interface)
    said: dict[str, int] = json.loads(answer)
    if not descriptors:
        raise OSError(said["errno"], os.strerror(said["errno"]), interface)
    opened = socket.socket(fileno=descriptors[0])
    opened.set_inheritable(False)  # ssh, tcpdump and other programs that we start must not have it
    return opened


def drop_privileges(user: int | None = None, group: int | None = None) -> None:
    """Become an ordinary user, without any capability, for good. On systems other than Linux nothing is given
    up: the process that opens an interface also reads it.

    :param user: the user to become; None to stay the same user.
    :raises OSError: the privileges cannot be given up.
    """
    if sys.platform != "linux":
        return
    if user is not None and group is not None:
        import pwd

        try:
            os.initgroups(pwd.getpwuid(user).pw_name, group)
        except KeyError:  # a user without a name gets no other groups, and never root's
            os.setgroups([group])
        os.setresgid(group, group, group)
        os.setresuid(user, user, user)
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    library.prctl(_PR_CAP_AMBIENT, _CLEAR_ALL, 0, 0, 0)
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    if library.capset(header, bytes(24)) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def invoking_user() -> tuple[int | None, int | None]:
    """The user and group behind ``sudo`` or ``pkexec``; None if neither was used."""
    if sys.platform == "win32" or os.geteuid() != 0:
        return None, None
    name = "SUDO_UID" if "SUDO_UID" in os.environ else "PKEXEC_UID"
    user = os.environ.get(name, "")
    if not user.isdecimal() or user == "0":
        return None, None
    import pwd

    group = os.environ.get("SUDO_GID", "")
    return int(user), int(group) if group.isdecimal() else pwd.getpwuid(int(user)).pw_gid


def _opened(asked: dict[str, Any]) -> socket.socket:
    # Protocol 0: no packet arrives before the filter is set.
    kind = socket.SOCK_DGRAM if asked["cooked"] else socket.SOCK_RAW
    opened = socket.socket(socket.AF_PACKET, kind, 0)
    program = array.array("B", bytes.fromhex(asked["program"]))
    address, _ = program.buffer_info()
    opened.setsockopt(
        socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HxxxxxxP", len(program) // 8, address)
    )
    opened.setsockopt(socket.SOL_SOCKET, _SO_LOCK_FILTER, 1)
    if asked["promiscuous"] and asked["interface"]:
        index = socket.if_nametoindex(asked["interface"])
        opened.setsockopt(_SOL_PACKET, _ADD_MEMBERSHIP, struct.pack("IHH8x", index, _PROMISCUOUS, 0))
    if asked["interface"]:
        opened.bind((asked["interface"], _ETH_P_ALL))
    else:
        _bind_to_all(opened)
    return opened


def _bind_to_all(opened: socket.socket) -> None:
    """Bind to all interfaces. Python's own ``bind`` cannot: it looks up the name of an interface."""
    library = ctypes.CDLL(None, use_errno=True)
    address = struct.pack("HHiHBB8x", socket.AF_PACKET, socket.htons(_ETH_P_ALL), 0, 0, 0, 0)
    if library.bind(opened.fileno(), address, len(address)) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def _main() -> None:
    answers: list[tuple[dict[str, int], list[int]]] = []
    kept: list[socket.socket] = []
    with socket.socket(fileno=int(sys.argv[1])) as theirs:
        for asked in json.loads(sys.argv[2]):
            try:
                kept.append(_opened(asked))
                answers.append(({}, [kept[-1].fileno()]))
            except OSError as error:
                answers.append(({"errno": error.errno or 0}, []))
                break
        drop_privileges(*invoking_user())
        with suppress(ConnectionError):  # the process that asked was killed
            for answer, descriptors in answers:
                socket.send_fds(theirs, [json.dumps(answer).encode()], descriptors)


if __name__ == "__main__":
    _main()
