"""Facts about a connection outside of its exchanges → lines for people: from proxies, and from TLS.

They are in the tree and on the screen of connections. The columns ``proxies`` and ``tls`` have the same as
JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kdissect.present.sanitise import sanitise
from kdissect.present.tls import LONGEST_LINE, TlsLine, tls_lines
from kdissect.session.conversation import Connection
from kdissect.session.proxies import SUCCEEDED
from kdissect.wording import plural

_SAID_BY = (("client", "for"), ("target", "to"), ("destination", "to"), ("authority", "under the name"))
_AND = (("vpc_endpoint", "through the VPC endpoint"), ("login", "login by"), ("command", "command"))


def connection_lines(connection: Connection) -> Iterator[TlsLine]:
    """The lines of a connection; none without facts from proxies or TLS."""
    for each in connection.proxies or ():
        yield _proxy_line(each)
    if connection.tls is not None:
        yield from tls_lines(connection.tls)


def connection_tree(connection: Connection) -> Iterator[str]:
    """The lines for the tree, for a connection that has ended, after a line for the connection itself."""
    lines = list(connection_lines(connection))
    if not lines:
        return
    parts = [f"{connection.client} → {connection.broker}"]
    if connection.tls is not None:
        state = "decrypted" if connection.tls["decrypted"] else "not decrypted"
        parts += [connection.tls["version"] or "TLS", state]
    yield f"Connection {connection.connection}: {', '.join(parts)}, {connection.end}"
    for line in lines:
        yield f"  {line.name}: {line.text}"


def _proxy_line(said: Mapping[str, Any]) -> TlsLine:
    parts = [f"{said['proxy']}"]
    parts += [f"{word} {said[name]}" for name, word in (*_SAID_BY, *_AND) if name in said]
    outcome = said.get("outcome", SUCCEEDED)
    if outcome != SUCCEEDED:
        parts.append(outcome)
    if "size" in said:
        parts.append(plural(said["size"], "byte"))
    return TlsLine(said["protocol"], sanitise(", ".join(parts), LONGEST_LINE), outcome != SUCCEEDED)
