"""A registry that is asked over HTTP for the schemas that records name.

The requests are those of Confluent's Schema Registry. Apicurio answers the same under ``/apis/ccompat/v7``:

    GET /schemas/ids/ID                         {"schema", "schemaType", "references"}
    GET /schemas/guids/GUID                     the same, for ids in headers (Confluent 8)
    GET /subjects/SUBJECT/versions/VERSION      a schema that another one refers to

Answers stay in memory. After the first failure there are no more requests: records stay raw, and one line
says why. A redirect is a failure too, because credentials must not go elsewhere. Each answer has a deadline
and a largest size, and all of them together have :data:`PATIENCE_S`. Bytes that only look framed have ids
that the registry does not know. So requests also end after :data:`MOST_MISSES` unknown ids.
"""

from __future__ import annotations

import http.client
import io
import json
import socket
import ssl
import time
from base64 import b64encode
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from kdissect.payload.schemas import GUID, RegistrySchema, schema_of

TIMEOUT_S = 10.0
"""Seconds that one answer may take, from the connection to its last byte."""
PATIENCE_S = 60.0
"""Seconds that all answers may take together."""
LARGEST_ANSWER = 16 << 20
"""The most bytes of an answer."""
MOST_MISSES = 100
"""The most requests for schemas that the registry does not have."""
_PORTS = {"http": 80, "https": 443}


