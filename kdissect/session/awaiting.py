"""The connections that wait for TLS secrets, by secret.

    names of secrets that are new ─► the connections that wait for one ─► what waited in them
                ▲                                                              │
                └───────────────── sessions that they teach ◄──────────────────┘

A secret is tried only on connections that it may help. The author of a capture decides how often secrets come
and how many connections wait. So the cost of a secret must not grow with the number of connections. Each
connection limits how often unhelpful secrets are tried on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

from kdissect.session.conversation import Conversation, Event
from kdissect.tls.keylog import TlsSecrets


class Awaiting:
    """The waiting connections, by the names of the secrets that may help. ``secrets`` are those of all
    connections."""

    def __init__(self, secrets: TlsSecrets) -> None:
        self._secrets = secrets
        self.names: dict[Conversation, tuple[bytes, ...]] = {}
        """The waiting connections, each with the names of its secrets."""
        self._by_name: dict[bytes, set[Conversation]] = {}

    def note(self, conversation: Conversation) -> None:
        """Note the secrets that a connection waits for now."""
        names, before = conversation.awaited_secrets, self.names.get(conversation, ())
        if names != before:
            self.forget(conversation)
            for name in names:
                self._by_name.setdefault(name, set()).add(conversation)
            if names:
                self.names[conversation] = names

    def forget(self, conversation: Conversation) -> None:
        """Forget a connection that waits no longer."""
        for name in set(self.names.pop(conversation, ())):
            waiting = self._by_name[name]
            waiting.remove(conversation)
            if not waiting:
                del self._by_name[name]

    def retry(self, names: Iterable[bytes], packet: int) -> Iterator[tuple[Conversation, list[Event]]]:
        """Retry the connections that waited for the secrets of these names, then those that waited for
        sessions learnt from the result. They come in the order of their numbers, as of ``packet``."""
        due: dict[int, Conversation] = {}
        numbers: list[int] = []
        while True:
            for name in names:
                for conversation in self._by_name.get(name, ()):
                    if conversation.number not in due:
                        due[conversation.number] = conversation
                        heappush(numbers, conversation.number)
            if not numbers:
                return
            conversation = due.pop(heappop(numbers))
            if conversation.waits_for_secrets:
                events = conversation.retry(packet)
                yield conversation, events
            self.note(conversation)
            names = self._secrets.take_taught()
