"""``kdissect web``: the screens in a browser."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

import click

from kdissect.cli.errors import Wrong, complain
from kdissect.cli.exit_codes import DONE
from kdissect.cli.inputs import MORE_FILES, PORTS, listed, packets_of, ports_of
from kdissect.cli.payloads import payload_arguments, payload_options
from kdissect.cli.screen_settings import settings_of
from kdissect.cli.tls_keys import key_options, keys_of
from kdissect.wording import how_to_install

PORT = 8_000


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE…]")
@MORE_FILES
@click.option("-Y", "filter", metavar="FILTER", help="Start with this display filter.")
@PORTS
@key_options
@payload_options
@click.option("--theme", metavar="NAME", help="Colours, as for kdissect tui.")
@click.option("--show-secrets", is_flag=True, help="Show passwords, tokens and keys.")
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Address to serve at (127.0.0.1).")
@click.option("--port", type=click.IntRange(1, 65_535), default=PORT, help=f"Port to serve at ({PORT}).")
def command(
    files: tuple[str, ...],
    more_files: tuple[str, ...],
    filter: str | None,
    decode_as: tuple[str, ...],
    key_logs: tuple[str, ...],
    rsa_keys: tuple[str, ...],
    theme: str | None,
    show_secrets: bool,
    host: str,
    port: int,
    **payloads: Any,
) -> int:
    """Show the screens of kdissect tui in a browser, until Ctrl-C.

    The printed address has a random token. Without the token nobody sees the screens. Only this machine can
    reach them, unless --host gives another of its addresses. This needs textual-serve.
    """
    paths = (*more_files, *files)
    if "-" in paths:
        raise Wrong(
            "each visit reads the capture again, and standard input (-) can be read only once: name a file"
        )
    if find_spec("textual_serve") is None:
        raise Wrong(f"the browser needs textual-serve: {how_to_install('web')}")
    _, config, _ = settings_of(theme, filter, show_secrets, payloads)
    if paths:
        packets_of(listed(paths), config.limits).close()
    ports_of(decode_as)
    keys_of({"key_logs": key_logs, "rsa_keys": rsa_keys}, config.limits)

    from kdissect.tui.web import Screens, is_local

    arguments = [part for each in decode_as for part in ("-d", each)]
    arguments += [part for each in key_logs for part in ("--keylog", os.path.abspath(each))]
    arguments += [part for each in rsa_keys for part in ("--rsa-key", os.path.abspath(each))]
    arguments += payload_arguments(payloads)
    arguments += ["-Y", filter] if filter is not None else []
    arguments += ["--theme", theme] if theme is not None else []
    arguments += ["--show-secrets"] if show_secrets else []
    arguments += ["--", *(os.path.abspath(path) for path in paths)]
    if not is_local(host):
        complain(f"{host} port {port} is not encrypted: everybody who sees the packets sees the token")
    try:
        Screens(
            arguments, host, port, lambda url: complain(f"the screens are at {url} (Ctrl-C ends)")
        ).serve()
    except OSError as error:
        raise Wrong(f"{host} port {port} cannot be served: {error.strerror or error}") from None
    return DONE
