"""A connection that is ready for requests: how it becomes ready, and how to send them.

First comes ApiVersions; then the login, if there is one. The login is SaslHandshake, and then
SaslAuthenticate or, after a handshake of version 0, tokens without Kafka headers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kdissect.client.errors import AskingError, OtherSideError
from kdissect.client.io import BrokerAddress, BrokerConnection
from kdissect.client.sasl import SaslError, mechanism
from kdissect.client.security import Security
from kdissect.client.session import sized
from kdissect.client.versions import (
    NOTHING,
    Advertised,
    advertised,
    api_versions_body,
    next_try,
    request_struct,
)
from kdissect.exchange import Exchange
from kdissect.present.redact import secrets_of
from kdissect.present.secret_names import REDACTED
from kdissect.protocol import apis
from kdissect.protocol.apis import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from kdissect.protocol.encode import encode
from kdissect.protocol.errors import error_name


class Ready(NamedTuple):
    """A connection, and the versions that its broker advertises."""

    connection: BrokerConnection
    versions: Advertised

    @property
    def address(self) -> BrokerAddress:
        return self.connection.address

    @property
    def is_negotiated(self) -> bool:
        """Whether the broker was asked for its versions."""
        return self.versions is not NOTHING

    async def request(self, api_key: int, version: int, values: dict[str, Any]) -> Exchange:
        """Send a request, and check that the answer can be read.

        :raises OtherSideError: no answer comes, or one that does not fit its schema.
        :raises AskingError: the version cannot express the request.
        """
        struct = request_struct(api_key, version)
        try:
            data = encode(struct, values)
        except ValueError as error:
            raise AskingError(f"{apis.api_name(api_key)} v{version}: {error}") from None
        return readable(await self.connection.send_and_receive(api_key, version, data), self.address)


def readable(exchange: Exchange, address: BrokerAddress) -> Exchange:
    """The exchange, if its answer fits its schema. Bytes left over after the last field are only a fault of
    the exchange: the fields before them are right.

    :raises OtherSideError: the answer does not fit.
    """
    if exchange.response is None:
        return exchange
    body = exchange.response.decoded()
    if body.struct is not None and all(each.kind == "remainder" for each in body.faults):
        return exchange
    why = body.faults[0].message if body.faults else body.opaque
    raise OtherSideError(
        f"{address}: its answer to {exchange.api} v{exchange.api_version} does not fit the schema: {why}: "
        "-T tree --all shows the bytes"
    )


def body_of(exchange: Exchange) -> dict[str, Any]:
    """The decoded body of an answer."""
    assert exchange.response is not None
    return exchange.response.body()


async def negotiated(connection: BrokerConnection) -> Ready:
    """Ask for the versions, with the newest version of ApiVersions that both sides know.

    :raises OtherSideError: the broker does not answer with its versions.
    """
    version: int | None = apis.versions(API_VERSIONS).stop - 1
    body: dict[str, Any] = {}
    while version is not None:
        asked = version
        data = encode(request_struct(API_VERSIONS, asked), api_versions_body(asked))
        exchange = await connection.send_and_receive(API_VERSIONS, asked, data)
        body = body_of(exchange)
        version = next_try(asked, body)
        if version is None:  # for a refusal the code is enough: librdkafka's mock brokers garble the rest
            readable(exchange, connection.address)
    if body.get("errorCode"):
        raise OtherSideError(f"{connection.address}: ApiVersions: {error_name(body['errorCode'])}")
    ready = Ready(connection, advertised(body))
    connection.advertised = ready.versions.ranges
    return ready


async def log_in(ready: Ready, security: Security) -> None:
    """Log in by the user's options.

    :raises OtherSideError: it fails, or the broker cannot be trusted.
    :raises AskingError: broker and kdissect have no mechanism in common.
    """
    name = security.mechanism or ""
    try:
        client = mechanism(name, security.credentials)
    except SaslError as error:
        raise AskingError(str(error)) from None
    version = ready.versions.pick(SASL_HANDSHAKE)
    body = body_of(await ready.request(SASL_HANDSHAKE, version, {"mechanism": name}))
    if body["errorCode"]:
        offered = ", ".join(body.get("mechanisms") or ())
        offers = (
            f"it offers {offered} (--sasl)" if offered else "this listener takes no logins: leave --sasl out"
        )
        raise OtherSideError(
            f"{ready.address}: it does not accept {name} ({error_name(body['errorCode'])}): {offers}"
        )
    token: bytes | None = client.first()
    while token is not None:
        received = await _authenticate(ready, token, name, raw=version == 0)
        try:
            token = client.answer(received)
        except SaslError as error:
            raise OtherSideError(f"{ready.address}: login with {name}: {error}") from None


async def _authenticate(ready: Ready, token: bytes, name: str, raw: bool) -> bytes:
    """Send a token and wait for the broker's token; ``raw`` means without Kafka headers."""
    if raw:
        connection = ready.connection
        exchange = await connection.answer(await connection.send(sized(token)))
        assert exchange.response is not None
        return exchange.response.frame.payload
    version = ready.versions.pick(SASL_AUTHENTICATE)
    body = body_of(await ready.request(SASL_AUTHENTICATE, version, {"authBytes": token}))
    if body["errorCode"]:
        said = body.get("errorMessage")
        if said and any(each in said for each in secrets_of("SaslAuthenticateRequest", {"authBytes": token})):
            said = f"{REDACTED}, because it repeats the secret"
        secret = "the token" if name == "OAUTHBEARER" else "--user, the password"
        raise OtherSideError(
            f"{ready.address}: the login failed ({error_name(body['errorCode'])}"
            f"{': ' + said if said else ''}): check {secret} and --sasl"
        )
    return bytes(body.get("authBytes") or b"")
