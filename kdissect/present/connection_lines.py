"""What is known of a connection beside its exchanges → lines for people: what proxies said, what TLS showed.

In the tree, and on the screen of connections; the columns ``proxies`` and ``tls`` have the same as JSON.
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
    """The lines of a connection; none where no proxy said anything and TLS is not spoken."""
    for each in connection.proxies or ():
        yield _proxy_line(each)
    if connection.tls is not None:
        yield from tls_lines(connection.tls)


def connection_tree(connection: Connection) -> Iterator[str]:
    """The same for the tree, of a connection that is over, with a line for the connection before."""
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
