"""seccomp: a process gives up system calls, for good and in all its threads
(https://docs.kernel.org/userspace-api/seccomp_filter.html).

The list names the calls that are refused, with "Operation not permitted". A list of allowed calls would
depend on every library and its release. libseccomp has the numbers for other processors, but its Python
bindings have no releases any more. So this module has the kernel's numbers for two processors.
"""

from __future__ import annotations

import errno
import platform
import struct
import sys
from typing import TYPE_CHECKING, NamedTuple

from kdissect.lazy import Later

if TYPE_CHECKING:
    import ctypes
else:
    ctypes = Later("ctypes")

_SET_FILTER, _IS_THERE = 1, 2
_ALL_THREADS = 1
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _SECOND_ARGUMENT_AT = 0, 4, 24
_STEP = struct.Struct("HBBI")
"""An instruction: operation, jump if true, jump if false, and a value."""
_OTHER_NUMBERS = 0x40000000
"""The first number of the second set of calls on x86-64 (x32)."""
_PR_SET_NO_NEW_PRIVS = 38
_TYPING, _CONSOLE = 0x5412, 0x541C
"""TIOCSTI and TIOCLINUX: they put text into a terminal, and its shell would run it."""


class _Processor(NamedTuple):
    audit: int
    seccomp: int
    ioctl: int
    column: int
    """The column of its numbers in the table."""


_PROCESSORS = {
    "x86_64": _Processor(0xC000003E, 317, 16, 0),
    "aarch64": _Processor(0xC00000B7, 277, 29, 1),
}

REFUSED: dict[str, tuple[int | None, int | None]] = {
    # programs
    "execve": (59, 221),
    "execveat": (322, 281),
    # the network, and programs of this machine that listen
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    # the same by other calls
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "setns": (308, 268),
    "unshare": (272, 97),
    # not covered by Landlock: owners, permissions and times of files
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "truncate": (76, 45),
    "open_by_handle_at": (304, 265),
    # the system
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "iopl": (172, None),
    "ioperm": (173, None),
}
"""The numbers of each system call on x86-64 and aarch64; None if there is none."""


def is_offered() -> bool:
    """Whether the kernel offers it, on a processor with known numbers."""
    processor = _processor()
    if processor is None:
        return False
    action = ctypes.c_uint32(_REFUSE & 0xFFFF0000)
    done: int = _library().syscall(processor.seccomp, _IS_THERE, 0, ctypes.byref(action))
    return done == 0


def restrict() -> bool:
    """Give up the calls in the table; return whether that is in force."""
    processor = _processor()
    if processor is None:
        return False
    library = _library()
    library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    program = _program(processor)
    code = ctypes.create_string_buffer(program, len(program))
    asked = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    done: int = library.syscall(processor.seccomp, _SET_FILTER, _ALL_THREADS, asked)
    return done == 0


def _program(processor: _Processor) -> bytes:
    """The filter: instructions of eight bytes. Jumps count from the next instruction, and all lead to one of
    the last two."""
    refused = sorted(
        number for numbers in REFUSED.values() if (number := numbers[processor.column]) is not None
    )
    # The last instructions: 4 for ioctl, then the one that allows, and the one that refuses.
    left = len(refused) + 4
    code = [
        _step(_LOAD, _ARCHITECTURE_AT),
        _step(_EQUAL, processor.audit, otherwise=left + 3),
        _step(_LOAD, _NUMBER_AT),
        _step(_AT_LEAST, _OTHER_NUMBERS, then=left + 1),
    ]
    for number in refused:
        code.append(_step(_EQUAL, number, then=left))
        left -= 1
    code += [
        _step(_EQUAL, processor.ioctl, otherwise=3),
        _step(_LOAD, _SECOND_ARGUMENT_AT),
        _step(_EQUAL, _TYPING, then=2),
        _step(_EQUAL, _CONSOLE, then=1),
        _step(_RETURN, _ALLOW),
        _step(_RETURN, _REFUSE),
    ]
    return b"".join(code)


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return _STEP.pack(code, then, otherwise, value)


def _processor() -> _Processor | None:
    if sys.platform != "linux" or sys.maxsize < 1 << 32:
        return None
    return _PROCESSORS.get(platform.machine())


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
