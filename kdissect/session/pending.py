"""The requests and SASL tokens that wait for an answer on one connection, oldest first."""

from __future__ import annotations

from kdissect.exchange import Exchange
from kdissect.message import Request

Serial = int
"""A running number that identifies a request or token; older ones have smaller numbers."""


REQUEST_BYTES = 2_048
"""The cost of a waiting entry beside its bytes: about the memory that its objects take."""


class Waiting:
    """A waiting request or token."""

    __slots__ = ("exchange", "losses")

    def __init__(self, exchange: Exchange, losses: int) -> None:
        self.exchange = exchange
        self.losses = losses
        """How often bytes of the responses had been lost when it was sent."""


class Pending:
    """All waiting requests and tokens. Several requests may have the same correlation id."""

    __slots__ = ("_by_correlation", "_oldest", "_serial", "_tokens", "_waiting", "held_bytes")

    def __init__(self) -> None:
        self._waiting: dict[Serial, Waiting] = {}
        self._by_correlation: dict[int, Serial | list[Serial]] = {}
        """One serial, nearly always; otherwise all of them in order."""
        self._tokens: dict[Serial, None] = {}
        self._serial = 0
        self._oldest = 1
        """No serial before this one waits."""
        self.held_bytes = 0
        """The cost of all of them."""

    @property
    def latest(self) -> Serial:
        """The latest serial, waiting or not; 0 before the first."""
        return self._serial

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, exchange: Exchange, losses: int) -> None:
        """Add a request or a token that waits."""
        serial = self._serial = self._serial + 1
        self._waiting[serial] = Waiting(exchange, losses)
        self.held_bytes += _cost(exchange)
        request = exchange.request
        if not isinstance(request, Request):
            self._tokens[self._serial] = None
            return
        same = self._by_correlation.setdefault(request.correlation_id, self._serial)
        if isinstance(same, list):
            same.append(self._serial)
        elif same != self._serial:
            self._by_correlation[request.correlation_id] = [same, self._serial]

    def begin_at(self, said: Serial) -> None:
        """Set the number of earlier requests and tokens, which wait no longer. It must come before the first
        :meth:`add`."""
        self._serial = said
        self._oldest = said + 1

    def find(self, correlation_id: int) -> Serial | None:
        """The oldest request with this correlation id."""
        same = self._by_correlation.get(correlation_id)
        return same[0] if isinstance(same, list) else same

    def token(self) -> Serial | None:
        """The oldest token."""
        return next(iter(self._tokens)) if self._tokens else None

    def oldest(self) -> Serial:
        """The oldest of all; at least one must wait."""
        # To find its first entry, a dict passes over all entries that were removed from its beginning.
        while self._oldest not in self._waiting:
            self._oldest += 1
        return self._oldest

    def older_than(self, serial: Serial) -> list[Serial]:
        """The waiting serials before this one."""
        out: list[Serial] = []
        for each in self._waiting:
            if each >= serial:
                break
            out.append(each)
        return out

    def __getitem__(self, serial: Serial) -> Waiting:
        return self._waiting[serial]

    def request(self, serial: Serial) -> Request:
        """The request of a serial; it must not be a token."""
        request = self._waiting[serial].exchange.request
        assert isinstance(request, Request)
        return request

    def remove(self, serial: Serial) -> Exchange:
        """Remove an entry that waits no longer, and return its exchange."""
        return self.take(serial).exchange

    def take(self, serial: Serial) -> Waiting:
        """Remove an entry that waits no longer, and return it."""
        waiting = self._waiting.pop(serial)
        self.held_bytes -= _cost(waiting.exchange)
        request = waiting.exchange.request
        if isinstance(request, Request):
            same = self._by_correlation.pop(request.correlation_id)
            if isinstance(same, list) and len(same) > 1:
                same.remove(serial)
                self._by_correlation[request.correlation_id] = same
        else:
            del self._tokens[serial]
        if not self._waiting:
            # An emptied dict keeps its table, but most connections are silent most of the time.
            self._waiting.clear()
            self._by_correlation.clear()
        return waiting

    def waiting(self) -> list[Waiting]:
        """All waiting entries, oldest first."""
        return list(self._waiting.values())

    def clear(self) -> list[Waiting]:
        """Remove and return all waiting entries."""
        left = list(self._waiting.values())
        self._waiting.clear()
        self._by_correlation.clear()
        self._tokens.clear()
        self.held_bytes = 0
        return left


def _cost(exchange: Exchange) -> int:
    """The cost of a waiting exchange. Its bytes count twice, because decoded values have copies of them."""
    assert exchange.request is not None
    return REQUEST_BYTES + 2 * len(exchange.request.frame.payload)
