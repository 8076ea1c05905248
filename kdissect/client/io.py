"""Sockets, which carry the bytes of a :class:`~kdissect.client.session.ClientSession`.

Every failure of a connection becomes an :class:`~kdissect.client.errors.OtherSideError`, which says what to
do.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kdissect.client.diagnosis import ConnectionFacts, not_kafka, what_closing_means
from kdissect.client.errors import OtherSideError
from kdissect.client.loop import now_ns
from kdissect.client.reach import connected
from kdissect.client.security import Security
from kdissect.client.session import CLIENT_ID, ClientSession, SessionEvents
from kdissect.client.tls import context_of, failure
from kdissect.client.transcript import Transcript
from kdissect.exchange import Exchange
from kdissect.model import Endpoint, Fault
from kdissect.wording import plural

_READ = 1 << 18

Show = Callable[[Exchange | Fault], None]


class BrokerAddress(NamedTuple):
    """The address of a broker."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class BrokerConnection:
    """One connection to a broker. :meth:`open` makes it.

    :param show: receives every complete exchange, and every fault that belongs to no exchange.
    """

    def __init__(
        self,
        address: BrokerAddress,
        session: ClientSession,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        security: Security,
        timeout: float,
        show: Show,
    ) -> None:
        self.address = address
        self.session = session
        self._reader = reader
        self._writer = writer
        self._security = security
        self._timeout = timeout
        self._show = show
        self._waiting: dict[int, Exchange] = {}
        """Incomplete exchanges, by identity."""
        self.is_open = True
        self.broken: str | None = None
        """Bytes after an answer that make no sense; the connection is closed then."""
        self._answered: set[int | None] = set()
        """The APIs that the broker has answered; None is a SASL token."""
        self.advertised: Mapping[int, range] | None = None
        """The versions that the broker advertises, by API; None if it was not asked."""

    @classmethod
    async def open(
        cls,
        address: BrokerAddress,
        transcript: Transcript,
        security: Security,
        show: Show,
        *,
        timeout: float = 30.0,
        client_id: str | None = CLIENT_ID,
    ) -> BrokerConnection:
        """Connect.

        :param timeout: seconds for connecting, and for each answer from its request to its last byte.
        :raises OtherSideError: nobody answers, or TLS fails.
        :raises ValueError: a file of certificates or keys cannot be used.
        """
        context = None if security.tls is None else context_of(security.tls)
        name = None
        if security.tls is not None:
            name = security.tls.server_name or address.host
        try:
            async with asyncio.timeout(timeout):
                sock = await connected(address.host, address.port)
                reader, writer = await asyncio.open_connection(sock=sock, ssl=context, server_hostname=name)
        except TimeoutError:
            what = "TLS connection" if context else "connection"
            doubt = "does it speak TLS there" if context else "is a firewall between"
            raise OtherSideError(
                f"{address}: no {what} within {timeout:g} s: is the address right, and {doubt}?"
            ) from None
        except ssl.SSLError as error:
            raise OtherSideError(f"{address}: {_tls_failure(error, security)}") from None
        except ConnectionRefusedError:
            raise OtherSideError(
                f"{address}: connection refused: is the broker running, and is this the port of a listener?"
            ) from None
        except socket.gaierror:
            raise OtherSideError(
                f"{address}: no such host: is the name right? (this machine must also know the names in "
                "the cluster's Metadata)"
            ) from None
        except ValueError:  # any name of a host that a cluster may give
            raise OtherSideError(f"{address}: it is not possible to connect to this address") from None
        except OSError as error:
            what = _os_text(error)
            if context is not None and isinstance(error, ConnectionError):
                what = (
                    "it closed the connection when TLS began, as a plaintext listener does: leave --tls out, "
                    "or name the TLS listener's port"
                )
            raise OtherSideError(f"{address}: {what}") from None
        names = [writer.get_extra_info(which) for which in ("sockname", "peername")]
        if None in names:
            writer.close()
            raise OtherSideError(f"{address}: it closed the connection at once: is it a broker of Kafka's?")
        ours, theirs = map(_endpoint, names)
        session = ClientSession(transcript, ours, theirs, now_ns(), client_id, context is not None)
        return cls(address, session, reader, writer, security, timeout, show)

    async def send_and_receive(self, api_key: int, api_version: int, body: bytes) -> Exchange:
        """Send a request and wait for its answer. A request without one (acks=0) is complete when it is sent.

        :raises OtherSideError: no whole answer comes.
        """
        return await self.answer(await self.send(self.session.request(api_key, api_version, body)))

    async def send(self, data: bytes) -> Exchange | None:
        """Send bytes. Return the first exchange that they begin, or None if they begin none.

        :raises OtherSideError: the connection is closed.
        """
        heard = await self.send_all(data)
        return heard[0] if heard else None

    async def send_all(self, data: bytes) -> list[Exchange]:
        """Send bytes, and return all exchanges that they begin."""
        if not self.is_open:
            raise OtherSideError(f"{self.address}: {self.broken or 'the connection is closed'}")
        heard = self.session.feed_sent(data, now_ns())
        self._take(heard)
        try:
            self._writer.write(data)
            async with asyncio.timeout(self._timeout):
                await self._writer.drain()
        except TimeoutError:
            raise OtherSideError(
                f"{self.address}: it has accepted no more bytes for {self._timeout:g} s"
            ) from None
        except OSError:
            pass  # reading gives what the broker sent before it closed
        return heard.begun

    async def answer(self, exchange: Exchange | None) -> Exchange:
        """Wait until an exchange is complete, up to the timeout of an answer.

        :raises OtherSideError: no whole answer comes in time.
        """
        if exchange is None:
            return await self._silence()
        deadline = asyncio.get_running_loop().time() + self._timeout
        while id(exchange) in self._waiting:
            await self._listen(deadline, exchange.api or "a token")
        if self.broken is not None and (exchange.response is None or exchange.response.is_cut):
            raise OtherSideError(f"{self.address}: {self.broken}")
        if exchange.missing is not None and exchange.missing != "acks=0":
            tls = self._security.tls
            known = ConnectionFacts(
                tls is not None,
                tls is not None and tls.certificate is not None,
                self._security.mechanism is not None,
                self.advertised,
            )
            what = what_closing_means(exchange, self.session, self._answered, known)
            closed = exchange.response is None and exchange.missing == "connection closed"
            raise OtherSideError(f"{self.address}: {what}", closed=closed)
        return exchange

    async def _silence(self) -> Exchange:
        """Wait for the reaction of a broker to bytes that begin no request.

        :raises OtherSideError: always, because there can be no answer.
        """
        deadline = asyncio.get_running_loop().time() + self._timeout
        while self.is_open:
            await self._listen(deadline, "these bytes, which are not a request,")
        raise OtherSideError(
            f"{self.address}: it closed the connection: the bytes are not a request", closed=True
        )

    async def _listen(self, deadline: float, what: str) -> None:
        """Take in the next bytes, or the end.

        :param deadline: the time until which it waits, by the event loop's clock.
        :param what: what it waits for.
        :raises OtherSideError: the deadline passed, or TLS failed.
        """
        try:
            # If a server never pauses, the event loop never sees the deadline by itself.
            if asyncio.get_running_loop().time() >= deadline:
                raise TimeoutError
            async with asyncio.timeout_at(deadline):
                data = await self._reader.read(_READ)
        except TimeoutError:
            raise OtherSideError(f"{self.address}: {self._too_late(what)}") from None
        except ssl.SSLError as error:
            await self._end(by_broker=True)
            raise OtherSideError(f"{self.address}: {_tls_failure(error, self._security)}") from None
        except OSError:
            data = b""
        if not data:
            await self._end(by_broker=True)
            return
        heard = self.session.feed_received(data, now_ns())
        self._take(heard)
        self._answered |= {each.api_key for each in heard.completed if each.request and each.response}
        self.broken = not_kafka(heard, self.session, bool(self._answered))
        if self.broken is not None:
            await self._end(by_broker=False)

    def _too_late(self, what: str) -> str:
        came = self.session.unframed
        advice = "--timeout waits longer"
        if not self._answered:
            advice = f"is it a broker of Kafka's? {advice}"
        if came:
            return (
                f"no whole answer to {what} within {self._timeout:g} s, {plural(came, 'byte')} came: {advice}"
            )
        return f"no answer to {what} within {self._timeout:g} s: {advice}"

    async def close(self) -> None:
        """Close the connection."""
        await self._end(by_broker=False)

    async def _end(self, by_broker: bool) -> None:
        if not self.is_open:
            return
        self.is_open = False
        self._writer.close()
        with contextlib.suppress(OSError, ssl.SSLError, TimeoutError):
            async with asyncio.timeout(1):
                await self._writer.wait_closed()
        # A broker that does not read any more, or does not end TLS, would keep the socket open.
        self._writer.transport.abort()
        self._take(self.session.close(now_ns(), by_broker))

    def _take(self, heard: SessionEvents) -> None:
        for exchange in heard.begun:
            self._waiting[id(exchange)] = exchange
        for exchange in heard.completed:
            self._waiting.pop(id(exchange), None)
            self._show(exchange)
        for fault in heard.faults:
            self._show(fault)


def _tls_failure(error: ssl.SSLError, security: Security) -> str:
    return failure(error, security.tls is not None and security.tls.certificate is not None)


def _os_text(error: OSError) -> str:
    return (error.strerror or str(error) or type(error).__name__).lower()


def _endpoint(name: tuple[Any, ...]) -> Endpoint:
    host = str(name[0]).partition("%")[0]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.inet_pton(family, host) + int(name[1]).to_bytes(2, "big")
