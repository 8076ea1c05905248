"""Results that follow from the bytes of an answer alone, remembered because brokers send the same answer to
many clients.

    ranges = KnownAnswers(ranges_of)
    found = ranges.of(exchange, response)          the body is decoded only if these bytes are new
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from kdissect.analysis.shared_parts import answer_bytes
from kdissect.exchange import Exchange
from kdissect.message import Response, Token

T = TypeVar("T")


class KnownAnswers(Generic[T]):
    """The results of answers, by the bytes of their bodies. The oldest are forgotten first.

    :param read: the function from the body of an answer to the result. No caller changes a result.
    :param most: the most bodies that are remembered.
    :param most_bytes: longer bodies are not remembered.
    """

    def __init__(self, read: Callable[[dict[str, Any]], T], most: int = 64, most_bytes: int = 4_096) -> None:
        self._read = read
        self._most = most
        self._most_bytes = most_bytes
        self._known: OrderedDict[tuple[int | None, int | None, bool, bytes], T] = OrderedDict()

    def of(self, exchange: Exchange, response: Response | Token) -> T:
        """The result for an answer.

        :param exchange: the exchange of this answer.
        """
        body = answer_bytes(exchange, response)
        if len(body) > self._most_bytes:
            return self._read(response.body())
        key = response.api_key, response.api_version, response.is_cut, body
        found = self._known.get(key)
        if found is None:
            found = self._read(response.body())
            while len(self._known) >= self._most:
                self._known.popitem(last=False)
            self._known[key] = found
        return found
