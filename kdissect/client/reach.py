"""A host's name and a port → a TCP connection. The addresses of the host are tried in turn.

asyncio tries them too. But if a host has several (``localhost`` is ``::1`` and ``127.0.0.1``), its error is
only prose. Then a refused connection could not be told from an unreachable network.
"""

from __future__ import annotations

import asyncio
import os
import socket

_PORTS = range(1, 1 << 16)


async def connected(host: str, port: int) -> socket.socket:
    """A connected socket.

    :raises OSError: no address accepts a connection; ConnectionRefusedError if all refuse it.
    :raises ValueError: no host can have this name, or there is no such port.
    """
    if port not in _PORTS or "\0" in host:  # the system would look up only the part before a NUL
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
    """One error for the errors of all addresses, in the system's words. asyncio's words name only the
    address."""
    codes = {where: error.errno or 0 for where, error in failures.items()}
    if len(set(codes.values())) == 1:
        code = next(iter(codes.values()))
        return OSError(code, os.strerror(code))
    return OSError(", ".join(f"{where}: {os.strerror(code)}" for where, code in codes.items()))
