"""SASL: the client's side of a mechanism, token by token, sans I/O.

    client = mechanism("SCRAM-SHA-256", credentials)
    token = client.first()          what is sent
    token = client.answer(received) what is sent next; None: nothing, it is over

PLAIN: RFC 4616. SCRAM: RFC 5802 and 7677, without channel binding; as in Kafka's own client, names and
passwords are UTF-8, without SASLprep. The server must prove that it knows the password too: its signature is
compared in constant time, and a login without it counts as failed. OAUTHBEARER: RFC 7628 (KIP-255); kdissect
does not examine the token.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode
from typing import NamedTuple, Protocol

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

LEAST_ITERATIONS = 4_096
"""The fewest iterations: RFC 7677, 4, as in Kafka's own client."""
MOST_ITERATIONS = 16_777_216
"""The most iterations that a server may ask for, because more could keep the client busy for ever."""


class SaslError(Exception):
    """The login cannot go on; the text says why, in one line."""


class SaslCredentials(NamedTuple):
    """The credentials of the client. Their text form has no secrets, so that nobody prints them by
    accident."""

    user: str | None = None
    password: str | None = None
    token: str | None = None
    """The token of OAUTHBEARER."""

    def __repr__(self) -> str:
        return "<credentials>"


class Mechanism(Protocol):
    """One login."""

    def first(self) -> bytes:
        """The first token of the client."""

    def answer(self, received: bytes) -> bytes | None:
        """The client's answer; None if the login is over.

        :raises SaslError: the server cannot be trusted, or breaks the mechanism's rules.
        """


def mechanism(name: str, credentials: SaslCredentials) -> Mechanism:
    """The client of a mechanism.

    :raises SaslError: it is not in :data:`MECHANISMS`, or credentials are missing.
    """
    if name == "OAUTHBEARER":
        if not credentials.token:
            raise SaslError("OAUTHBEARER needs a token: --token-file FILE")
        return _Bearer(credentials.token)
    if name not in MECHANISMS:
        raise SaslError(f"{name}: there are {', '.join(MECHANISMS)}")
    if credentials.user is None or credentials.password is None:
        raise SaslError(f"{name} needs --user NAME and a password")
    if name == "PLAIN":
        return _Plain(credentials.user, credentials.password)
    return Scram(name.removeprefix("SCRAM-"), credentials.user, credentials.password)


class _Plain:
    def __init__(self, user: str, password: str) -> None:
        if "\0" in user + password:
            raise SaslError("for PLAIN, name and password cannot contain NUL")
        self._token = f"\0{user}\0{password}".encode()

    def first(self) -> bytes:
        return self._token

    def answer(self, received: bytes) -> None:
        """Ignore the server's answer."""


class _Bearer:
    def __init__(self, token: str) -> None:
        if not token.isascii() or not token.isprintable() or " " in token:
            raise SaslError("the token is not one line of printable ASCII, as a bearer token must be")
        self._token = token
        self._is_refused = False

    def first(self) -> bytes:
        return f"n,,\x01auth=Bearer {self._token}\x01\x01".encode()

    def answer(self, received: bytes) -> bytes | None:
        """The answer to a server that refuses: it sends the reason, and waits for one byte of the client (RFC
        7628, 3.2.3)."""
        if self._is_refused:
            raise SaslError("the server continues the login after it has refused the token")
        self._is_refused = bool(received)
        return b"\x01" if received else None


class Scram:
    """SCRAM with SHA-256 or SHA-512.

    :param nonce: the client's nonce; random unless a test gives one.
    """

    def __init__(self, digest: str, user: str, password: str, nonce: str | None = None) -> None:
        self._digest = digest.replace("-", "").lower()
        self._password = password.encode()
        self._nonce = nonce or b64encode(secrets.token_bytes(24)).decode("ascii")
        name = user.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={name},r={self._nonce}"
        self._server_signature: bytes | None = None
        self._is_over = False

    def first(self) -> bytes:
        return f"n,,{self._first_bare}".encode()

    def answer(self, received: bytes) -> bytes | None:
        if self._is_over:
            raise SaslError("the server continues the login after its end")
        if self._server_signature is None:
            return self._final(received)
        self._is_over = True
        self._verify(received)
        return None

    def _final(self, received: bytes) -> bytes:
        said = _attributes(received)
        if "e" in said:
            raise SaslError(f"the server refuses the login: {said['e']}")
        nonce, salt = said.get("r", ""), _base64(said.get("s", ""), "salt")
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise SaslError("the server's nonce does not begin with the client's: another server answered")
        iterations = int(said["i"]) if said.get("i", "").isdecimal() and len(said["i"]) < 10 else 0
        if not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS:
            raise SaslError(
                f"the server asks for {said.get('i', 'no')} iterations: "
                f"{LEAST_ITERATIONS:,} to {MOST_ITERATIONS:,} are acceptable"
            )
        salted = hashlib.pbkdf2_hmac(self._digest, self._password, salt, iterations)
        client_key = self._hmac(salted, b"Client Key")
        without_proof = f"c=biws,r={nonce}"
        message = ",".join((self._first_bare, received.decode("utf-8"), without_proof)).encode()
        signature = self._hmac(hashlib.new(self._digest, client_key).digest(), message)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), message)
        return f"{without_proof},p={b64encode(proof).decode('ascii')}".encode()

    def _verify(self, received: bytes) -> None:
        said = _attributes(received)
        if "e" in said:
            raise SaslError(f"the server refuses the login: {said['e']}")
        assert self._server_signature is not None
        if not hmac.compare_digest(_base64(said.get("v", ""), "signature"), self._server_signature):
            raise SaslError("the server's signature is wrong: it does not know the password")

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, self._digest).digest()


def _attributes(message: bytes) -> dict[str, str]:
    try:
        parts = message.decode("utf-8").split(",")
    except UnicodeDecodeError:
        raise SaslError("the server's SCRAM message is not UTF-8") from None
    return {part[:1]: part[2:] for part in parts if part[1:2] == "="}


def _base64(text: str, what: str) -> bytes:
    try:
        data = b64decode(text, validate=True)
    except ValueError:
        data = b""
    if not data:
        raise SaslError(f"the server's {what} is missing or not base64")
    return data
