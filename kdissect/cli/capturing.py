"""The parts that ``live``, ``tui -i`` and ``doctor`` share: from options to a running capture.

Only the process that opens the sockets runs with a privilege. The code that decodes and draws never does,
unless the user asks for it.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import click

from kdissect.cli.errors import CaptureRefused, Unreadable, Wrong
from kdissect.filter.units import SIZES
from kdissect.live.bpf import DEFAULT_FILTER, SNAP_LENGTH
from kdissect.live.disk_limit import SpoolSize
from kdissect.live.errors import LiveError, NoCaptureError, NotPermittedError, NotPermittedThereError
from kdissect.live.opening import OpenedInterfaces, open_interfaces
from kdissect.live.rotation import Bounds, bounds_of
from kdissect.live.session import CaptureSession
from kdissect.live.silence import Silence
from kdissect.live.sources import Interfaces

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")
_UNITS = {unit.casefold(): size for unit, size in SIZES.items()}

_OPTIONS = (
    click.option(
        "-i",
        "interfaces",
        multiple=True,
        metavar="INTERFACE",
        help="eth0, lo, any …; ssh://host/eth0 (tcpdump there); tcpdump:eth0 or dumpcap:eth0 (on "
        "this machine); - for a capture on standard input. May be given often.",
    ),
    click.option(
        "-f",
        "capture_filter",
        metavar="BPF",
        default=DEFAULT_FILTER,
        show_default=True,
        help="Capture only what this system filter selects: tcp port 9092 …",
    ),
    click.option(
        "-s",
        "snap_length",
        type=click.IntRange(96, SNAP_LENGTH),
        default=SNAP_LENGTH,
        metavar="BYTES",
        help="Keep this many bytes of each packet. Messages that are cut decode only up to the cut.",
    ),
    click.option(
        "--spool-size",
        metavar="SIZE",
        help="Space for packets that wait to be decoded: 500MB, 2GiB … By default half of the "
        "free disk. When it is full, packets are lost, and their number is printed.",
    ),
    click.option(
        "-p", "not_promiscuous", is_flag=True, help="Capture only packets from and to this machine."
    ),
    click.option(
        "--allow-root",
        is_flag=True,
        help="Decode as root. Otherwise kdissect becomes the user behind sudo, or refuses.",
    ),
)


def capturing_options(function: click.decorators.FC) -> click.decorators.FC:
    """The options that :func:`opened` takes."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def opened(given: dict[str, Any]) -> OpenedInterfaces:
    """Open the interfaces that the options of a command name. Afterwards this process has no privilege.

    :raises Wrong: there is no such interface, the filter is wrong, or everything would run as root.
    :raises Refused: it is not permitted.
    """
    from kdissect.live import external, privileged

    user, group = privileged.invoking_user()
    # If libpcap opens the interface, the same process goes on to capture.
    can_become = user is not None and sys.platform == "linux"
    if sys.platform != "win32" and os.geteuid() == 0 and not can_become and not given["allow_root"]:
        raise Wrong(
            f"kdissect does not decode captured bytes as root: {_way_from_root()}, or give --allow-root"
        )
    if user is not None and group is not None and not given["allow_root"]:
        _check_user(user, group)
    if _is_only_read(given) and given["capture_filter"] != DEFAULT_FILTER:
        raise Wrong("-f works with interfaces only; with standard input use -Y")
    names = [name for name in given["interfaces"] if not external.is_external(name)]
    wanted = Interfaces(names, given["capture_filter"], given["snap_length"], not given["not_promiscuous"])
    try:
        found = open_interfaces(wanted) if names else OpenedInterfaces([], None)
        for name in given["interfaces"]:
            if external.is_external(name):
                found.openers.append(external.opener(name, wanted))
    except LiveError as error:
        raise _failure(error) from None
    if not given["allow_root"]:
        privileged.drop_privileges(user, group)
    return found


def _check_user(user: int, group: int) -> None:
    """Check that the user whom root becomes can read Python and kdissect. That user cannot if they are in
    root's home.

    :raises Wrong: they cannot be read.
    """
    if sys.platform == "win32":  # no process changes its user there
        return
    import pwd

    try:
        groups = os.getgrouplist(pwd.getpwuid(user).pw_name, group)
    except KeyError:
        groups = [group]
    command = [sys.executable, "-S", "-c", "import sys; open(sys.argv[1]).close()", os.path.abspath(__file__)]
    try:
        done = subprocess.run(
            command, user=user, group=group, extra_groups=groups, capture_output=True, check=False
        )
        can = done.returncode == 0
    except OSError:
        can = False
    if not can:
        raise Wrong(
            f"kdissect continues as the user behind sudo, who cannot read {sys.executable} or "
            f"{os.path.dirname(command[-1])}: install them where everybody can read them, or give "
            "--allow-root"
        )


def _is_only_read(given: dict[str, Any]) -> bool:
    """Whether all packets were captured elsewhere, with an unknown filter."""
    from kdissect.live import external

    return all(name == external.STDIN for name in given["interfaces"])


