"""What is left of privileges, and who has the sockets, once they are given up."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import pytest

from kdissect.live import privileged
from kdissect.live.bpf import ETHERNET, program_of
from tests.cli.run import ROOT
from tests.live.requires import requires_raw_sockets

pytest.importorskip("scapy")

_DROP = """
import os
from kdissect.live import privileged
os.setgroups([0, 4, 27])
privileged.drop_privileges(*privileged.invoking_user())
print(open("/proc/self/status").read())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="this is about root")
@pytest.mark.parametrize("user", [65_534, 54_321], ids=["a user with a name", "a user without one"])
def test_nothing_of_root_is_left(user: int) -> None:
    """Of a user without a name it is not known to which groups it belongs: not to root's, at any rate."""
    environment = {**os.environ, "SUDO_UID": str(user), "SUDO_GID": str(user), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", _DROP], env=environment, capture_output=True, check=True)
    status = dict(line.split(":", 1) for line in done.stdout.decode().splitlines() if ":" in line)
    assert status["Uid"].split() == status["Gid"].split() == [str(user)] * 4
    assert status["Groups"].split() == [str(user)]
    assert status["NoNewPrivs"].strip() == "1"
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(status[name], 16) == 0, name


@requires_raw_sockets
def test_programs_that_are_started_do_not_get_the_sockets() -> None:
    (opened,) = privileged.open_sockets(
        [privileged.SocketRequest("lo", program_of("tcp", ETHERNET, 96, None))]
    )
    with opened:
        assert not opened.get_inheritable()


def test_who_opens_sockets_for_somebody_who_was_killed_says_nothing() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    asked = {"interface": "lo", "cooked": False, "program": program_of("tcp", ETHERNET, 96, None).hex()}
    asked["promiscuous"] = False
    ours.close()
    with theirs:
        done = subprocess.run(
            [sys.executable, "-I", "-S", privileged.__file__, str(theirs.fileno()), json.dumps([asked])],
            pass_fds=[theirs.fileno()],
            capture_output=True,
            check=False,
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
