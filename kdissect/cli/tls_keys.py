"""``--keylog`` and ``--rsa-key``: the secrets that decrypt TLS."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from kdissect.cli.errors import Unreadable, complain
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import CaptureError
from kdissect.present.form import plural
from kdissect.source import read_rsa_key
from kdissect.tls.keylog import TlsSecrets

if TYPE_CHECKING:
    from kdissect.capture.keylogs import KeyLogs

ENVIRONMENT = "SSLKEYLOGFILE"
"""The variable that names the key log of programs. That file is read too, if it exists."""


def key_options(function: click.decorators.FC) -> click.decorators.FC:
    """``--keylog`` and ``--rsa-key``."""
    key = click.option(
        "--rsa-key",
        "rsa_keys",
        multiple=True,
        metavar="FILE",
        help="Private key of a broker, for TLS 1.2 with RSA key exchange.",
    )
    log = click.option(
        "--keylog",
        "key_logs",
        multiple=True,
        metavar="FILE",
        help=f"TLS secrets: a key log, or a directory of key logs. Default: what {ENVIRONMENT} names. How to "
        "get one: kdissect doctor tls.",
    )
    return log(key(function))


with_secrets_option = click.option(
    "--with-secrets",
    is_flag=True,
    help="With -w: write the TLS secrets of the connections too. The file then decrypts them.",
)


class Keys:
    """The given secrets, and the key logs that may grow."""

    def __init__(
        self,
        secrets: TlsSecrets | None = None,
        growing: KeyLogs | None = None,
        paths: tuple[str, ...] = (),
    ) -> None:
        self.secrets = TlsSecrets() if secrets is None else secrets
        self.growing = growing
        self.paths = paths
        """The key logs."""


def keys_of(
    given: Mapping[str, Any],
    limits: Limits = DEFAULTS,
    *,
    growing: bool = False,
    environment: Mapping[str, str] = os.environ,
) -> Keys:
    """The secrets of the options, or else of the environment.

    :param growing: whether packets come as they are captured, so that key logs may grow or appear meanwhile.
    :raises Unreadable: a file does not exist or is no key.
    """
    secrets = TlsSecrets(limits)
    for path in given["rsa_keys"]:
        secrets.add_rsa_key(rsa_key_of(path))
    paths: tuple[str, ...] = given["key_logs"]
    usual = environment.get(ENVIRONMENT)
    if not paths and usual and (growing or os.path.exists(usual)):
        paths = (usual,)
    if not paths and not growing:
        return Keys(secrets)
    from kdissect.capture.keylogs import KeyLogs

    if growing:
        for path in paths:
            if not os.path.exists(path):
                complain(f"{path}: there is no such key log yet; kdissect keeps looking for it")
            elif not os.access(path, os.R_OK):
                complain(f"{path}: cannot be read: no permission; kdissect keeps trying")
        return Keys(secrets, KeyLogs(paths), paths)
    for path in paths:
        understood, not_understood = secrets.understood, secrets.not_understood
        try:
            for item in KeyLogs((path,)).read():
                secrets.add(item.data)
        except CaptureError as error:
            raise Unreadable(str(error)) from None
        if secrets.understood == understood:
            others = secrets.not_understood - not_understood
            complain(f"{path}: it contains no secrets ({plural(others, 'line')} not understood)")
    return Keys(secrets, paths=paths)


def rsa_key_of(path: str) -> bytes:
    """The private key in a file.

    :raises Unreadable: it cannot be read, or cannot be used.
    """
    try:
        return read_rsa_key(path)
    except CaptureError as error:
        raise Unreadable(str(error)) from None