def silence_of(given: dict[str, Any], found: OpenedInterfaces) -> Silence:
    """The messages while no Kafka traffic comes."""
    return Silence(None if _is_only_read(given) else given["capture_filter"] or None, found.probe)


def live_in_own_home() -> None:
    """Use the configuration and definitions of the user behind sudo, who reads them later. sudo itself keeps
    root's home in the environment."""
    if sys.platform == "win32":
        return
    from kdissect.live import privileged

    user, _ = privileged.invoking_user()
    behind = os.environ.get("SUDO_UID")
    if user is None and behind is not None and behind == str(os.geteuid()):
        user = os.geteuid()
    if user is not None:
        import pwd

        with suppress(KeyError):
            os.environ["HOME"] = pwd.getpwuid(user).pw_dir


def started(found: OpenedInterfaces, start: Callable[[], CaptureSession]) -> CaptureSession:
    """Start a capture, which then owns what was opened for it.

    :raises Wrong: it cannot begin.
    :raises Unreadable: the external input is no capture.
    :raises Refused: it is not permitted.
    """
    try:
        return start()
    except LiveError as error:
        raise _failure(error) from None
    finally:
        found.hand_over()


def _failure(error: LiveError) -> click.ClickException:
    """The error of a command for a capture that fails, with the way out."""
    if isinstance(error, NoCaptureError):
        return Unreadable(str(error))
    if not isinstance(error, NotPermittedError):
        return Wrong(str(error))
    return CaptureRefused(
        str(error) if isinstance(error, NotPermittedThereError) else f"{error}: {way_out()}"
    )


def spool_size_of(text: str | None, kept: int = 0) -> SpoolSize:
    """``--spool-size``.

    :param kept: bytes that stay after they were decoded, as long as there is room.
    :raises Wrong: it is no size.
    """
    if text is None:
        return SpoolSize(None, kept)
    found = _SIZE.fullmatch(text.strip())
    unit = _UNITS.get(found[2].casefold()) if found else None
    size = round(float(found[1]) * unit) if found and unit else 0
    if not size:
        raise Wrong(f"--spool-size {text}: the form is 500MB, 2GB, 2GiB …")
    return SpoolSize(size, kept)


def rotation_of(rules: tuple[str, ...], kept: bool) -> Bounds:
    """``-b``: when the next file begins, and how many files are kept.

    :raises Wrong: a rule has another form, or there is nothing to rotate.
    """
    if not rules:
        return Bounds()
    if not kept:
        raise Wrong("-b rotates the files of -w: give -w FILE too")
    try:
        bounds = bounds_of(rules, ("duration", "interval", "filesize", "packets", "files"))
    except ValueError as error:
        raise Wrong(f"-b {error}") from None
    if not bounds.rotates:
        raise Wrong(
            "-b files:N says only how many files to keep; also give the size of a file, as in -b "
            "filesize:100000"
        )
    return bounds


def stop_of(rules: tuple[str, ...]) -> Bounds:
    """``-a``: when the capture ends.

    :raises Wrong: a rule has another form.
    """
    try:
        return bounds_of(rules, ("duration", "filesize", "packets", "files"))
    except ValueError as error:
        raise Wrong(f"-a {error}") from None


def _way_from_root() -> str:
    """The advice for root."""
    if sys.platform != "linux":
        return way_out()
    return f"start kdissect by sudo from an ordinary account, or by {line_without_root('USER')}"


def way_out() -> str:
    """The advice on how to get the permission."""
    if sys.platform == "win32":
        return (
            'start the terminal as an administrator, or install Npcap again without "Restrict Npcap '
            "driver's access to Administrators only\""
        )
    if sys.platform != "linux":
        return (
            "let your account read /dev/bpf*, as Wireshark's ChmodBPF does, or let tcpdump capture for you: "
            "sudo tcpdump -U -w - -i INTERFACE FILTER | kdissect live -i -"
        )
    return f"run {line_without_root()}, or the same with sudo only"


def line_without_root(user: str | None = None, arguments: Sequence[str] | None = None) -> str:
    """The running command, with the one capability that it needs, as an ordinary user."""
    program = [os.path.abspath(sys.argv[0])]
    if os.path.basename(sys.argv[0]) == "__main__.py":
        program = [sys.executable, "-m", "kdissect"]
    return with_capability([*program, *(sys.argv[1:] if arguments is None else arguments)], user)


def with_capability(words: Sequence[str], user: str | None = None) -> str:
    """The command that runs another one as an ordinary user, with the one capability that capturing needs.

    :param user: that user, if it is not the current one.
    """
    name = shlex.quote(user or _user_name())
    return (
        f"sudo setpriv --reuid={name} --regid=$(id -g {name}) --init-groups --inh-caps=+net_raw "
        f"--ambient-caps=+net_raw {shlex.join(words)}"
    )


def _user_name() -> str:
    if sys.platform == "win32":
        return os.getlogin()
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
