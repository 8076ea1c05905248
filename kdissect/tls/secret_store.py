"""The known TLS secrets by name, in little memory: the key log of a big site has millions of lines.

All secrets of one name are one value, a row of label, length and secret. A dict of them would take twice as
much memory. The memory is bounded: if there are too many secrets, the oldest are forgotten. In a key log that
grows for weeks, the secrets of the newest connections are at the end.
"""

from __future__ import annotations

from itertools import islice

MASTER = "CLIENT_RANDOM"
PREMASTER = "PMS_CLIENT_RANDOM"

LABELS = (
    MASTER,
    PREMASTER,
    "CLIENT_EARLY_TRAFFIC_SECRET",
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    "CLIENT_TRAFFIC_SECRET_0",
    "SERVER_TRAFFIC_SECRET_0",
)
"""The labels that are used; secrets of exporters are not."""

NAME_COST = 180
"""The bytes that a name takes, with its entry, besides its secrets (CPython 3.11: 160 to 190)."""

RELIEF = 8
"""When the limit is reached, one name in this many is forgotten at once, because finding the oldest is
slow."""

_CODES = {label: bytes((code,)) for code, label in enumerate(LABELS)}


class RememberedSecrets:
    """Secrets by name and label. ``limit`` is the most bytes that all of them may take."""

    __slots__ = ("_bytes", "_limit", "_rows", "forgotten")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rows: dict[bytes, bytes] = {}
        self._bytes = 0
        self.forgotten = 0
        """The number of names that were forgotten, with their secrets."""

    def __len__(self) -> int:
        return len(self._rows)

    def of(self, name: bytes) -> dict[str, bytes]:
        """The secrets of a name, by label, in order of arrival."""
        row = self._rows.get(name, b"")
        found, at = {}, 0
        while at < len(row):
            end = at + 3 + int.from_bytes(row[at + 1 : at + 3], "big")
            found[LABELS[row[at]]] = row[at + 3 : end]
            at = end
        return found

    def find(self, name: bytes, label: str) -> bytes | None:
        """The secret of a name with this label; None if it is not known."""
        row = self._rows.get(name, b"")
        code, at = _CODES[label][0], 0
        while at < len(row):
            end = at + 3 + (row[at + 1] << 8 | row[at + 2])
            if row[at] == code:
                return row[at + 3 : end]
            at = end
        return None

    def add(self, name: bytes, label: str, secret: bytes) -> bool:
        """Add a secret of at most 64 KiB; return whether it is new. A later secret replaces an earlier
        one."""
        row = entry = _entry(label, secret)
        before = self._rows.get(name)
        if before is None:
            self._bytes += NAME_COST
        else:
            known = self.of(name)
            if known.get(label) == secret:
                return False
            self._bytes -= len(before)
            if label in known:
                known[label] = secret
                row = b"".join(_entry(*each) for each in known.items())
            else:
                row = before + entry
        self._rows[name] = row
        self._bytes += len(row)
        while self._bytes > self._limit:
            self._forget()
        return True

    def _forget(self) -> None:
        for name in list(islice(self._rows, max(1, len(self._rows) // RELIEF))):
            self._bytes -= NAME_COST + len(self._rows.pop(name))
            self.forgotten += 1


def _entry(label: str, secret: bytes) -> bytes:
    return _CODES[label] + len(secret).to_bytes(2, "big") + secret
