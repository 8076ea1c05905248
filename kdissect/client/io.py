"""Sockets, time and TLS: what carries the bytes of a :class:`~kdissect.client.session.ClientSession`.

This is the only module of the client that knows asyncio, sockets and ssl. Every way in which a
connection fails becomes one :class:`~kdissect.client.errors.OtherSideError`, which says what to do.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, TypeVar

from kdissect.client.diagnosis import not_kafka, what_closing_means
from kdissect.client.errors import OtherSideError
from kdissect.client.security import Security, Tls
from kdissect.client.session import CLIENT_ID, ClientSession, Heard
from kdissect.client.transcript import Transcript
from kdissect.exchange import Exchange
from kdissect.model import Endpoint, Fault

_READ = 1 << 18

T = TypeVar("T")

Show = Callable[[Exchange | Fault], None]


def run(flow: Coroutine[Any, Any, T]) -> T:
    """Run a flow to its end, in an event loop of its own."""
    return asyncio.run(flow)


async def pause(seconds: float) -> None:
    """Let time pass."""
    await asyncio.sleep(seconds)


def now_ns() -> int:
    """The time of what is sent and received now."""
    return time.time_ns()


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Connection:
    """One connection to a broker. :meth:`open` makes it.

    :param show: is given every exchange when it is complete, and every fault that is of none.
    """

    def __init__(
        self,
        address: Address,
        session: ClientSession,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        timeout: float,
        show: Show,
    ) -> None:
        self.address = address
        self.session = session
        self._reader = reader
        self._writer = writer
        self._timeout = timeout
        self._show = show
        self._waiting: dict[int, Exchange] = {}
        """By identity."""
        self.is_open = True
        self._answered: set[int | None] = set()
        """The APIs of which it has answered a request; None is a SASL token."""

    @classmethod
    async def open(
        cls,
        address: Address,
        transcript: Transcript,
        security: Security,
        show: Show,
        *,
        timeout: float = 30.0,
        client_id: str | None = CLIENT_ID,
    ) -> Connection:
        """Connect.

        :param timeout: seconds that connecting, and each answer, may take.
        :raises OtherSideError: there is nobody, or TLS fails.
        """
        context = None if security.tls is None else _tls_context(security.tls)
        name = None
        if security.tls is not None:
            name = security.tls.server_name or address.host
        try:
            async with asyncio.timeout(timeout):
                reader, writer = await asyncio.open_connection(
                    address.host, address.port, ssl=context, server_hostname=name
                )
        except TimeoutError:
            what = "TLS connection" if context else "connection"
            doubt = "does it speak TLS there" if context else "is a firewall between"
            raise OtherSideError(
                f"{address}: no {what} within {timeout:g} s: is the address right, and {doubt}?"
            ) from None
        except ssl.SSLError as error:
            raise OtherSideError(f"{address}: {_tls_failure(error)}") from None
        except ConnectionRefusedError:
            raise OtherSideError(
                f"{address}: connection refused: is the broker running, and is this the port of a listener?"
            ) from None
        except socket.gaierror:
            raise OtherSideError(
                f"{address}: no such host: is the name right? (a name that the cluster tells must be known "
                "here too)"
            ) from None
        except (OverflowError, UnicodeError):
            raise OtherSideError(f"{address}: this is no address that can be connected to") from None
        except OSError as error:
            what = _os_text(error)
            if context is not None and isinstance(error, ConnectionError):
                what = "it closed the connection when TLS began: it does not speak TLS here, leave --tls out"
            raise OtherSideError(f"{address}: {what}") from None
        names = [writer.get_extra_info(which) for which in ("sockname", "peername")]
        if None in names:
            writer.close()
            raise OtherSideError(f"{address}: it closed the connection at once: is it a broker of Kafka's?")
        ours, theirs = map(_endpoint, names)
        session = ClientSession(transcript, ours, theirs, now_ns(), client_id, context is not None)
        return cls(address, session, reader, writer, timeout, show)

    async def ask(self, api_key: int, api_version: int, body: bytes) -> Exchange:
        """Send a request and wait for its answer. Without one (acks=0) it is complete when it is sent.

        :raises OtherSideError: no whole answer comes.
        """
        return await self.answer(await self.send(self.session.request(api_key, api_version, body)))

    async def send(self, data: bytes) -> Exchange | None:
        """Send bytes; gives the first exchange that they begin, None where they begin none.

        :raises OtherSideError: the connection is closed.
        """
        heard = await self.send_all(data)
        return heard[0] if heard else None

    async def send_all(self, data: bytes) -> list[Exchange]:
        """The same; gives all exchanges that they begin."""
        if not self.is_open:
            raise OtherSideError(f"{self.address}: the connection is closed")
        heard = self.session.feed_sent(data, now_ns())
        self._take(heard)
        try:
            self._writer.write(data)
            async with asyncio.timeout(self._timeout):
                await self._writer.drain()
        except TimeoutError:
            raise OtherSideError(f"{self.address}: it takes no more bytes, for {self._timeout:g} s") from None
        except OSError:
            pass  # reading tells what the broker said before it closed
        return heard.begun

    async def answer(self, exchange: Exchange | None) -> Exchange:
        """Wait until an exchange is complete.

        :raises OtherSideError: no whole answer comes.
        """
        if exchange is None:
            raise OtherSideError(f"{self.address}: the bytes are no request that could be answered")
        while id(exchange) in self._waiting:
            await self.listen()
        if exchange.missing is not None and exchange.missing != "acks=0":
            what = what_closing_means(exchange, self.session, self._answered)
            closed = exchange.response is None and exchange.missing == "connection closed"
            raise OtherSideError(f"{self.address}: {what}", closed=closed)
        return exchange

    async def listen(self) -> None:
        """Take in what comes next, or the end.

        :raises OtherSideError: nothing comes in time, or what comes is no Kafka.
        """
        try:
            async with asyncio.timeout(self._timeout):
                data = await self._reader.read(_READ)
        except TimeoutError:
            waiting = next(iter(self._waiting.values()), None)
            what = "anything" if waiting is None else f"{waiting.api or 'a token'}"
            part = f", {self.session.received:,} bytes came" if self.session.received else ""
            advice = (
                "--timeout waits longer"
                if self._answered
                else "is it a broker of Kafka's? --timeout waits longer"
            )
            raise OtherSideError(
                f"{self.address}: no answer to {what} within {self._timeout:g} s{part}: {advice}"
            ) from None
        except (ssl.SSLError, OSError):
            data = b""
        if not data:
            await self._end(by_broker=True)
            return
        heard = self.session.feed_received(data, now_ns())
        self._take(heard)
        self._answered |= {each.api_key for each in heard.completed if each.request and each.response}
        broken = not_kafka(heard, self.session, bool(self._answered))
        if broken is not None:
            await self._end(by_broker=False)
            raise OtherSideError(f"{self.address}: {broken}")

    async def close(self) -> None:
        """End it."""
        await self._end(by_broker=False)

    async def _end(self, by_broker: bool) -> None:
        if not self.is_open:
            return
        self.is_open = False
        self._writer.close()
        with contextlib.suppress(OSError, ssl.SSLError, TimeoutError):
            async with asyncio.timeout(1):
                await self._writer.wait_closed()
        self._take(self.session.close(now_ns(), by_broker))

    def _take(self, heard: Heard) -> None:
        for exchange in heard.begun:
            self._waiting[id(exchange)] = exchange
        for exchange in heard.completed:
            self._waiting.pop(id(exchange), None)
            self._show(exchange)
        for fault in heard.faults:
            self._show(fault)


def _tls_context(tls: Tls) -> ssl.SSLContext:
    """:raises OtherSideError: a file of certificates or keys cannot be used."""
    try:
        context = ssl.create_default_context(cafile=tls.ca_file)
        if not tls.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if tls.certificate is not None:
            # An empty password fails where one is needed; None would ask for it on the terminal.
            context.load_cert_chain(tls.certificate, tls.key, tls.key_password or "")
    except (OSError, ssl.SSLError) as error:
        named = ", ".join(each for each in (tls.ca_file, tls.certificate, tls.key) if each)
        raise OtherSideError(f"{named}: cannot be used for TLS: {_os_text(error)}") from None
    return context


def _tls_failure(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted: {error.verify_message}: --tls-ca FILE names who is trusted, "
            "--tls-name NAME what it must be called"
        )
    reason = (error.reason or str(error)).lower().replace("_", " ")
    if error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNEXPECTED_EOF_WHILE_READING"):
        return f"it does not speak TLS here ({reason}): leave --tls out, or name the TLS listener's port"
    if "certificate required" in reason or "alert bad certificate" in reason:
        return f"it wants a certificate of the client ({reason}): --tls-cert FILE"
    return f"TLS failed: {reason}"


def _os_text(error: OSError) -> str:
    return (error.strerror or str(error) or type(error).__name__).lower()


def _endpoint(name: tuple[Any, ...]) -> Endpoint:
    host = str(name[0]).partition("%")[0]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.inet_pton(family, host) + int(name[1]).to_bytes(2, "big")
