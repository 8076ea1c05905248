"""A host's name and a port → a TCP connection: its addresses are tried in turn.

asyncio tries them too. But for a host with several (``localhost`` is ``::1`` and ``127.0.0.1``) it says only
in prose why all failed. Then a refused connection could not be told from an unreachable network.
"""

from __future__ import annotations

import asyncio
import os
import socket

_PORTS = range(1, 1 << 16)


async def connected(host: str, port: int) -> socket.socket:
    """A socket that is connected.

    :raises OSError: no address takes a connection; ConnectionRefusedError if all of them refuse it.
    :raises ValueError: no host can have this name, or there is no such port.
    """
    if port not in _PORTS or "\0" in host:  # the system would look up what stands before a NUL
        raise ValueError("there is no such address")
    loop = asyncio.get_running_loop()
    failures: dict[str, OSError] = {}
    for family, kind, protocol, _, target in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        try:
            return await _connected(socket.socket(family, kind, protocol), target)
        except OSError as error:
            failures[str(target[0])] = error
    raise _summed(failures)


async def _connected(sock: socket.socket, target: tuple[object, ...]) -> socket.socket:
    sock.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(sock, target)
    except BaseException:
        sock.close()
        raise
    return sock


def _summed(failures: dict[str, OSError]) -> OSError:
    """One error for those of all addresses, in the system's words. asyncio's words name only the place."""
    codes = {where: error.errno or 0 for where, error in failures.items()}
    if len(set(codes.values())) == 1:
        code = next(iter(codes.values()))
        return OSError(code, os.strerror(code))
    return OSError(", ".join(f"{where}: {os.strerror(code)}" for where, code in codes.items()))
