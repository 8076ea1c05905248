"""Which broker a client connects to, and how it logs in: the address, TLS, SASL and the sources of secrets.

Secrets come from a file, the environment or a prompt. They never come from the command line, where every user
of the machine could read them.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from typing import Any

import click

from kdissect.cli.errors import Unreadable, Wrong
from kdissect.cli.spans import SpanOption
from kdissect.client.io import BrokerAddress
from kdissect.client.sasl import MECHANISMS, SaslCredentials
from kdissect.client.security import Security, TlsOptions
from kdissect.client.session import CLIENT_ID
from kdissect.client.tls import can_be_named, context_of
from kdissect.protocol.definition import NEWEST
from kdissect.session.evidence import LONGEST_CLIENT_ID

DEFAULT_PORT = 9092
INT32_MAX = (1 << 31) - 1
LONGEST_TIMEOUT = 86_400.0

_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.%\w]+)\]|([^:\[\]\s]+))(?::(\d{1,5}))?")


def _a_client_id(_: click.Context, __: click.Parameter, value: str) -> str:
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise click.BadParameter("it is not UTF-8.") from None
    if size > LONGEST_CLIENT_ID:
        raise click.BadParameter(f"{size:,} bytes; at most {LONGEST_CLIENT_ID:,} fit in a request.")
    return value


def api_version_option(api: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """``--api-version`` for the API that a command uses."""
    return click.option(
        "--api-version", type=click.IntRange(0, NEWEST), metavar="N", help=f"Force this version of {api}."
    )


def connection_options(function: click.decorators.FC) -> click.decorators.FC:
    """HOST:PORT, TLS, SASL, and how long to wait."""
    for option in (
        click.option(
            "--client-id",
            default=CLIENT_ID,
            callback=_a_client_id,
            show_default=True,
            metavar="NAME",
            help="Client id to send.",
        ),
        click.option(
            "--timeout",
            type=SpanOption("s", 0.01, LONGEST_TIMEOUT),
            default=30.0,
            metavar="TIME",
            help="Longest time to connect, and for each answer: 4s, 500ms. Default: 30s.",
        ),
        click.option(
            "--token-file",
            metavar="FILE",
            help="File with the token of OAUTHBEARER. Default: KDISSECT_TOKEN, or a prompt.",
        ),
        click.option(
            "--password-file",
            metavar="FILE",
            help="File with the password. Default: KDISSECT_PASSWORD, or a prompt.",
        ),
        click.option("--user", metavar="NAME", help="User who logs in with --sasl."),
        click.option(
            "--sasl",
            type=click.Choice(MECHANISMS, case_sensitive=False),
            metavar="MECHANISM",
            help=f"Log in: {', '.join(MECHANISMS)}.",
        ),
        click.option(
            "--tls-key-password-file",
            metavar="FILE",
            help="Password of the key. Default: KDISSECT_TLS_KEY_PASSWORD.",
        ),
        click.option("--tls-key", metavar="FILE", help="Key of --tls-cert, if it is in another file."),
        click.option("--tls-cert", metavar="FILE", help="Certificate of the client, PEM."),
        click.option("--tls-name", metavar="NAME", help="Name that the broker's certificate must have."),
        click.option(
            "--tls-insecure", is_flag=True, help="Do not verify the broker's certificate: anybody may answer."
        ),
        click.option(
            "--tls-ca", metavar="FILE", help="Trusted certificates, PEM. Default: those of the system."
        ),
        click.option("--tls", is_flag=True, help="Use TLS. Any other --tls-… option implies it."),
        click.argument("address", metavar="HOST[:PORT]"),
    ):
        function = option(function)
    return function


def address_of(text: str) -> BrokerAddress:
    """``host``, ``host:port``, ``[::1]:port``.

    :raises Wrong: it has another form.
    """
    found = _ADDRESS.fullmatch(text)
    port = int(found[3] or DEFAULT_PORT) if found is not None else 0
    if found is None or not 0 < port < 65_536:
        raise Wrong(f"{text}: an address is HOST:PORT, as in broker:9092 or [::1]:9092")
    return BrokerAddress(found[1] or found[2], port)


def security_of(given: dict[str, Any]) -> Security:
    """The TLS and SASL settings of the options.

    :raises Wrong: they contradict each other.
    :raises Unreadable: a file of a secret, a certificate or a key cannot be used.
    """
    mechanism = given["sasl"]
    if mechanism is None:
        for option in ("user", "password_file", "token_file"):
            if given[option] is not None:
                raise Wrong(f"--{option.replace('_', '-')} needs --sasl {'|'.join(MECHANISMS)}")
    credentials = SaslCredentials()
    if mechanism == "OAUTHBEARER":
        credentials = SaslCredentials(token=_secret(given["token_file"], "KDISSECT_TOKEN", "Token"))
    elif mechanism is not None:
        if given["user"] is None:
            raise Wrong(f"--sasl {mechanism} needs --user NAME")
        password = _secret(given["password_file"], "KDISSECT_PASSWORD", f"Password of {given['user']}")
        credentials = SaslCredentials(given["user"], password)
    return Security(_tls_of(given), mechanism, credentials)


def _tls_of(given: dict[str, Any]) -> TlsOptions | None:
    names = ("tls_ca", "tls_insecure", "tls_name", "tls_cert", "tls_key", "tls_key_password_file")
    if not given["tls"] and not any(given[name] for name in names):
        return None
    if given["tls_key"] and not given["tls_cert"]:
        raise Wrong("--tls-key needs --tls-cert")
    if given["tls_name"] and not can_be_named(given["tls_name"]):
        raise Wrong(f"--tls-name {given['tls_name']}: a certificate cannot contain this name")
    password = os.environ.get("KDISSECT_TLS_KEY_PASSWORD")
    if given["tls_key_password_file"] is not None:
        password = _from_file(given["tls_key_password_file"])
    tls = TlsOptions(
        given["tls_ca"],
        given["tls_cert"],
        given["tls_key"],
        password,
        not given["tls_insecure"],
        given["tls_name"],
    )
    try:
        context_of(tls)
    except ValueError as error:
        raise Unreadable(str(error)) from None
    return tls


def _secret(path: str | None, variable: str, what: str) -> str:
    if path is not None:
        return _from_file(path)
    if os.environ.get(variable):
        return os.environ[variable]
    if sys.stdin.isatty() and sys.stderr.isatty():
        found: str = click.prompt(what, hide_input=True, err=True)
        return found
    option = "--token-file" if variable == "KDISSECT_TOKEN" else "--password-file"
    raise Wrong(
        f"{what.lower().partition(' ')[0]} is needed: {option} FILE, or {variable} in the environment"
    )


def _from_file(path: str) -> str:
    """The secret in a file: its first line."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.readline().rstrip("\r\n")
    except OSError as error:
        raise Unreadable(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Unreadable(f"{path}: is not UTF-8") from None
