"""Makes every process of Python that has this folder in PYTHONPATH look like Windows to kdissect.

What Windows lacks is gone, and what only it has is there, done by what Linux has: locks of a range of bytes
(``msvcrt``), Ctrl-Break (SIGUSR1), adapters with a name of Windows and one of Npcap; files that are open
somewhere can be neither removed nor replaced. It comes with the first
import of kdissect; what the standard library and others need of Linux they have imported by then.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

ADAPTER = "Local Area Connection* 2"
"""What Windows calls ``lo``."""
_POSIX = ("fcntl", "grp", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty")
_BEFORE = (
    "asyncio",
    "click._termui_impl",
    "click.shell_completion",
    "click.testing",
    "concurrent.futures",
    "ctypes.util",
    "importlib.metadata",
    "logging.handlers",
    "mmap",
    "multiprocessing.connection",
    "multiprocessing.popen_spawn_posix",
    "multiprocessing.queues",
    "multiprocessing.reduction",
    "multiprocessing.resource_sharer",
    "multiprocessing.spawn",
    "numpy",
    "platform",
    "scapy.libs.winpcapy",
    "selectors",
    "shutil",
    "socket",
    "ssl",
    "subprocess",
    "tempfile",
    "uuid",
    "zipfile",
)
"""Modules that look at the system when they are imported, those of them that are there."""
_BEFORE_SCREENS = ("textual.app", "textual.drivers.linux_driver", "textual.widgets")
"""More of them, which take as long as all others and which only screens need."""
SCREENS = "AS_WINDOWS_WITH_SCREENS"
"""The variable of processes that draw screens."""
_GONE = {
    "os": """
        O_CLOEXEC O_DIRECTORY O_NOCTTY O_NOFOLLOW O_NONBLOCK chown confstr ctermid eventfd fchmod fchown fork
        forkpty fstatvfs getegid geteuid getgid getgrouplist getgroups getloadavg getpgid getpgrp getpriority
        getresgid getresuid getsid getuid initgroups killpg lchown memfd_create mkfifo mknod nice openpty
        pidfd_open pipe2 posix_fadvise posix_spawn posix_spawnp pread preadv pwrite pwritev register_at_fork
        sched_getaffinity sched_setaffinity sendfile set_blocking setgid setgroups setpriority setregid
        setresgid setresuid setreuid setsid setuid statvfs sync sysconf ttyname uname wait wait3 wait4
    """,
    "select": "epoll poll",
    "signal": "SIGHUP SIGPIPE SIGQUIT SIGUSR1 SIGUSR2 pthread_kill pthread_sigmask",
    "socket": "AF_PACKET SO_ATTACH_FILTER recv_fds send_fds",
    "mmap": "MAP_ANONYMOUS MAP_PRIVATE MAP_SHARED PROT_READ PROT_WRITE",
}
_SET_LOCK, _SET_LOCK_WAITING = 37, 38
"""Linux' F_OFD_SETLK and F_OFD_SETLKW: locks of who has opened a file, not of a process, as Windows' are."""


def _is_open(path: str | Path, folder: int | None = None) -> bool:
    """Whether any process has a file open."""
    name = os.fspath(path)
    if folder is not None:
        name = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), name)
    name = os.path.realpath(name)
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(link) == name:
                return True
        except OSError:  # it was shut just now
            continue
    return False


def _refuse_what_is_open() -> None:
    """Have ``os`` say what Windows says (there is no sharing for deletion where Python opens files)."""
    unlink, replace = os.unlink, os.replace

    def refusing_unlink(path: str | Path, *, dir_fd: int | None = None) -> None:
        if _is_open(path, dir_fd):
            raise PermissionError(13, "It is being used by another process", os.fspath(path))
        unlink(path, dir_fd=dir_fd)

    def refusing_replace(source: str | Path, target: str | Path) -> None:
        if _is_open(source) or _is_open(target):
            raise PermissionError(13, "It is being used by another process", os.fspath(target))
        replace(source, target)

    vars(os).update(
        unlink=refusing_unlink, remove=refusing_unlink, replace=refusing_replace, rename=refusing_replace
    )


class _Door(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "kdissect":
            sys.meta_path.remove(self)
            _become_windows()
        return None


def _become_windows() -> None:
    import fcntl
    import signal
    import struct

    for name in (*_BEFORE, *(_BEFORE_SCREENS if SCREENS in os.environ else ())):
        try:
            importlib.import_module(name)
        except ImportError:
            assert name.partition(".")[0] in ("click", "numpy", "scapy", "textual"), name
    import shutil
    from multiprocessing import resource_tracker

    free = shutil.disk_usage(".")  # Windows has no statvfs to ask
    vars(shutil).update(disk_usage=lambda _: free)
    resource_tracker._HAVE_SIGMASK = False  # type: ignore[attr-defined]
    ctrl_break, no_inherit = signal.SIGUSR1, os.O_CLOEXEC
    for module, names in _GONE.items():
        for name in names.split():
            if hasattr(sys.modules[module], name):
                delattr(sys.modules[module], name)
    for name in _POSIX:
        sys.modules[name] = None  # type: ignore[assignment]

    def locking(descriptor: int, mode: int, count: int) -> None:
        """As Windows has it: from the position on, behind the end too; whoever reads may lock."""
        is_read_only = not fcntl.fcntl(descriptor, fcntl.F_GETFL) & (os.O_WRONLY | os.O_RDWR)
        kind = fcntl.F_UNLCK if mode == 0 else fcntl.F_RDLCK if is_read_only else fcntl.F_WRLCK
        asked = struct.pack("hhqqi4x", kind, os.SEEK_SET, os.lseek(descriptor, 0, os.SEEK_CUR), count, 0)
        fcntl.fcntl(descriptor, _SET_LOCK_WAITING if mode == 1 else _SET_LOCK, asked)

    msvcrt, windows = ModuleType("msvcrt"), ModuleType("scapy.arch.windows")
    vars(msvcrt).update(LK_UNLCK=0, LK_LOCK=1, LK_NBLCK=2, locking=locking)
    lo = {"name": ADAPTER, "guid": "LO", "ips": ["::1", "127.0.0.1"]}
    vars(windows).update(get_windows_if_list=lambda: [lo])
    sys.modules.update({"msvcrt": msvcrt, "scapy.arch.windows": windows})
    vars(os).update(O_BINARY=0, O_NOINHERIT=no_inherit)
    vars(signal).update(SIGBREAK=ctrl_break)
    _refuse_what_is_open()
    sys.platform = "win32"


if __name__ == "sitecustomize":  # and not looked into by a test
    sys.meta_path.insert(0, _Door())