class RegistryUrl(NamedTuple):
    """The address of a registry, from its URL."""

    scheme: str
    host: str
    port: int
    path: str
    """The path before each request's own path: ``""``, ``/apis/ccompat/v7``."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}"

    @property
    def origin(self) -> tuple[str, str, int]:
        """The origin for which the credentials are valid."""
        return self.scheme, self.host, self.port


def place_of(url: str) -> RegistryUrl:
    """The address in a URL.

    :raises ValueError: the URL cannot be used. The text shows no part of it, since it may hold a password.
    """
    try:
        said = urlsplit(url)
        host, port = said.hostname, said.port
    except ValueError:
        raise ValueError("this is not a URL: https://HOST:PORT is needed") from None
    if said.username is not None or said.password is not None:
        raise ValueError(
            "the URL must not contain user and password: use KDISSECT_REGISTRY_USER and "
            "KDISSECT_REGISTRY_PASSWORD"
        )
    if said.scheme not in _PORTS or not host or not host.isprintable() or " " in url:
        raise ValueError("a URL is needed: https://HOST:PORT, or http://…")
    if said.query or said.fragment:
        raise ValueError(
            "a URL without ? and # is needed, because kdissect appends the path of each question"
        )
    path = said.path.rstrip("/")
    if not path.isascii() or not path.isprintable():
        raise ValueError("the path of a URL can contain only ASCII: write other characters as %XX")
    return RegistryUrl(said.scheme, host, port or _PORTS[said.scheme], path)


class RegistryCredentials(NamedTuple):
    """The credentials that are sent to a registry. They appear in no output."""

    user: str | None = None
    password: str | None = None
    token: str | None = None

    def __repr__(self) -> str:
        return "Credentials(…)"

    def header(self) -> str | None:
        """The header ``Authorization``; None without credentials."""
        if self.token is not None:
            return f"Bearer {self.token}"
        if self.user is None:
            return None
        return "Basic " + b64encode(f"{self.user}:{self.password or ''}".encode()).decode("ascii")


class RegistryError(Exception):
    """A registry cannot be used any more; the text says why, in one line and without a secret."""


class Registry:
    """Asks one registry. It can be copied into other processes.

    :param ca_file: certificates to trust instead of the system's.
    :param timeout_s: seconds that one answer may take.
    """

    def __init__(
        self,
        place: RegistryUrl,
        credentials: RegistryCredentials = RegistryCredentials(),  # noqa: B008  it cannot be changed
        ca_file: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._place = place
        self._credentials = credentials
        self._ca_file = ca_file
        self._timeout_s = timeout_s
        self._left_s = PATIENCE_S
        self._misses = 0
        self.failure: str | None = None
        """Why requests have ended, in one line."""
        if place.scheme == "https":
            context_of(ca_file)

    def of_id(self, id: str) -> RegistrySchema | None:
        """The schema of an id; None if the registry has no such id or cannot be asked."""
        if id.isdecimal():
            found = self._schema(f"/schemas/ids/{id}")
        elif GUID.fullmatch(id):
            found = self._schema(f"/schemas/guids/{id}")
        else:
            return None
        # The answer does not repeat the id.
        return None if found is None else found._replace(id=id)

    def of_version(self, subject: str, version: int) -> RegistrySchema | None:
        """A version of a subject; None if the registry does not have it or cannot be asked."""
        path = f"/subjects/{quote(subject, safe='')}/versions/{version}?deleted=true"
        found = self._schema(path)
        return None if found is None else found._replace(subject=subject, version=version)

    def _schema(self, path: str) -> RegistrySchema | None:
        if self.failure is not None:
            return None
        begin = time.monotonic()
        try:
            if self._left_s <= 0:
                raise RegistryError(f"its answers took more than {PATIENCE_S:.0f} s together")
            found = self._answer(path, begin + min(self._timeout_s, self._left_s))
        except RegistryError as error:
            self.failure = (
                f"--registry {self._place}: {error}; kdissect no longer asks it, and records stay raw"
            )
            return None
        finally:
            self._left_s -= time.monotonic() - begin
        return found

    def _answer(self, path: str, deadline: float) -> RegistrySchema | None:
        status, data = self._get(path, deadline)
        if status == http.client.OK:
            found = schema_of(_object(data), str(self._place))
            if found is None:
                raise RegistryError(
                    "it does not answer as a schema registry: there is no schema in its answer"
                )
            return found
        if status == http.client.NOT_FOUND:
            if "error_code" not in _object(data):
                raise RegistryError(
                    "it answers 404, so this may not be a schema registry: is the URL's path right?"
                )
            self._misses += 1
            if self._misses >= MOST_MISSES:
                raise RegistryError(f"it has none of the {MOST_MISSES} requested schemas")
            return None
        if status in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
            what = "refuses these credentials" if self._credentials.header() else "wants credentials"
            raise RegistryError(f"it {what} ({status}): {HOW}")
        if status // 100 == 3:
            raise RegistryError(f"it redirects ({status}), and kdissect does not follow: give the final URL")
        raise RegistryError(f"it answers {status}")

    def _get(self, path: str, deadline: float) -> tuple[int, bytes]:
        """The status and the body of an answer.

        :raises RegistryError: no complete answer came.
        """
        try:
            return self._fetch(path, deadline)
        except TimeoutError:
            raise RegistryError(f"it does not answer within {self._timeout_s:g} s") from None
        except ssl.SSLCertVerificationError as error:
            why = error.verify_message.rstrip(".")
            raise RegistryError(f"its certificate is not trusted: {why}: give --registry-ca FILE") from None
        except ssl.SSLError as error:
            reason = (error.reason or "no TLS").lower().replace("_", " ")
            raise RegistryError(f"TLS failed: {reason}: is it http://?") from None
        except socket.gaierror:
            raise RegistryError("there is no such host") from None
        except OSError as error:
            raise RegistryError(f"it cannot be reached: {error.strerror or type(error).__name__}") from None
        except (http.client.HTTPException, ValueError):
            raise RegistryError("it does not speak HTTP: is it https://?") from None

    def _fetch(self, path: str, deadline: float) -> tuple[int, bytes]:
        connection = self._new_connection(_left(deadline))
        connection.response_class = partial(_response, deadline)  # type: ignore[assignment]
        headers = {
            "Accept": "application/vnd.schemaregistry.v1+json, application/json",
            "Connection": "close",
        }
        said = self._credentials.header()
        if said is not None:
            headers["Authorization"] = said
        try:
            connection.request("GET", self._place.path + path, headers=headers)
            with connection.getresponse() as answer:
                data = answer.read(LARGEST_ANSWER + 1)
                if len(data) > LARGEST_ANSWER:
                    raise RegistryError(f"its answer has more than {LARGEST_ANSWER:,} bytes")
                if answer.length:  # the body is shorter than announced
                    raise http.client.IncompleteRead(b"")
                return answer.status, data
        finally:
            connection.close()

    def _new_connection(self, timeout_s: float) -> http.client.HTTPConnection:
        host, port = self._place.host, self._place.port
        if self._place.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=timeout_s)
        context = context_of(self._ca_file)
        return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=context)


HOW = "KDISSECT_REGISTRY_USER and KDISSECT_REGISTRY_PASSWORD, or KDISSECT_REGISTRY_TOKEN, or ~/.netrc"
"""The sources of credentials, in words."""


def context_of(ca_file: str | None) -> ssl.SSLContext:
    """The context that checks the registry's certificate.

    :raises ValueError: the file cannot be used; the text names it.
    """
    try:
        return ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError:
        raise ValueError(f"{ca_file}: no certificates in PEM are in it") from None
    except OSError as error:
        raise ValueError(f"{ca_file}: cannot be read: {error.strerror or error}") from None


def _object(data: bytes) -> dict[str, Any]:
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class _Timed(io.RawIOBase):
    """The bytes of a socket, up to a deadline. A socket's own timeout restarts with each byte."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_left(self._deadline))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Door:
    """A socket as :class:`http.client.HTTPResponse` sees it."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock = sock
        self._deadline = deadline

    def makefile(self, _: str) -> io.BufferedReader:
        return io.BufferedReader(_Timed(self._sock, self._deadline))


def _response(deadline: float, sock: socket.socket, **more: Any) -> http.client.HTTPResponse:
    return http.client.HTTPResponse(_Door(sock, deadline), **more)  # type: ignore[arg-type]
